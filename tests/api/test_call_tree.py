"""_call_tree: the stacks of several snapshots as one tree, against a tree made of the public traces."""

import contextlib
import gc
import random
from array import array

import heapledger
import pytest
from heapledger._ledger import _call_tree


@contextlib.contextmanager
def tracing(nframe):
    heapledger.start(nframe)
    try:
        yield
    finally:
        heapledger.stop()


def paths_of(snapshots):
    """{path from the oldest frame down: [(own bytes, own blocks) for each snapshot]} as the tree says it, and the names
    of the functions; checks what every tree must have."""
    parents, locations, ends, names, sums = _call_tree(tuple(snapshots))
    parents, locations, ends = array("I", parents), array("I", locations), array("I", ends)
    assert parents[0] == locations[0] == 0 and names[0] is None
    assert set(locations) == set(range(len(names)))
    assert len(set(names)) == len(names)
    assert len(sums) == len(snapshots)
    paths = [()]
    for node in range(1, len(parents)):
        assert parents[node] < node
        paths.append((*paths[parents[node]], names[locations[node]]))
    assert len(set(paths)) == len(paths)
    below = [1] * len(parents)
    for node in range(len(parents) - 1, 0, -1):
        below[parents[node]] += below[node]
    assert list(ends) == [node + number for node, number in enumerate(below)]
    columns = []
    for snapshot, arrays in zip(snapshots, sums, strict=True):
        if snapshot is None:
            assert arrays is None
            columns.append([None] * len(paths))
            continue
        own_bytes, own_blocks, all_bytes, all_blocks = (array("Q", data) for data in arrays)
        for own, total in ((own_bytes, all_bytes), (own_blocks, all_blocks)):
            added = list(own)
            for node in range(len(parents) - 1, 0, -1):
                added[parents[node]] += added[node]
            assert added == list(total)
        columns.append(list(zip(own_bytes, own_blocks, strict=True)))
    return {path: [column[node] for column in columns] for node, path in enumerate(paths)}


def expected(snapshots):
    paths = {(): [None if snapshot is None else (0, 0) for snapshot in snapshots]}
    for index, snapshot in enumerate(snapshots):
        for trace in snapshot.traces if snapshot is not None else ():
            path = tuple((frame.filename, frame.lineno, frame.name) for frame in trace.traceback)
            for end in range(1, len(path) + 1):
                paths.setdefault(path[:end], [None if other is None else (0, 0) for other in snapshots])
            size, count = paths[path][index]
            paths[path][index] = (size + trace.size, count + 1)
    return paths


def random_traces(seed, count):
    source = random.Random(seed)
    frames = [(f"file{number % 5}.py", number) for number in range(12)]
    for _ in range(count):
        depth = source.randrange(1, 5)
        stack = tuple(source.choice(frames) for _ in range(depth))
        yield (source.randrange(2), source.randrange(100), stack, depth)


def test_of_traces_given_as_tuples():
    snapshots = [heapledger.Snapshot(list(random_traces(seed, 200)), 5) for seed in range(3)]
    snapshots.insert(1, None)
    assert paths_of(snapshots) == expected(snapshots)


def test_of_one_process_and_of_files(tmp_path):
    def inner(kept, size):
        kept.append(bytearray(size))

    def outer(kept):
        for size in (100, 200, 300):
            inner(kept, size)

    kept = []
    with tracing(10):
        outer(kept)
        first = heapledger.take_snapshot()
        outer(kept)
        second = heapledger.take_snapshot()
    second.dump(tmp_path / "second.hlsnap")
    loaded = heapledger.Snapshot.load(tmp_path / "second.hlsnap")
    found = paths_of([first, second, loaded])
    assert found == expected([first, second, loaded])
    assert all(of_second == of_loaded for _, of_second, of_loaded in found.values())
    functions = {tuple(frame[2].rpartition(".")[2] for frame in path[-2:]) for path in found}
    assert ("outer", "inner") in functions


def test_of_the_peak_and_of_what_was_allocated():
    with tracing(3):
        kept = [bytearray(1000) for _ in range(50)]
        del kept[10:]
        snapshots = [
            heapledger.take_snapshot(),
            heapledger.take_peak_snapshot(),
            heapledger.take_allocation_snapshot(),
        ]
    assert paths_of(snapshots) == expected(snapshots)


def test_locations_that_differ_in_their_function_only():
    def one_line(kept):
        (lambda: kept.append(bytearray(5000)))(), kept.append(bytearray(5000))

    kept = []
    with tracing(1):
        one_line(kept)
        snapshot = heapledger.take_snapshot()
    found = [path for path, ((size, _),) in paths_of([snapshot]).items() if size >= 5000]
    assert sorted(path[-1][2].rpartition(".")[2] for path in found) == ["<lambda>", "one_line"]


def test_odd_names():
    odd = ("<script>\ud800\U0001f600\0.py", 0)
    snapshot = heapledger.Snapshot([(0, 1, (odd,), 1)], 1)
    assert ((*odd, None),) in paths_of([snapshot])


def test_nothing():
    assert paths_of([]) == {(): []}
    assert paths_of([heapledger.Snapshot([], 1), None]) == {(): [(0, 0), None]}


@pytest.mark.parametrize("wrong", [[], None, (1,), ("a",)])
def test_refused(wrong):
    with pytest.raises(TypeError, match="must be a"):
        _call_tree(wrong)


def test_too_large():
    with pytest.raises(OverflowError):
        _call_tree((heapledger.Snapshot([(0, 2**62, (("a", 1),), 1)] * 2, 1),))


def test_is_our_own_work():
    with tracing(5):
        kept = [bytearray(10) for _ in range(100)]
        snapshot = heapledger.take_snapshot()
        gc.collect()
        before = heapledger.get_traced_memory()[0]
        tree = _call_tree((snapshot,))
        assert heapledger.get_traced_memory()[0] - before < 1000
    assert tree and kept


def test_cut_stacks_are_joined_wherever_a_snapshot_comes_from(tmp_path):
    """Traces that were made up, pickled by the standard library's way, or dumped: totals say that they were cut."""
    frames = [("app.py", line) for line in range(1, 7)]
    traces = [(0, 10, tuple(frames[2::-1]), 3), (0, 100, tuple(frames[:1:-1]), 6)]
    made = heapledger.Snapshot(traces, 4)
    made.dump(tmp_path / "dumped", format="hlsnap")
    made.dump(tmp_path / "pickled", format="tracemalloc")
    for snapshot in (made, *(heapledger.Snapshot.load(tmp_path / name) for name in ("dumped", "pickled"))):
        for joined, wanted in ((False, [3, 4, 5, 6]), (True, [1, 2, 0, 3, 4, 5, 6])):
            parents, locations, _, names, ((own, *_),) = _call_tree((snapshot,), joined)
            parents, locations = array("I", parents), array("I", locations)
            node, lines = array("Q", own).index(100), []
            while node:
                lines.insert(0, names[locations[node]][1])
                node = parents[node]
            assert lines == wanted
