"""The engine in its surroundings: threads, the GIL, realloc, code that dies, other hooks, its own work."""

import gc
import itertools
import random
import sys
import threading
import tracemalloc
import zlib

import c_allocators
import heapledger
import pytest
from c_allocators import holding_the_gil, in_a_foreign_thread, without_the_gil
from children import run

HUGE = 2**61  # more than any allocator has, less than what the interpreter refuses itself


def traces_of(size):
    return [trace for trace in heapledger._get_traces() if trace[1] == size]


def frames_of_size(size):
    found = traces_of(size)
    assert len(found) == 1, found
    return found[0][2]


def line():
    return sys._getframe(1).f_lineno


# Allocators


@pytest.mark.parametrize("domain", ["PyMem_Raw", "PyMem_", "PyObject_"])
@pytest.mark.parametrize("functions", [holding_the_gil, without_the_gil], ids=["with", "without"])
def test_every_domain(domain, functions):
    """malloc, calloc, realloc that moves, shrinks and fails, free: the entry follows the block."""
    if functions is without_the_gil and domain != "PyMem_Raw":
        pytest.skip("this domain requires the GIL")
    malloc, calloc, realloc, free = (getattr(functions, domain + verb) for verb in ("Malloc", "Calloc", "Realloc", "Free"))
    heapledger.start(2)
    block = malloc(54321)
    assert frames_of_size(54321)[0] == (__file__, line() - 1)
    block = realloc(block, 98765)
    assert frames_of_size(98765)[0] == (__file__, line() - 1)
    assert traces_of(54321) == []
    assert realloc(block, HUGE) is None
    assert frames_of_size(98765)[0] == (__file__, line() - 4)
    block = realloc(block, 77)
    assert traces_of(98765) == []
    assert (__file__, line() - 2) in [trace[2][0] for trace in traces_of(77)]
    free(block)
    assert (__file__, line() - 4) not in [trace[2][0] for trace in traces_of(77)]
    block = calloc(111, 333)
    assert frames_of_size(111 * 333)[0] == (__file__, line() - 1)
    free(block)
    assert traces_of(111 * 333) == []
    block = realloc(None, 45678)
    assert frames_of_size(45678)[0] == (__file__, line() - 1)
    free(block)
    free(None)
    assert malloc(HUGE) is None and calloc(HUGE, 1) is None and calloc(HUGE, HUGE) is None
    assert all(trace[1] < HUGE for trace in heapledger._get_traces())


def test_empty_blocks_are_entered():
    heapledger.start()
    before = len(traces_of(0))
    blocks = [holding_the_gil.PyMem_Malloc(0) for _ in range(10)]
    assert len(traces_of(0)) in (before, before + 10)  # the interpreter may ask for one byte in place of none
    sizes = {size for _, size, frames, _ in heapledger._get_traces() if frames[0] == (__file__, line() - 2)}
    assert sizes & {0, 1}
    for block in blocks:
        holding_the_gil.PyMem_Free(block)


def test_foreign_thread():
    """A thread without a thread state has no frames; its block can be freed by another."""
    heapledger.start(3)
    block = in_a_foreign_thread(without_the_gil.PyMem_RawMalloc, 43210)
    assert traces_of(43210) == [(0, 43210, (("<unknown>", 0),), 1)]
    assert heapledger.take_snapshot().filter_traces([heapledger.Filter(True, "<unknown>")]).traces[0].size == 43210
    without_the_gil.PyMem_RawFree(block)
    assert traces_of(43210) == []
    block = without_the_gil.PyMem_RawMalloc(43211)
    in_a_foreign_thread(without_the_gil.PyMem_RawFree, block)
    assert traces_of(43211) == []


def test_raw_domain_in_threads():
    """Without the GIL, all at once; every block keeps the line of the thread that made it."""
    heapledger.start(2)
    threads, blocks = 4, [[] for _ in range(4)]

    def first(mine):
        mine.append(without_the_gil.PyMem_RawMalloc(60001))

    def second(mine):
        mine.append(without_the_gil.PyMem_RawMalloc(60002))

    def work(number):
        source, mine = random.Random(number), blocks[number]
        for _ in range(1500):
            action = source.random()
            if action < 0.4:
                first(mine)
            elif action < 0.6:
                second(mine)
            elif mine and action < 0.7:
                mine[-1] = without_the_gil.PyMem_RawRealloc(mine[-1], 60003)
            elif mine:
                without_the_gil.PyMem_RawFree(mine.pop(0))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = [traces_of(60000 + which) for which in (1, 2, 3)]
    assert sum(map(len, found)) == sum(map(len, blocks)) > 0
    for traces, function in zip(found, (first, second, work), strict=True):
        start = function.__code__.co_firstlineno
        lines = {trace[2][0][1] - start for trace in traces}
        assert len(lines) <= 1 and {trace[2][0][0] for trace in traces} <= {__file__}
    # Freed by this thread, not by those that allocated.
    for block in itertools.chain(*blocks):
        without_the_gil.PyMem_RawFree(block)
    assert not any(traces_of(60000 + which) for which in (1, 2, 3))


def test_compression_in_threads():
    heapledger.start(1)
    data, kept = bytes(range(256)) * 300, []

    def work():
        for level in range(1, 10):
            compressor = zlib.compressobj(level)
            compressor.compress(data)
            kept.append(compressor)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    start = work.__code__.co_firstlineno
    # zlib's windows come from the raw domain, allocated at the first line and without the GIL later.
    large = [trace for trace in heapledger._get_traces() if trace[2][0] == (__file__, start + 2) and trace[1] > 4000]
    assert len(large) >= 36
    kept.clear()
    assert not [trace for trace in heapledger._get_traces() if trace[2][0] == (__file__, start + 2) and trace[1] > 4000]


def test_threads_free_each_other_s_blocks():
    heapledger.start(1)
    inbox, lock, done = [], threading.Lock(), threading.Event()

    def produce():
        for number in range(3000):
            block = bytes(7000 + number % 5)
            with lock:
                inbox.append(block)
            del block

    def consume():
        while True:
            with lock:
                taken, ended = inbox[:], done.is_set()
                inbox.clear()
            if ended and not taken:
                return

    producers = [threading.Thread(target=produce) for _ in range(3)]
    consumers = [threading.Thread(target=consume) for _ in range(2)]
    for thread in producers + consumers:
        thread.start()
    for thread in producers:
        thread.join()
    done.set()
    for thread in consumers:
        thread.join()
    header = sys.getsizeof(b"")
    assert not [trace for trace in heapledger._get_traces() if 7000 + header <= trace[1] <= 7004 + header]
    assert heapledger.get_traced_memory()[0] < 1_000_000


def test_start_and_stop_while_threads_allocate():
    stop, problems = threading.Event(), []

    def work():
        source = random.Random(1)
        kept = []
        while not stop.is_set():
            kept.append(without_the_gil.PyMem_RawMalloc(source.randrange(1, 5000)))
            kept[-1] = without_the_gil.PyMem_RawRealloc(kept[-1], source.randrange(1, 5000))
            if len(kept) > 50:
                without_the_gil.PyMem_RawFree(kept.pop(source.randrange(50)))
        for block in kept:
            without_the_gil.PyMem_RawFree(block)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for number in range(60):
        heapledger.start(number % 7 + 1)
        kept = [bytes(size) for size in range(0, 3000, 100)]
        heapledger.take_snapshot().statistics("traceback")
        problems.append(heapledger._validate())
        if number % 3 == 0:
            heapledger.clear_traces()
            problems.append(heapledger._validate())
        heapledger.stop()
        del kept
    stop.set()
    for worker in workers:
        worker.join()
    assert set(problems) == {None}


# Time before and after


def test_blocks_older_than_start():
    old = [bytes(size) for size in range(6000, 6200)]
    growing = bytearray(100)
    heapledger.start()
    del old[::2]
    growing.extend(bytes(8000))
    grown = line() - 1
    assert not [t for t in heapledger._get_traces() if 6000 < t[1] < 6300]
    assert [t[2][0] for t in heapledger._get_traces() if t[1] > 8000] == [(__file__, grown)]
    new = [bytes(size) for size in range(6000, 6200)]
    assert len([t for t in heapledger._get_traces() if 6000 < t[1] < 6300]) == 200
    del old, new


def test_leftovers_of_earlier_rounds():
    leftovers = []
    for number in range(40):
        heapledger.start(number % 4 + 1)
        leftovers.append([bytearray(5000 + number) for _ in range(5)])
        assert len([t for t in heapledger._get_traces() if t[1] >= 5000 and t[1] < 6000]) >= 5
        if number > 10:
            del leftovers[0]
        assert heapledger._validate() is None
        heapledger.stop()
        assert heapledger.get_traced_memory() == (0, 0)


def test_exact_peak():
    """The peak's number, whatever came before and after it."""
    source = random.Random(4)
    heapledger.start()
    blocks, current, peak = [], 0, 0
    base = heapledger.get_traced_memory()[0]
    heapledger.reset_peak()
    for _ in range(300):
        if blocks and source.random() < 0.45:
            block, size = blocks.pop(source.randrange(len(blocks)))
            holding_the_gil.PyMem_Free(block)
            current -= size
        else:
            size = source.randrange(10**5, 10**6)
            blocks.append((holding_the_gil.PyMem_Malloc(size), size))
            current += size
        peak = max(peak, current)
    traced, traced_peak = heapledger.get_traced_memory()
    for block, _ in blocks:
        holding_the_gil.PyMem_Free(block)
    # What the loop itself keeps is some kilobytes; a block more or less is a hundred times that.
    assert 0 <= traced - base - current < 50_000
    assert 0 <= traced_peak - base - peak < 50_000


# Code that comes and goes


def test_code_addresses_are_used_again():
    """10,000 code objects, each dead before the next is made: a stale cache would name an earlier file or line."""
    heapledger.start(1)
    kept = []
    for number in range(10_000):
        source = "\n" * (number % 37) + f"kept.append(bytes({3000 + number % 11}))"
        exec(compile(source, f"<file {number}>", "exec"), {"kept": kept})
    header = sys.getsizeof(b"")
    # The same blocks in the order of the list, by their own tracebacks.
    for number, block in enumerate(kept):
        frame = heapledger.get_object_traceback(block)[0]
        assert (frame.filename, frame.lineno) == (f"<file {number}>", number % 37 + 1)
        assert len(block) == 3000 + number % 11
    files = {trace[2][0][0] for trace in heapledger._get_traces() if 3000 <= trace[1] - header <= 3010}
    assert len(files) == 10_000


def test_functions_made_and_dropped():
    """The same with deep stacks: two functions per code object, called through each other."""
    heapledger.start(3)
    kept = []
    template = "def inner():\n    return bytes(2500)\n{gap}def outer():\n    return inner()\n"
    for number in range(3000):
        namespace, gap = {}, number % 23
        exec(compile(template.format(gap="\n" * gap), f"<module {number % 50}>", "exec"), namespace)
        kept.append((namespace["outer"](), gap, number % 50))
        if number % 7 == 0:
            gc.collect(0)
    for block, gap, module in kept:
        frames = heapledger._get_object_traceback(block)
        name = f"<module {module}>"
        assert frames[:2] == ((name, 2), (name, 4 + gap)) and frames[2][0] == __file__


def test_changed_code_of_a_function():
    heapledger.start(1)

    def function():
        return bytes(2222)

    def other():
        return 0, bytes(2222)

    blocks = []
    for _ in range(50):
        blocks.append(function())
        function.__code__ = function.__code__.replace(co_firstlineno=function.__code__.co_firstlineno + 1)
    lines = [heapledger.get_object_traceback(block)[0].lineno for block in blocks]
    assert [number - lines[0] for number in lines] == list(range(50))
    del other


def test_long_stacks():
    def down(depth):
        return down(depth - 1) if depth else bytes(9999)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        heapledger.start(65535)
        block = down(8000)
        traceback = heapledger.get_object_traceback(block)
        assert 8001 <= len(traceback) == len(list(traceback))
        assert {frame.lineno for frame in traceback[-8001:]} == {down.__code__.co_firstlineno + 1}
        snapshot = heapledger.take_snapshot()
        assert any(trace[3] == len(trace[2]) > 8000 for trace in snapshot.traces._traces)
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("name", ["über.py", "\udc80.py", "a\nb.py", "\U0001f600" * 100, "", "x" * 10_000], ids=ascii)
def test_unusual_file_names(name):
    heapledger.start(2)
    kept = []
    exec(compile("kept.append(bytes(4444))", name, "exec"), {"kept": kept})
    assert heapledger.get_object_traceback(kept[0])[-1].filename == name
    assert heapledger.take_snapshot().filter_traces([heapledger.Filter(True, name.replace("[", "[[]"))]).traces


# Its own work


def objects_at(lines):
    return [t for t in heapledger._get_traces() if t[2][0][0] == __file__ and t[2][0][1] in lines]


def test_results_are_not_entered():
    """What the module's functions make for their callers is not in the ledger."""
    heapledger.start(5)
    kept = bytes(100)
    first = line()
    snapshot = heapledger.take_snapshot()
    traces = heapledger._get_traces()
    statistics = snapshot.statistics("lineno"), snapshot.statistics("traceback"), snapshot.compare_to(snapshot, "lineno")
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
                 lambda: heapledger.Snapshot.load("/missing/file"), lambda: heapledger.Snapshot([5], 1).filter_traces(5),
                 lambda: heapledger.Traceback(()).format("x")):  # fmt: skip
        with pytest.raises((ValueError, TypeError, OSError)):
            call()
        block = bytes(3210)
        assert heapledger.get_object_traceback(block)[-1].lineno == line() - 1


# Other tools' hooks

ORDERS = [order for order in itertools.permutations(["+h", "+s", "-h", "-s"])
          if order.index("+h") < order.index("-h") and order.index("+s") < order.index("-s")]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_starting_and_stopping_beside_the_stdlib(order):
    """Whoever is below or above, and whoever goes first: each one that traces sees what is allocated.

    One exception, by the stdlib's way of stopping: it puts back the allocators that it found at its start, whatever is
    there now. heapledger, started after it, is then without hooks until it is started again."""
    run("""
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
    """, *order)


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
