"""Other tools that hook the allocators: above us, below us, and gone in any order."""

import itertools

import pytest
from children import run

ORDERS = [order for order in itertools.permutations(["+h", "+s", "-h", "-s"])
          if order.index("+h") < order.index("-h") and order.index("+s") < order.index("-s")]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_starting_and_stopping_beside_the_stdlib(order):
    """Whoever is below or above, and whoever goes first: each one that traces sees what is allocated.

    One exception, by the stdlib's way of stopping: it puts back the allocators that it found at its start, whatever is
    there now. heapledger, started after it, is then without hooks until it is started again."""
    run(
        """
        import sys, heapledger, tracemalloc
        def line():
            return sys._getframe(1).f_lineno
        engines = {"h": heapledger, "s": tracemalloc}
        kept, below, robbed = [], None, False
        for _ in range(3):
            for step in sys.argv[1:]:
                engine = engines[step[1]]
                engine.start(3) if step[0] == "+" else engine.stop()
                if step == "+h":
                    below, robbed = tracemalloc.is_tracing(), False
                elif step == "-s":
                    robbed = heapledger.is_tracing() and below
                kept.append([bytearray(size) for size in range(4000, 4020)])
                here = (__file__, line() - 1)
                for name, one in engines.items():
                    traceback = one.get_object_traceback(kept[-1][7])
                    if one is heapledger and robbed:
                        continue
                    assert (traceback is not None) == one.is_tracing(), (step, name)
                    assert traceback is None or traceback[-1]._frame == here, (step, name, traceback)
                    many = len([t for t in one._get_traces() if t[1] >= 4000 and t[2][0] == here])
                    assert many % 20 == 0 and (many > 0) == one.is_tracing(), (step, name, many)
                assert heapledger._validate() is None
                if len(kept) > 3:
                    del kept[0]
        assert heapledger.lost_records() == 0
    """,
        *order,
    )


def test_temporary_hooks_on_top():
    """_testcapi's failing allocators come and go above ours."""
    pytest.importorskip("_testcapi")
    run("""
        import _testcapi, heapledger, sys
        heapledger.start(2)
        failed = 0
        for number in range(60):
            _testcapi.set_nomemory(number, number + 1)
            try:
                kept = [bytes(100), [1, 2], {"a": 1.5}, str(number) * 9]
            except MemoryError:
                failed += 1
            finally:
                _testcapi.remove_mem_hooks()
        assert failed > 3, failed
        assert heapledger._validate() is None
        block = bytes(4000)
        assert heapledger.get_object_traceback(block)[-1].lineno == sys._getframe().f_lineno - 1
    """)
