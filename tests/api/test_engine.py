"""The engine: allocators of every domain, with and without the GIL, threads, blocks of another time, the peak."""

import itertools
import random
import sys
import threading
import zlib

import heapledger
import pytest
from c_allocators import holding_the_gil, in_a_foreign_thread, without_the_gil
from tracing import frames_of_size, line, traces_of

HUGE = 2**61  # more than any allocator has, less than what the interpreter refuses itself


# Allocators


CALLS = {
    "raw": (holding_the_gil, "PyMem_Raw"),
    "raw without the GIL": (without_the_gil, "PyMem_Raw"),
    "mem": (holding_the_gil, "PyMem_"),
    "object": (holding_the_gil, "PyObject_"),
}


@pytest.mark.parametrize("kind", CALLS)
def test_every_domain(kind):
    """malloc, calloc, realloc that moves, shrinks and fails, free: the entry follows the block."""
    functions, domain = CALLS[kind]
    malloc, calloc, realloc, free = (
        getattr(functions, domain + verb) for verb in ("Malloc", "Calloc", "Realloc", "Free")
    )
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
