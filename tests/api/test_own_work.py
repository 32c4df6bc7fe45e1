"""What the module allocates for its own answers is not in the ledger; what Python code does meanwhile is."""

import gc
import sys

import heapledger
import pytest
from children import run
from tracing import line, traces_of


def objects_at(lines):
    return [t for t in heapledger._get_traces() if t[2][0][0] == __file__ and t[2][0][1] in lines]


def test_results_are_not_entered():
    """What the module's functions make for their callers is not in the ledger."""
    heapledger.start(5)
    kept = bytes(100)
    first = line()
    snapshot = heapledger.take_snapshot()
    traces = heapledger._get_traces()
    statistics = (
        snapshot.statistics("lineno"),
        snapshot.statistics("traceback"),
        snapshot.compare_to(snapshot, "lineno"),
    )
    filtered = snapshot.filter_traces([])
    tuples = snapshot.traces._traces
    traceback = heapledger.get_object_traceback(kept)
    last = line()
    found = objects_at(range(first + 1, last))
    # A tuple of three that this test builds itself, and loop variables, may be there; never the thousands of results.
    assert len(found) <= 3 and sum(trace[1] for trace in found) < 500
    assert len(traces) > 1 and len(tuples) > 1
    del statistics, filtered, traceback


def test_second_snapshot_does_not_show_the_first():
    heapledger.start(5)
    first = heapledger.take_snapshot()
    second = heapledger.take_snapshot()
    differences = [one for one in second.compare_to(first, "lineno") if one.count_diff]
    assert sum(abs(one.size_diff) for one in differences) < 500
    assert len(differences) <= 3


def test_python_code_called_back_is_entered():
    """A callback runs while the module works, in a frame of its own: what it allocates is the program's."""
    heapledger.start(2)
    kept = []

    class Asking(heapledger.BaseFilter):
        def _match(self, trace):
            kept.append(bytes(5432))
            return True

    snapshot = heapledger.take_snapshot()
    assert len(snapshot.filter_traces([Asking(True)]).traces) >= len(kept) > 0  # asked once for blocks that are alike
    found = traces_of(5432 + sys.getsizeof(b""))
    assert len(found) == len(kept)
    assert {trace[2][0] for trace in found} == {(__file__, Asking._match.__code__.co_firstlineno + 1)}
    later = bytes(6543)  # and afterwards this frame is traced again
    assert heapledger.get_object_traceback(later)[-1].lineno == line() - 1


def test_finalizers_during_a_snapshot_are_entered():
    heapledger.start(1)
    kept = []

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            kept.append(bytes(5431))

    thresholds = gc.get_threshold()
    try:
        gc.collect()
        gc.disable()
        for _ in range(50):
            Cycle()
        gc.set_threshold(1, 1, 1)
        gc.enable()
        snapshots = [(heapledger.take_snapshot(), heapledger._get_traces()) for _ in range(5)]
        gc.collect()
    finally:
        gc.set_threshold(*thresholds)
    assert len(kept) == 50
    found = traces_of(5431 + sys.getsizeof(b""))
    assert [trace[2][0] for trace in found] == [(__file__, Cycle.__del__.__code__.co_firstlineno + 1)] * 50
    del snapshots


def test_errors_do_not_leave_the_frame_muted():
    """A call that raises ends its own work too."""
    heapledger.start(1)
    for call in (lambda: heapledger.Snapshot([], 1).statistics("wrong"), lambda: heapledger.start("x"),
                 lambda: heapledger.Snapshot.load("/missing/file"),
                 lambda: heapledger.Snapshot([5], 1).filter_traces(5),
                 lambda: heapledger.Traceback(()).format("x")):  # fmt: skip
        with pytest.raises((ValueError, TypeError, OSError)):
            call()
        block = bytes(3210)
        assert heapledger.get_object_traceback(block)[-1].lineno == line() - 1


def test_freelists_shared_with_the_program():
    """The module's results do not go to freelists, from where the program would get blocks that count nowhere."""

    def make():
        return [(number * 1.5, [number], (number, number), {}) for number in range(100)]

    heapledger.start(1, numbers=True)
    for _ in range(3):
        make()
        snapshot = heapledger.take_snapshot()
        results = [snapshot.statistics("traceback"), list(snapshot.traces), heapledger._get_traces()]
        results += [trace.traceback[0] for trace in results[1]]
        del snapshot, results
        objects = [part for group in make() for part in (group, *group)]
        unknown = [type(one).__name__ for one in objects if heapledger.get_object_traceback(one) is None]
        assert unknown == []


def test_a_bracket_that_is_not_left_ends_with_its_object():
    """A signal's exception can come between __enter__ and the block, and then there is no __exit__."""
    heapledger.start(1)
    bracket = heapledger._ledger._OwnWork()
    bracket.__enter__()
    hidden = bytearray(5000)
    del bracket
    shown = bytearray(5000)
    assert heapledger.get_object_traceback(hidden) is None
    assert heapledger.get_object_traceback(shown) is not None


A_BLOCK_WITH_A_PAST = """
    import sys
    import threading
    import heapledger

    heapledger.start(1, numbers=True)
    filled, used = threading.Lock(), threading.Lock()
    filled.acquire()
    used.acquire()
    left, right = 1.5, 2.5
    shared = []
    addresses = [0] * 5

    def first():
        global product, line
        line = sys._getframe().f_lineno + 4
        shared.append(None)  # the buffer of 32 bytes, entered last by this thread
        filled.release()
        used.acquire()
        product = left * right  # in the same block

    def second():
        filled.acquire()
        shared.clear()
        mine = left * right  # in the buffer's block
        addresses.append(id(mine))
        mine = None
        used.release()

    threads = [threading.Thread(target=second), threading.Thread(target=first)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert id(product) == addresses[-1], "the block went to somebody else: nothing is shown"
    assert heapledger.get_object_traceback(product)[0].lineno == line
"""


def test_a_block_goes_to_another_thread():
    """The traceback is that of the thread that has the object now, also where it knew the block in an earlier life."""
    run(A_BLOCK_WITH_A_PAST)
