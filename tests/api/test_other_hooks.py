"""Other tools that hook the allocators: above us, below us, and gone in any order."""

import itertools
import platform
import subprocess
import textwrap

import pytest
from beside import HERE, LIMITS, beside
from children import run

ORDERS = [order for order in itertools.permutations(["+h", "+s", "-h", "-s"])
          if order.index("+h") < order.index("-h") and order.index("+s") < order.index("-s")]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_starting_and_stopping_beside_the_stdlib(order):
    """Whoever is below or above, and whoever goes first: each one that traces sees what is allocated.

    When the stdlib stops it puts back the allocators that it found at its start, whatever is there now. heapledger
    hears of that and puts its hooks back."""
    run(
        """
        import sys, heapledger, tracemalloc
        def line():
            return sys._getframe(1).f_lineno
        engines = {"h": heapledger, "s": tracemalloc}
        kept = []
        for _ in range(3):
            for step in sys.argv[1:]:
                engine = engines[step[1]]
                engine.start(3) if step[0] == "+" else engine.stop()
                kept.append([bytearray(size) for size in range(4000, 4020)])
                here = (__file__, line() - 1)
                for name, one in engines.items():
                    traceback = one.get_object_traceback(kept[-1][7])
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


@pytest.mark.parametrize("where", ["below", "above", "above and gone", "in between"])
def test_allocator_hooks(companion, where):
    """Both see every call, wherever the other one is; one that goes puts back what it found and may take ours along."""
    beside(
        """
        import companion
        where = sys.argv[4]
        if where in ("below", "in between"):
            companion.push_allocator()
        heapledger.start(limit)
        if where == "in between":
            import tracemalloc
            tracemalloc.start(2)
        if where.startswith("above"):
            companion.push_allocator()
        before = companion.allocator_calls()
        allocated = heapledger.allocated()[1]
        random_stacks.check(3)
        kept = [bytearray(5000) for _ in range(1000)]
        allocated = heapledger.allocated()[1] - allocated
        seen = companion.allocator_calls()[0] - before[0]
        # What an allocator takes for itself (arenas, large blocks) passes by a hook below ours only. Our own work and
        # objects from freelists differ by a little.
        assert seen > 0.5 * allocated, (seen, allocated)
        if where == "above and gone":
            companion.pop_allocator()
            heapledger.start()
        elif where == "in between":
            tracemalloc.stop()
        random_stacks.check(4)
        consistent()
        del kept
        released = companion.allocator_calls()[1]
        heapledger.stop()
        bytearray(5000)
        if where == "below":
            assert companion.allocator_calls()[1] > released
        """,
        where,
        folder=companion,
    )


def test_allocator_that_allocates_when_it_releases(companion):
    """What a tool below ours takes in a call of free is in the ledger, until it is given back or taken elsewhere."""
    beside(
        """
        import companion
        companion.push_allocator()
        heapledger.start(limit)
        companion.keep_log(True)
        for number in range(1000):
            str(number) * 50
        assert companion.keep_log(False) > 400_000
        assert not [trace for trace in heapledger.take_snapshot().traces if trace.size == 5000]
        """,
        folder=companion,
    )


@pytest.mark.parametrize("most", [600, 2**62], ids=["small sizes", "all sizes"])
def test_allocator_that_does_not_pass_all_on(companion, most):
    """A tool above ours serves some requests itself. Ours is put over it, and is still below it: no circle."""
    beside(
        """
        import companion
        heapledger.start(limit)
        old = [bytes(300), bytes(5000)]
        companion.push_reserve(int(sys.argv[4]))
        for _ in range(3):
            heapledger.take_snapshot()
        known = [heapledger.get_object_traceback(block) is not None for block in old]
        if sys.argv[4] == "600":      # large requests came by all the time, so the ledger is whole
            assert known == [True, True] and heapledger.lost_records() == 0
        else:                         # not one did: what was freed meanwhile cannot be known
            assert known == [False, False] and heapledger.lost_records() > 0
        for size in (10, 300, 5000, 300_000):
            before = heapledger.get_traced_memory()[0]   # a frame object comes with the first of them
            block, line = bytearray(size), sys._getframe().f_lineno
            grown = heapledger.get_traced_memory()[0] - before
            assert size <= grown < size + 1200, (size, grown)
            assert heapledger.get_object_traceback(block)[-1].lineno == line
            del block
            assert abs(heapledger.get_traced_memory()[0] - before) < 1200
        text = ""
        for number in range(3000):
            text += str(number)       # reallocated through all sizes
        old.clear()
        assert heapledger._validate() is None
        heapledger.stop()
        bytearray(5000)
        heapledger.start(limit)
        random_stacks.check(6)
        """,
        most,
        folder=companion,
        checked=most == 600,
    )


def test_allocator_that_waits_for_another_thread(companion):
    """We call it to find out what it passes on, with nothing of ours locked: the other thread can clear and start."""
    beside(
        """
        import companion, threading, time
        heapledger.start(limit)
        companion.push_reserve(600)
        answers = []
        def answer():
            while not companion.is_waiting():
                time.sleep(0.001)
            heapledger.clear_traces()
            heapledger.start(limit)
            answers.append(companion.is_waiting())      # it has not given up
            companion.end_waiting()
        thread = threading.Thread(target=answer)
        thread.start()
        companion.wait_at(65536)                        # the largest size that is tried
        heapledger.take_snapshot()
        thread.join(30)
        assert answers == [True]
        """,
        folder=companion,
    )


@pytest.fixture(scope="module")
def interposer(tmp_path_factory):
    """The path of a library to be preloaded."""
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("it calls glibc's allocator by its inner names")
    library = tmp_path_factory.mktemp("interposer") / "interposer.so"
    command = ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", HERE / "interposer.c"]
    subprocess.run([*command, "-o", library, "-ldl"], check=True, capture_output=True, text=True)
    return library


@pytest.mark.parametrize("limit", LIMITS)
def test_c_library_that_allocates_python_memory(interposer, limit):
    """We must not call the C library's allocator while we hold the ledger: a replacement of it may come back to us."""
    beside(
        """
        import ctypes
        library = ctypes.CDLL(None)
        library.interposer_switch(True)
        heapledger.start(limit)
        kept = [bytearray(100 + number % 50) for number in range(20_000)]
        for round in range(20):
            assert heapledger.get_object_traceback(kept[round]) is not None
            snapshots = [heapledger.take_snapshot() for _ in range(round)]
            capture = heapledger.take_capture()
            with heapledger.trace() as outer:
                kept.append(bytearray(3000))
                with heapledger.trace() as inner:
                    heapledger.reset_peak()
                    kept.append(bytearray(300_000))
            assert inner.peak is not None and outer.leaked is not None
            exec(compile(f"def f(): return bytearray({round + 500})\\nkept.append(f())", f"file{round}", "exec"))
            heapledger.memory(), heapledger.allocated(), heapledger.get_traced_memory()
            if round % 5 == 4:
                heapledger.clear_traces()
                kept = [bytearray(100 + number % 50) for number in range(20_000)]
            assert heapledger._validate() is None
        assert library.interposer_calls() > 100
        heapledger.stop()
        library.interposer_switch(False)
        """,
        limit=limit,
        LD_PRELOAD=str(interposer),
    )


def allocators_put_back(by):
    """A program in which a tool that was there before us stops, and takes our hooks along."""
    return {
        "ctypes": """
            import ctypes
            class Allocator(ctypes.Structure):
                _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]
            found = [Allocator() for _ in range(3)]
            for domain, allocator in enumerate(found):
                ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(allocator))
            def stop():
                for domain, allocator in enumerate(found):
                    ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(allocator))
            """,
        "extension": """
            import companion
            companion.push_allocator()
            stop = companion.pop_allocator
            """,
        "stdlib": """
            import tracemalloc
            tracemalloc.start()
            stop = tracemalloc.stop
            """,
    }[by]


@pytest.mark.parametrize("by", ["ctypes", "extension", "stdlib"])
def test_no_phantoms_after_another_tool_stops(companion, by):
    """Blocks that were freed while our hooks were gone leave the ledger, and give nobody their tracebacks."""
    beside(
        textwrap.dedent(allocators_put_back(by))
        + textwrap.dedent(
            """
        heapledger.start(limit)
        big = [bytearray(1000) for _ in range(5000)]
        kept = bytearray(70_000)
        stop()
        big = None
        if sys.argv[4] == "ctypes":                 # nobody can hear of it: the next snapshot notices
            unseen = bytearray(50_000)
            assert heapledger.get_object_traceback(unseen) is None
        elif sys.argv[4] == "extension":            # a pending call notices
            for _ in range(1000):
                pass
        block, line = bytearray(60_000), sys._getframe().f_lineno
        if sys.argv[4] != "ctypes":
            assert heapledger.get_object_traceback(block)[-1].lineno == line
        snapshot = heapledger.take_snapshot()
        assert sum(trace.size for trace in snapshot.traces) < 1_000_000
        assert heapledger.get_traced_memory()[0] < 1_000_000
        if sys.argv[4] == "stdlib":                 # the hooks were back before anything could be missed
            assert heapledger.get_object_traceback(kept) is not None
            assert heapledger.lost_records() == 0 and snapshot.metadata["interruptions"] == 0
        else:
            assert heapledger.get_object_traceback(kept) is None
            assert heapledger.lost_records() >= 5000 and snapshot.metadata["interruptions"] == 1
        again, line = [bytearray(1000) for _ in range(5000)], sys._getframe().f_lineno
        assert all(heapledger.get_object_traceback(one)[-1].lineno == line for one in again)
        assert heapledger._validate() is None
        """
        ),
        by,
        folder=companion,
        checked=by == "stdlib",
    )


@pytest.mark.parametrize("domain", [1, 2], ids=["memory", "objects"])
def test_no_phantoms_after_a_tool_of_one_domain_stops(domain):
    """Large requests still come by the raw domain's hooks: that does not mean that small ones did."""
    beside(
        """
        import ctypes
        class Allocator(ctypes.Structure):
            _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]
        domain, found = int(sys.argv[4]), Allocator()
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(found))
        heapledger.start(limit)
        objects = [object() for _ in range(5000)] if domain == 2 else [[number] for number in range(5000)]
        ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(found))
        objects = None
        snapshot = heapledger.take_snapshot()
        assert sum(trace.size for trace in snapshot.traces) < 20_000
        assert heapledger.lost_records() > 0 and snapshot.metadata["interruptions"] == 1
        again, line = [object() for _ in range(5000)], sys._getframe().f_lineno
        assert all(heapledger.get_object_traceback(one)[-1].lineno == line for one in again)
        assert heapledger._validate() is None
        """,
        domain,
        checked=False,
    )
