"""The ledger as it stood at the peak, and all that was ever allocated: to the byte, and by line."""

import pickle
import random
import threading
import time

import heapledger
import pytest
from c_allocators import holding_the_gil
from children import run
from histories import (
    HEADER,
    HUGE,
    MAKERS,
    UNIT,
    Player,
    blocks_in,
    compare,
    line_of,
    size_of,
    total,
    write_history,
)
from tracing import line

MILLION = 10**6
SNAPSHOTS = {
    "peak": heapledger.take_peak_snapshot,
    "allocations": heapledger.take_allocation_snapshot,
}


def sizes_at(snapshot, lineno):
    """Sizes of the line's blocks, small ones aside: they are numbers and lists."""
    here = heapledger.Frame((__file__, lineno))
    return sorted(trace.size for trace in snapshot.traces if trace.traceback[-1] == here and trace.size >= 1000)


def statistic_at(statistics, lineno):
    return next(one for one in statistics if one.traceback[0] == heapledger.Frame((__file__, lineno)))


def tuples(snapshot):
    return sorted(snapshot.traces._traces)


def test_freed_before_the_snapshot():
    heapledger.start(5)
    block = bytes(3 * MILLION)
    made = line() - 1
    del block
    peak, traced = heapledger.take_peak_snapshot(), heapledger.get_traced_memory()
    live = heapledger.take_snapshot()
    assert type(peak) is heapledger.Snapshot and peak.traceback_limit == 5
    assert total(peak) == traced[1] > 3 * MILLION > traced[0]
    assert sizes_at(live, made) == []
    (size,) = sizes_at(peak, made)
    assert size == 3 * MILLION + HEADER
    statistic = statistic_at(peak.statistics("lineno"), made)
    assert (statistic.size, statistic.count) == (size, 1)
    assert sum(one.size for one in peak.statistics("filename")) == traced[1]
    assert peak.statistics("traceback")[0].traceback[-1].lineno == made
    difference = statistic_at(live.compare_to(peak, "lineno"), made)
    assert (difference.size, difference.size_diff, difference.count_diff) == (0, -size, -1)


def test_the_peak_is_now():
    heapledger.start()
    kept = [bytes(MILLION)]
    block = bytes(3 * MILLION)
    del block
    heapledger.reset_peak()
    answers = heapledger.take_peak_snapshot(), heapledger.take_snapshot(), heapledger.get_traced_memory()
    peak, live, traced = answers
    assert tuples(peak) == tuples(live)
    assert traced == (total(peak),) * 2
    del kept


def test_reset_peak():
    heapledger.start()
    block = bytes(3 * MILLION)
    high = line() - 1
    del block
    heapledger.reset_peak()
    block = bytes(MILLION)
    low = line() - 1
    del block
    peak, traced = heapledger.take_peak_snapshot(), heapledger.get_traced_memory()
    assert total(peak) == traced[1] < 2 * MILLION
    assert sizes_at(peak, high) == [] and len(sizes_at(peak, low)) == 1
    everything = heapledger.take_allocation_snapshot()
    assert len(sizes_at(everything, high)) == len(sizes_at(everything, low)) == 1  # no matter of the peak


def test_clear_traces():
    heapledger.start()
    older = bytes(3 * MILLION)
    made = line() - 1
    heapledger.clear_traces()
    peak, traced = heapledger.take_peak_snapshot(), heapledger.get_traced_memory()
    everything, allocated = heapledger.take_allocation_snapshot(), heapledger.allocated()
    assert total(peak) == traced[1] < MILLION
    assert total(everything) == allocated[0] < MILLION
    assert sizes_at(peak, made) == sizes_at(everything, made) == []
    del older
    assert total(heapledger.take_peak_snapshot()) < MILLION


def test_reallocation():
    """The old block and the new one are never there together, and a refused one changes nothing."""
    heapledger.start()
    block = holding_the_gil.PyMem_Malloc(MILLION)
    made = line() - 1
    block = holding_the_gil.PyMem_Realloc(block, 3 * MILLION)
    grown = line() - 1
    assert holding_the_gil.PyMem_Realloc(block, HUGE) is None
    block = holding_the_gil.PyMem_Realloc(block, 2000)
    shrunk = line() - 1
    holding_the_gil.PyMem_Free(block)
    peak, traced = heapledger.take_peak_snapshot(), heapledger.get_traced_memory()
    assert total(peak) == traced[1] < 4 * MILLION
    assert sizes_at(peak, made) == sizes_at(peak, shrunk) == []
    assert sizes_at(peak, grown) == [3 * MILLION]
    everything = heapledger.take_allocation_snapshot()
    assert [sizes_at(everything, place) for place in (made, grown, shrunk)] == [[MILLION], [3 * MILLION], [2000]]


@pytest.mark.parametrize("kind", SNAPSHOTS)
def test_not_tracing(kind):
    with pytest.raises(RuntimeError) as usual:
        heapledger.take_snapshot()
    for _ in range(2):
        with pytest.raises(RuntimeError) as error:
            SNAPSHOTS[kind]()
        assert str(error.value) == str(usual.value)
        assert heapledger.allocated() == (0, 0)
        heapledger.start()
        SNAPSHOTS[kind]()
        heapledger.stop()
    with pytest.raises(TypeError):
        SNAPSHOTS[kind](1)


@pytest.mark.parametrize("kind", SNAPSHOTS)
def test_later_changes_do_not_show(kind):
    """A snapshot that was looked at before the changes, and one that is looked at only afterwards."""
    heapledger.start(3)
    block = [bytes(1000) for _ in range(1000)]
    del block
    seen, unseen = SNAPSHOTS[kind](), SNAPSHOTS[kind]()
    before = tuples(seen), seen.statistics("lineno")
    assert len(before[0]) > 1000
    kept = [bytes(2000) for _ in range(2000)]
    heapledger.reset_peak()
    heapledger.clear_traces()
    for size in range(10000):
        bytes(size)
    heapledger.stop()
    del kept
    assert (tuples(unseen), unseen.statistics("lineno")) == (tuples(seen), seen.statistics("lineno")) == before


@pytest.mark.parametrize("kind", SNAPSHOTS)
def test_stored_and_loaded(kind, tmp_path):
    heapledger.start(3)
    block = [bytes(1000) for _ in range(100)]
    del block
    snapshot = SNAPSHOTS[kind]()
    heapledger.stop()
    snapshot.dump(tmp_path / "snapshot")
    for copy in (heapledger.Snapshot.load(tmp_path / "snapshot"), pickle.loads(pickle.dumps(snapshot))):
        assert copy.traceback_limit == snapshot.traceback_limit == 3
        assert tuples(copy) == tuples(snapshot)
        assert copy.statistics("traceback") == snapshot.statistics("traceback")


@pytest.mark.parametrize("kind", SNAPSHOTS)
def test_filters(kind):
    heapledger.start()
    block = [bytes(1000) for _ in range(100)]
    made = line() - 1
    del block
    snapshot = SNAPSHOTS[kind]()
    assert tuples(snapshot.filter_traces([heapledger.DomainFilter(True, 0)])) == tuples(snapshot)
    assert tuples(snapshot.filter_traces([heapledger.DomainFilter(False, 0)])) == []
    ours = snapshot.filter_traces([heapledger.Filter(True, __file__, made), heapledger.DomainFilter(True, 1)])
    assert sizes_at(ours, made) == sizes_at(snapshot, made) == [1000 + HEADER] * 100
    assert {trace.traceback[-1].lineno for trace in ours.traces} == {made}


def test_no_trace_of_themselves():
    heapledger.start()
    block = bytes(MILLION)
    del block
    before = heapledger.allocated(), heapledger.get_traced_memory()
    heapledger.reset_peak()
    answers = (
        heapledger.allocated(),
        heapledger.get_traced_memory(),
        heapledger.take_peak_snapshot(),
        heapledger.take_allocation_snapshot(),
        heapledger.take_peak_snapshot(),
        heapledger.take_allocation_snapshot(),
        heapledger.get_traced_memory(),
        heapledger.allocated(),
    )
    assert answers[0] == answers[-1] and answers[1] == answers[-2]
    assert tuples(answers[2]) == tuples(answers[4])
    assert tuples(answers[3]) == tuples(answers[5])
    assert before[0] <= answers[0]


@pytest.mark.parametrize("kind", SNAPSHOTS)
def test_hooks_are_put_back(kind):
    """Like take_snapshot: another tool that stopped may have taken ours away with its own."""
    run(
        """
        import ctypes, sys, heapledger
        class Allocator(ctypes.Structure):
            _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]
        found = [Allocator() for _ in range(3)]
        for domain, allocator in enumerate(found):
            ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(allocator))
        heapledger.start()
        for domain, allocator in enumerate(found):
            ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(allocator))
        lost = bytes(5000)
        assert heapledger.get_object_traceback(lost) is None
        getattr(heapledger, sys.argv[1])()
        found = bytes(5000)
        assert heapledger.get_object_traceback(found) is not None
    """,
        SNAPSHOTS[kind].__name__,
    )


# All allocations


def test_allocations_freed_or_not():
    heapledger.start()
    before = heapledger.allocated()
    for _ in range(1000):
        bytes(5000)
    made = line() - 1
    kept = [bytes(6000) for _ in range(10)]
    after = heapledger.allocated()
    everything = heapledger.take_allocation_snapshot()
    assert sizes_at(everything, made) == [5000 + HEADER] * 1000
    assert sizes_at(everything, made + 2) == [6000 + HEADER] * 10
    assert sizes_at(heapledger.take_snapshot(), made) == []
    assert after[1] - before[1] >= 1010
    assert after[0] - before[0] >= 1000 * (5000 + HEADER) + 10 * (6000 + HEADER)
    del kept


def test_reclaimed_counts_stay_in_the_sum():
    """The snapshot may lack what has no block left; allocated() does not, and the peak keeps what it counts."""
    heapledger.start()
    block = [bytes(size) for size in range(MILLION, MILLION + 100)]
    made = line() - 1
    del block
    before = heapledger.allocated()
    sizes = range(1000, 31000)
    for size in sizes:
        bytes(size)
    churned = line() - 1
    answers = (
        heapledger.allocated(),
        heapledger.take_allocation_snapshot(),
        heapledger.take_peak_snapshot(),
        heapledger.get_traced_memory(),
    )
    (sum_of_sizes, count), everything, peak, traced = answers
    assert len(sizes) <= count - before[1] < 3 * len(sizes) + 1000  # each size is an object, and in a tuple
    assert sum_of_sizes - before[0] >= sum(sizes)
    assert len(everything.traces) < count and total(everything) < sum_of_sizes
    assert 0 < len(sizes_at(everything, churned)) < 29000
    assert sizes_at(peak, made) == [size + HEADER for size in range(MILLION, MILLION + 100)]
    assert total(peak) == traced[1]


# Random histories


@pytest.mark.parametrize("seed", range(8))
def test_random_history(seed):
    history, player = write_history(random.Random(seed), 400), Player()
    heapledger.start()
    for event in history:
        player.play(event)
    assert heapledger._validate() is None
    heapledger.stop()
    compare(history, player.looks)


@pytest.mark.parametrize("seed", range(4))
def test_random_history_of_threads_that_take_turns(seed):
    """Each event is another thread's, but they come in the order written."""
    source = random.Random(seed)
    history, player, threads = write_history(source, 300), Player(), 4
    turns = [threading.Lock() for _ in range(len(history) + 1)]
    for turn in turns:
        turn.acquire()
    whose = [source.randrange(threads) for _ in history]
    failures = []

    def work(number):
        for place, event in enumerate(history):
            if whose[place] != number:
                continue
            turns[place].acquire()
            try:
                player.play(event)
            except BaseException as error:
                failures.append(error)
            turns[place + 1].release()

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    heapledger.start()
    turns[0].release()
    turns[-1].acquire()
    assert heapledger._validate() is None
    heapledger.stop()
    for worker in workers:
        worker.join()
    assert failures == []
    compare(history, player.looks)


@pytest.mark.parametrize("seed", range(2))
def test_threads_at_random(seed):
    """All at once, so nobody knows the moment; what can be said of it must hold, also while they run."""
    threads, failures, going = 4, [], threading.Event()
    histories = [write_history(random.Random(10 * seed + number), 400, clears=False) for number in range(threads)]
    histories = [[event for event in one if event[0] not in ("reset", "look")] for one in histories]

    def work(history):
        player = Player()
        going.wait()
        try:
            for event in history:
                player.play(event)
        except BaseException as error:
            failures.append(error)

    heapledger.start()
    workers = [threading.Thread(target=work, args=(history,)) for history in histories]
    for worker in workers:
        worker.start()
    meanwhile = []
    going.set()
    while any(worker.is_alive() for worker in workers):
        meanwhile.append(
            (heapledger.get_traced_memory(), heapledger.take_peak_snapshot(), heapledger.get_traced_memory())
        )
        time.sleep(0.001)
    for worker in workers:
        worker.join()
    problem = heapledger._validate()
    peak, traced = heapledger.take_peak_snapshot(), heapledger.get_traced_memory()
    heapledger.stop()
    assert failures == [] and problem is None
    assert total(peak) == traced[1]
    for before, snapshot, after in meanwhile:
        assert before[1] <= total(snapshot) <= after[1] <= traced[1]
    # A thread alone has at most one block of each number, and was alone at least as high as this.
    made = {event[-1] for history in histories for event in history if event[0] in ("make", "resize")}
    most = {(line_of(number), size_of(number)): threads for number in made}
    found = blocks_in(peak)
    assert set(found) <= set(most) and all(count <= most[site] for site, count in found.items())
    ours = sum(size * count for (_, size), count in found.items())
    assert max(map(highest, histories)) <= ours + UNIT
    assert ours <= traced[1] < ours + 64 * UNIT


def highest(history):
    """The greatest total of one thread's blocks."""
    current = most = 0
    for event in history:
        if event[0] == "make":
            current += size_of(event[1])
        elif event[0] == "free":
            current -= size_of(event[1])
        elif event[0] == "resize":
            current += size_of(event[2]) - size_of(event[1])
        most = max(most, current)
    return most


def test_histories_are_worth_playing():
    """They reach every line, and look at peaks that are gone."""
    history = write_history(random.Random(0), 400)
    assert {event[0] for event in history} == {"make", "free", "resize", "refuse", "reset", "clear", "look"}
    assert {event[-1] for event in history if event[0] in ("make", "resize")} >= set(range(len(MAKERS)))
