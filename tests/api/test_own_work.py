"""What the module allocates for its own answers is not in the ledger; what Python code does meanwhile is."""

import contextlib
import functools
import gc
import pathlib
import shutil
import signal
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


def test_interrupts_do_not_leave_the_frame_muted(tmp_path):
    """A signal's exception can come anywhere in our Python code."""

    class Interrupt(BaseException):
        pass

    def interrupt(number, frame):
        raise Interrupt

    heapledger.start(1)
    snapshot = heapledger.take_snapshot()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(1, 50):
            with contextlib.suppress(Interrupt):
                signal.setitimer(signal.ITIMER_REAL, number / 20_000)
                for _ in range(100):
                    snapshot.dump(tmp_path / "file", format="tracemalloc")
                    heapledger.Snapshot.load(tmp_path / "file")
            block = bytes(3210)
            assert heapledger.get_object_traceback(block)[-1].lineno == line() - 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("nframe", [1, 25])
def test_python_code_called_back_by_python_code_is_entered(nframe):
    """Reports, generators, iterators and finalizers that run while functions of the package do."""
    heapledger.start(nframe)
    kept = []

    class Dying:
        def __del__(self):
            kept.append(bytes(5437))

    def report(trace):
        kept.append(bytes(5433))

    def captures():
        kept.append(bytes(5434))
        yield heapledger.take_capture()

    def leaking():
        kept.append(bytes(5435))
        return Dying()

    for one in (
        heapledger.trace(report=report),
        heapledger.trace(report=functools.partial(kept.extend, map(bytes, [5436]))),  # in C, like what it calls
    ):
        with contextlib.suppress(TypeError), one:
            pass
    heapledger.Capture.merge(captures())
    heapledger.track_leaks(leaking, rounds=1, warmup=0)
    sizes = sorted(len(one) for one in kept)
    assert sizes == [5433, 5434, 5435, 5437]
    for one in kept:
        assert heapledger.get_object_traceback(one)[-1].filename == __file__


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


EVERYTHING = """
    import asyncio, functools, gc, linecache, os, sys, tracemalloc
    import heapledger

    NFRAME = int(sys.argv[1])
    # The interpreter's cache of attribute lookups keeps names alive, or not, by their addresses.
    clear_lookups = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache
    FOLDER = os.path.dirname(heapledger.__file__) + os.sep
    SEEN = set()

    def look(traces):
        "Remember blocks under lines of the package. _calls.py is for what the program's C functions allocate."
        for _, size, frames, *_ in traces:
            if frames[0][0].startswith(FOLDER) and frames[0][0] != FOLDER + "_calls.py":
                SEEN.add((frames[0], size))

    @heapledger.trace(NFRAME)
    def decorated(number, *, more=0):
        return [number] * more

    @heapledger.trace(NFRAME)
    async def decorated_coroutine(number):
        await asyncio.sleep(0)
        return [number]

    class Wanted(heapledger.BaseFilter):
        def _match(self, trace):
            return True

    def refused(function, *arguments):
        try:
            function(*arguments)
        except (TypeError, ValueError, RuntimeError, OSError):
            return
        raise AssertionError(function)

    def use_snapshots():
        kept = [bytes(1000) for _ in range(10)]
        snapshot, peak, made = (
            heapledger.take_snapshot(), heapledger.take_peak_snapshot(), heapledger.take_allocation_snapshot())
        look(snapshot.traces._traces)
        for kind in ("lineno", "filename", "traceback"):
            found = snapshot.statistics(kind), snapshot.compare_to(peak, kind), made.statistics(kind)
            for one in [one for group in found for one in group[:20]]:
                str(one), repr(one), hash(one), one.traceback, one == one
        for trace in snapshot.traces[:50]:
            str(trace), repr(trace), trace.traceback.format(), trace.traceback[0].name, trace.domain
        snapshot.filter_traces([heapledger.Filter(False, "*x*"), heapledger.DomainFilter(True, 0), Wanted(True)])
        heapledger.Snapshot.merge([snapshot, heapledger.take_snapshot()]).statistics("lineno", True)
        snapshot.metadata, repr(snapshot), heapledger.get_object_traceback(kept)
        snapshot.note = {"plain": [1, 2.5, "a", b"b", None, (True, {3}), frozenset({4})]}
        for format in (None, "hlsnap", "tracemalloc"):
            snapshot.dump("file", format)
            loaded = heapledger.Snapshot.load("file")
            assert loaded.note == snapshot.note and len(loaded.traces) == len(snapshot.traces)
            loaded.metadata, loaded.statistics("lineno")
            loaded.dump("file", format)
        snapshot.note = object()
        refused(snapshot.dump, "file")
        refused(snapshot.dump, "missing/file")
        refused(heapledger.Snapshot.load, __file__)
        refused(heapledger.Snapshot.load, "missing")

    def use_captures():
        capture = heapledger.take_capture()
        capture.dump("file")
        loaded = heapledger.Capture.load("file")
        for one in (capture, loaded, heapledger.Capture.merge([capture, loaded]),
                    heapledger.Capture.merge(iter((capture, loaded))), capture.select("live", "peak")):
            one.moments, repr(one), one.metadata, one.select("live").moments
            refused(one.select, "other")
        refused(heapledger.Capture.merge, [1])

    def use_traces():
        with heapledger.trace(NFRAME, report=id) as outer, heapledger.trace():
            kept = bytes(1000)
            repr(outer)
        repr(outer), outer.start, outer.peak, outer.allocated, outer.leaked
        for one in (outer.start, outer.peak, outer.allocated, outer.leaked):
            look(one.traces._traces)
        decorated(1), decorated(1, more=5), asyncio.run(decorated_coroutine(3))
        refused(heapledger.trace, decorated)
        look(decorated.last.allocated.traces._traces)
        repr(heapledger.track_leaks(functools.partial(kept.count, 0))), bool(heapledger.track_leaks(use_nothing))

    def use_nothing():
        pass

    def use_functions():
        heapledger.install(), heapledger.uninstall()
        heapledger.memory(), heapledger.get_include(), heapledger.lost_records(), heapledger.allocated()
        heapledger.get_tracemalloc_memory(), heapledger.get_traceback_limit(), heapledger.is_tracing()
        str(heapledger.SnapshotFormatError("file", 1, "no reason"))
        heapledger.reset_peak()

    def use_all():
        use_snapshots()
        use_captures()
        use_traces()
        use_functions()
        linecache.clearcache()
        clear_lookups()
        gc.collect()

    heapledger.start(NFRAME)
    for _ in range(3):  # caches of the library fill
        use_all()
    before = heapledger.get_traced_memory()[0]
    for _ in range(3):
        use_all()
    drift = heapledger.get_traced_memory()[0] - before
    look(heapledger.take_allocation_snapshot().traces._traces)
    look(heapledger.take_peak_snapshot().traces._traces)
    print(sorted(SEEN))
    print(drift)
"""


@pytest.mark.parametrize("nframe", [1, 25])
def test_nothing_is_entered_under_a_line_of_the_package(nframe):
    """Whatever public function is called: neither what it returns nor what it has freed again."""
    seen, drift = run(EVERYTHING, nframe).splitlines()
    assert seen == "[]"
    assert abs(int(drift)) < 500


def test_a_copy_of_the_package_is_known_too(tmp_path):
    """By the names that its code objects have, whatever __file__ says. A neighbour with a similar name is not."""
    installed = pathlib.Path(heapledger.__file__).parent
    shutil.copytree(installed, tmp_path / "copies \u00e9\u20ac" / "heapledger")
    neighbour = tmp_path / "copies \u00e9\u20ac" / "heapledger_like.py"
    neighbour.write_text("def make():\n    return bytes(4321)\n", encoding="utf-8")
    run(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        import heapledger, heapledger_like
        assert heapledger.__file__.startswith(sys.argv[1])
        heapledger.__file__ = "elsewhere"
        heapledger.start()
        made = heapledger_like.make()
        metadata = [heapledger.take_snapshot().metadata for _ in range(10)]
        kept = [heapledger.take_capture().select("live").moments for _ in range(10)]
        assert heapledger.get_object_traceback(made)[0].filename == heapledger_like.__file__
        assert heapledger.get_object_traceback(metadata[0]) is None
        assert heapledger.get_object_traceback(kept[0]) is None
        """,
        neighbour.parent,
    )
