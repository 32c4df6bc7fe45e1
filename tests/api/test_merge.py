"""Snapshot.merge: the sum of many snapshots; what forked processes inherited counts once."""

import collections
import gc
import random
import sys
import threading
import weakref
import zlib

import heapledger
import pytest
import random_values
from children import run
from heapledger import Snapshot
from same import flat, same_outcome

GROUPINGS = [("filename", False), ("filename", True), ("lineno", False), ("lineno", True), ("traceback", False)]


def blocks_of(snapshot):
    """How often each (domain, size, frames) is there."""
    return collections.Counter(trace[:3] for trace in snapshot.traces._traces)


def same_analyses(merged, expected):
    for key_type, cumulative in GROUPINGS:
        ours, theirs = merged.statistics(key_type, cumulative), expected.statistics(key_type, cumulative)
        assert list(map(flat, ours)) == list(map(flat, theirs))
    assert blocks_of(merged) == blocks_of(expected)


@pytest.mark.parametrize("seed", range(40))
def test_tuples_add_up(seed):
    """The merge is the snapshot of all traces together."""
    values = random.Random(seed)
    parts = [random_values.traces(values) for _ in range(values.randint(1, 6))]
    limits = [values.randint(1, 9) for _ in parts]
    merged = Snapshot.merge([Snapshot(traces, limit) for traces, limit in zip(parts, limits, strict=True)])
    together = Snapshot(sum(parts, []), max(limits))
    assert merged.traceback_limit == max(limits) and type(merged) is Snapshot
    same_analyses(merged, together)
    filters = [heapledger.Filter(False, "a*"), heapledger.DomainFilter(True, 0)]
    same_analyses(merged.filter_traces(filters), together.filter_traces(filters))
    before = Snapshot(parts[0], 1)
    for key_type, cumulative in GROUPINGS:
        ours, theirs = (now.compare_to(before, key_type, cumulative) for now in (merged, together))
        assert list(map(flat, ours)) == list(map(flat, theirs))


def test_one_is_itself():
    heapledger.start(7)
    kept = [bytes(size) for size in range(300)]
    taken = heapledger.take_snapshot()
    merged = Snapshot.merge([taken])
    assert sorted(map(repr, merged.traces._traces)) == sorted(map(repr, taken.traces._traces))
    assert merged.traceback_limit == taken.traceback_limit == 7
    assert merged.compare_to(taken, "traceback")[0].size_diff == 0
    same_analyses(merged, taken)
    ours, theirs = (one.statistics("traceback")[0].traceback for one in (merged, taken))
    assert [frame.name for frame in ours] == [frame.name for frame in theirs]
    del kept


def test_every_kind():
    """Taken, filtered, merged, built from tuples, written to, copied: all in one."""
    heapledger.start(4)
    kept = [bytes(size) for size in range(300)]
    taken = heapledger.take_snapshot()
    filtered = taken.filter_traces([heapledger.Filter(True, __file__)])
    built = Snapshot(taken.traces._traces[:50], 4)
    changed = heapledger.take_snapshot()
    del changed.traces._traces[10:]
    kinds = [taken, filtered, built, changed, Snapshot.merge([built, filtered])]
    expected = Snapshot(sum((list(one.traces._traces) for one in kinds), []), 4)
    same_analyses(Snapshot.merge(kinds), expected)
    same_analyses(Snapshot.merge(iter(kinds)), expected)
    same_analyses(Snapshot.merge(collections.deque(kinds)), expected)
    del kept


def test_same_process_twice_counts_twice():
    heapledger.start()
    kept = bytes(5000)
    taken = heapledger.take_snapshot()
    doubled = Snapshot.merge([taken, taken])
    assert blocks_of(doubled) == blocks_of(taken) + blocks_of(taken)
    del kept


def test_totals_of_cut_tracebacks():
    frames = (("a.py", 1), ("b.py", 2))
    other = (("a.py", 1),)
    traces = [[(0, 1, frames, None)], [(0, 1, frames, 9), (0, 2, frames, 7)], [(0, 3, frames, 5), (0, 4, other, 0)]]
    merged = Snapshot.merge(Snapshot(one, 2) for one in traces)
    totals = [(trace.size, trace.traceback.total_nframe) for trace in merged.traces]
    assert totals == [(1, 9), (1, 9), (2, 9), (3, 9), (4, None)]


def of_moment(snapshot, moment, path):
    """The snapshot as if it were of another moment: that is the first byte of its rows in a file."""
    snapshot.dump(path)
    data = bytearray(path.read_bytes())
    start = data.index(b"ROWS")
    end = start + 12 + int.from_bytes(data[start + 4 : start + 12], "little")
    data[start + 12] = moment
    data[end : end + 4] = zlib.crc32(data[start:end]).to_bytes(4, "little")
    path.write_bytes(data)
    return Snapshot.load(path)


def test_moments_are_not_mixed(tmp_path):
    """Peaks add up to a snapshot of peaks; a peak and what is alive now have no sum."""
    live = Snapshot([(0, 10, (("a.py", 1),), 1)], 1)
    peak, other = (of_moment(live, 1, tmp_path / name) for name in ("peak", "other"))
    everything = of_moment(live, 2, tmp_path / "everything")
    peaks = Snapshot.merge([peak, other])
    assert len(peaks.traces) == 2
    assert len(Snapshot.merge([peaks, peak]).traces) == 3
    for one, more in [(live, peaks), (peak, live), (peaks, everything), (everything, live)]:
        with pytest.raises(ValueError, match=r"snapshots\[0\] is of .*, snapshots\[2\] of "):
            Snapshot.merge(iter([one, one, more]))


def test_names_of_functions_do_not_fuse_but_group():
    """Sites of two functions on one line are two, as in any snapshot; grouping goes by lines."""
    heapledger.start(1)
    first, second = (lambda: bytes(4000)), (lambda: bytes(4000))  # fmt: skip
    kept = first(), second()
    taken = heapledger.take_snapshot().filter_traces([heapledger.Filter(True, __file__, first.__code__.co_firstlineno)])
    merged = Snapshot.merge([taken, taken])
    assert [one.count for one in merged.statistics("lineno")] == [2 * one.count for one in taken.statistics("lineno")]
    del kept


class Kept(Snapshot):
    alive = weakref.WeakSet()

    def __init__(self, traces, limit):
        super().__init__(traces, limit)
        self.alive.add(self)


def test_streams():
    """An iterator's snapshots are let go one by one: when the next is asked for, the merge holds none."""
    most = 0

    def generate():
        nonlocal most
        for number in range(100):
            snapshot = Kept([(0, 10, (("a.py", number % 7),), 1)], 1)
            most = max(most, len(Kept.alive))
            yield snapshot

    merged = Snapshot.merge(generate())
    assert most == 1
    gc.collect()
    assert not Kept.alive
    assert sum(one.count for one in merged.statistics("lineno")) == 100 == len(merged.traces)
    assert len(merged.statistics("lineno")) == 7


def test_list_may_change_meanwhile():
    snapshots = []

    class Frames(tuple):
        def __hash__(self):
            snapshots.clear()
            gc.collect()
            return super().__hash__()

    snapshots += [Snapshot([(0, 1, Frames((("a.py", 1),)), 1)], 1) for _ in range(5)]
    assert len(Snapshot.merge(snapshots).traces) == 5
    assert not snapshots


def test_subclass():
    merged = Kept.merge([Snapshot([(0, 1, (("a.py", 1),), 1)], 3)])
    assert type(merged) is Kept and merged in Kept.alive
    assert merged.traceback_limit == 3 and len(merged.traces) == 1
    assert merged.statistics("lineno")[0].count == 1


def test_attributes_are_not_merged():
    one = Snapshot([], 1)
    one.note = "mine"
    assert vars(Snapshot.merge([one])).keys() == vars(Snapshot([], 1)).keys()


class Failing:
    def __iter__(self):
        yield Snapshot([], 1)
        raise KeyError("from the iterator")


BAD = {
    "nothing": (ValueError, lambda: []),
    "empty generator": (ValueError, lambda: iter(())),
    "number": (TypeError, lambda: 5),
    "none": (TypeError, lambda: None),
    "snapshot": (TypeError, lambda: Snapshot([], 1)),
    "failing": (KeyError, Failing),
    "bad trace": (ValueError, lambda: [Snapshot([()], 1)]),
    "bad file": (TypeError, lambda: [Snapshot([(0, 1, ((b"a", 1),), 1)], 1)]),
    "bad total": (TypeError, lambda: [Snapshot([(0, 1, (("a", 1),), "1")], 1)]),
    "empty traceback": (IndexError, lambda: [Snapshot([(0, 1, (), 1)], 1)]),
    "huge": (OverflowError, lambda: [Snapshot([(0, 2**62, (("a", 1),), 1)], 1)] * 2),
    "huge, cumulative": (OverflowError, lambda: [Snapshot([(0, 2**61, (("a", 1), ("a", 1)), 1)], 1)] * 2),
    "huge, two sites": (OverflowError, lambda: [Snapshot([(0, 2**62, (("a", n),), 1)], 1) for n in range(2)]),
    "limits": (TypeError, lambda: [Snapshot([], 1), Snapshot([], "2")]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(case):
    error, make = BAD[case]
    with pytest.raises(error):
        Snapshot.merge(make())


@pytest.mark.parametrize("wrap", [list, tuple, iter])
def test_the_culprit_is_named(wrap):
    import tracemalloc

    for culprit in (None, 3, [], tracemalloc.Snapshot([], 1)):
        with pytest.raises(TypeError, match=rf"snapshots\[2\] must be a Snapshot, not {type(culprit).__name__}$"):
            Snapshot.merge(wrap([Snapshot([], 1), Snapshot([], 1), culprit]))


def test_signature_errors():
    class Like:
        @classmethod
        def merge(cls, snapshots):
            raise AssertionError

    Like.merge.__func__.__qualname__ = "Snapshot.merge"
    for arguments, named in [((), {}), ((1, 2), {}), ((), {"wrong": 1}), ((1,), {"snapshots": 1})]:
        same_outcome(Snapshot.merge, Like.merge, *arguments, **named)
    assert Snapshot.merge(snapshots=[Snapshot([], 2)]).traceback_limit == 2


def test_own_work_is_not_entered_and_the_iterators_is():
    heapledger.start(2)
    kept = []

    def generate():
        for _ in range(20):
            kept.append(bytes(7000))
            yield taken

    taken = heapledger.take_snapshot()
    line = sys._getframe().f_lineno
    merged = Snapshot.merge([taken] * 50), Snapshot.merge(generate())
    traces = heapledger._get_traces()
    own = [trace for trace in traces if trace[2][0] == (__file__, line + 1)]
    assert len(own) <= 4 and sum(trace[1] for trace in own) < 1500  # the list, the generator and the tuple
    assert len([trace for trace in traces if trace[1] == sys.getsizeof(bytes(7000))]) == 20
    del merged


def test_many_threads():
    heapledger.start(10)
    kept = [bytes(size) for size in range(2000)]
    taken = heapledger.take_snapshot()
    expected = taken.statistics("lineno")[0].count
    failures = []

    def work():
        for _ in range(5):
            if Snapshot.merge([taken] * 10).statistics("lineno")[0].count != 10 * expected:
                failures.append("wrong sum")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        kept.append(eval("[bytes(3), {}]"))
        heapledger.take_snapshot()
    for thread in threads:
        thread.join()
    assert not failures


FAMILY = """
    import os, sys
    import heapledger
    from heapledger import Snapshot

    def in_child(function):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                function()
                status = 0
            finally:
                sys.stderr.flush()
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0

    def counts(snapshots):
        # Blocks of 10, 20 and 30 thousand bytes: the parent's, the child's, the grandchild's.
        merged = Snapshot.merge(snapshots)
        assert heapledger._validate() is None
        sizes = [trace.size // 10000 for trace in merged.traces if trace.size >= 10000]
        return tuple(sizes.count(kind) for kind in (1, 2, 3))

    def make(kind, count):
        return [bytes(10000 * kind) for _ in range(count)]

    heapledger.start(3)
"""


def test_forked_children_in_memory():
    """What a child inherits counts once, whoever is merged, in whatever order."""
    run(
        FAMILY
        + """
    early = heapledger.take_snapshot()
    mine = make(1, 50)
    before = heapledger.take_snapshot()

    def child():
        inherited = heapledger.take_snapshot()
        own = make(2, 7)
        now = heapledger.take_snapshot()
        assert counts([before, now]) == counts([now, before]) == counts([early, now]) == counts([now]) == (50, 7, 0)
        assert counts([before, inherited]) == counts([inherited]) == (50, 0, 0)
        assert counts(iter([now, before])) == (50, 7, 0)
        assert counts(iter([before, now])) == (100, 7, 0)  # a stream cannot know; docs/compat.md
        assert counts([now, now]) == (50, 14, 0)  # twice the same process: its own counts twice
        assert counts([before, before, now]) == (100, 7, 0)
        picked = [one.filter_traces([heapledger.Filter(True, __file__)]) for one in (before, now)]
        assert counts(picked) == (50, 7, 0)

        def grandchild():
            del mine[20:], own[3:]
            own_too = make(3, 2)
            last = heapledger.take_snapshot()
            assert counts([last]) == (20, 3, 2)
            assert counts([now, last]) == counts([last, now]) == (50, 7, 2)
            assert counts([before, now, last]) == counts([before, last, now]) == (50, 7, 2)
            assert counts([before, last]) == (50, 3, 2)
            assert counts(iter([last, now, before])) == (50, 7, 2)

        in_child(grandchild)
        after = heapledger.take_snapshot()
        assert counts(iter([after, before])) == (50, 7, 0)

    in_child(child)
    after = heapledger.take_snapshot()

    def second():
        later = make(2, 4)
        now = heapledger.take_snapshot()
        assert counts(iter([after, now])) == counts([before, now]) == (50, 4, 0)  # `after` says that it has forked

    in_child(second)
    del mine[10:]

    def third():
        freed = heapledger.take_snapshot()
        assert counts([freed]) == (10, 0, 0)
        assert counts([before, freed]) == (50, 0, 0)

    in_child(third)
    """
    )


def test_forked_children_in_files():
    """A family of processes, each of which has written a file: in lists, in streams, and without the parent."""
    run(
        FAMILY
        + """
    def dump(name):
        heapledger.take_snapshot().dump(name + ".hlsnap")

    def load(*names):
        return [Snapshot.load(name + ".hlsnap") for name in names]

    def stream(*names):
        return (Snapshot.load(name + ".hlsnap") for name in names)

    mine = make(1, 50)
    dump("before")
    children = [f"child{number}" for number in range(8)]

    def child(number):
        own = make(2, number)
        del mine[number * 5 :]
        dump(children[number])

        def grandchild():
            own.clear()
            own_too = make(3, 6)
            dump("grandchild")

        if number == 7:
            in_child(grandchild)
            own += make(2, 10)
            dump("parent of grandchild")

    for number in range(8):
        in_child(lambda: child(number))
    dump("after")
    mine.clear()
    dump("freed")

    for merge in (load, stream):
        assert counts(merge("after", *children)) == counts(merge(*children, "after")) == (50, 28, 0)
        assert counts(merge(*children)) == counts(merge("freed", *children)) == (35, 28, 0)
        assert counts(merge("freed")) == (0, 0, 0)
        assert counts(merge(*children[:7], "parent of grandchild", "grandchild")) == (35, 38, 6)
        assert counts(merge("grandchild")) == (35, 0, 6)
        assert counts(merge("grandchild", "after")) == (50, 0, 6)
        assert counts(merge(*children, "before")) == (50, 28, 0)
    assert counts(load("before", *children)) == (50, 28, 0)
    assert counts(stream("before", *children)) == (85, 28, 0)
    """
    )
