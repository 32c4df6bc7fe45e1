"""Analyses of programs made at random: the stdlib's results and order; and no trace of the analyses themselves."""

import gc
import random
import tracemalloc

import heapledger
import pytest
from same import flat_all, tuples

MODULES = (heapledger, tracemalloc)
WAYS = [("traceback", False), ("filename", False), ("filename", True), ("lineno", False), ("lineno", True)]
FILES = ["/app/a.py", "/app/b.py", "/app/ab.py", "/app/pkg/a.py", "/lib/über.py", "/lib/文.py", "<cell 1>", "x"]
PATTERNS = ["/app/*", "/app/?.py", "/lib/*", "*.py", "<*>", "*[bx]*", "/app/pkg/a.py", "*", "/nowhere/*"]

SOURCE = """
def grow(dice, files, depth, kept):
    kept.append(bytes(dice.randrange(40)))
    kept.append([bytearray(dice.randrange(3))])
    if depth:
        dice.choice(files)(dice, files, depth - 1, kept)
        if dice.random() < 0.4:
            dice.choice(files)(dice, files, depth - 1, kept)
    kept.append(str(dice.random())[: dice.randrange(4, 9)])
"""


def program(dice):
    """A function that keeps blocks, made below stacks through all the files."""
    files = []
    for file in FILES:
        space = {}
        exec(compile("\n" * dice.randrange(4) + SOURCE, file, "exec"), space)
        files.append(space["grow"])
    return lambda depth, kept: dice.choice(files)(dice, files, depth, kept)


def snapshots(seed):
    """An older and a newer snapshot, each as (ours, the stdlib's of the same traces)."""
    dice = random.Random(seed)
    limit = dice.choice([1, 2, 3, 25])
    kept, grow = [], program(dice)
    heapledger.start(limit)
    for _ in range(12):
        grow(dice.randrange(6), kept)
    old = heapledger.take_snapshot()
    for _ in range(6):
        grow(dice.randrange(6), kept)
    del kept[:: dice.randrange(2, 5)]
    new = heapledger.take_snapshot()
    heapledger.stop()
    return [(snapshot, tracemalloc.Snapshot(tuples(snapshot), limit)) for snapshot in (old, new)]


def flat(results):
    """Tracebacks sort by frames only, so of tracebacks with the same frames it is open which total is shown."""
    return [one[:1] + one[2:] for one in flat_all(results)]


def recipes(dice):
    """Up to thirty filters; when they are many, nearly all exclude little, or nothing would be left."""
    count = dice.choice([1, 2, 3, 30])
    for _ in range(count):
        including = dice.random() < (0.1 if count == 30 else 0.5)
        pattern = dice.choice(PATTERNS[:5] if including else PATTERNS)
        line = dice.randrange(12) if count == 30 and not including or dice.random() < 0.3 else None
        yield including, pattern, line, dice.random() < 0.3, dice.choice([None, None, 0, 1])


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed):
    (our_old, their_old), (our_new, their_new) = snapshots(seed)
    for way in WAYS:
        assert flat(our_new.statistics(*way)) == flat(their_new.statistics(*way))
        assert flat(our_new.compare_to(our_old, *way)) == flat(their_new.compare_to(their_old, *way))
        assert flat(our_old.compare_to(our_new, *way)) == flat(their_old.compare_to(their_new, *way))


def test_random_filters():
    sizes = set()
    for seed in range(10):
        dice = random.Random(seed)
        (our_old, their_old), (our_new, their_new) = snapshots(seed)
        for _ in range(5):
            chosen = list(recipes(dice))
            ours, theirs = ([module.Filter(*recipe) for recipe in chosen] for module in MODULES)
            our_left, their_left = our_new.filter_traces(ours), their_new.filter_traces(theirs)
            assert sorted(tuples(our_left)) == sorted(tuples(their_left))
            sizes.add((len(chosen), len(our_left.traces) > 0, len(our_left.traces) < len(our_new.traces)))
            way = dice.choice(WAYS)
            expected = flat(their_left.compare_to(their_old.filter_traces(theirs), *way))
            assert flat(our_left.compare_to(our_old.filter_traces(ours), *way)) == expected
    assert {(1, True, True), (3, True, True), (30, True, True)} <= sizes  # the filters did tell traces apart


def test_results_are_plain_lists():
    (_, _), (snapshot, _) = snapshots(1)
    results = snapshot.statistics("lineno")
    differences = snapshot.compare_to(snapshot, "lineno")
    assert type(results) is list and type(differences) is list
    results.append(results.pop(0))
    results.sort(key=lambda one: one.size)
    assert [one.size for one in results[:5]] == sorted(one.size for one in results)[:5]


def run_all(snapshot, old, path, results):
    results[0] = snapshot.statistics("lineno")
    results[1] = snapshot.statistics("traceback")
    results[2] = snapshot.statistics("filename", True)
    results[3] = snapshot.compare_to(old, "lineno")
    results[4] = snapshot.compare_to(old, "traceback")
    results[5] = snapshot.filter_traces(results[9])
    results[6] = results[5].statistics("filename")
    snapshot.dump(path)
    results[7] = heapledger.Snapshot.load(path)
    results[8] = heapledger.take_snapshot()


def test_analyses_leave_the_ledger_as_it_was(tmp_path):
    """After a first round, which may fill caches of the interpreter, nothing more is entered, and nothing missing."""
    dice = random.Random(3)
    grow, kept = program(dice), []
    heapledger.start(10)
    for _ in range(25):
        grow(4, kept)
    path = str(tmp_path / "snapshot")
    results = [None] * 9 + [[heapledger.Filter(True, "/app/*"), heapledger.Filter(False, "*/b.py", all_frames=True)]]
    old = heapledger.take_snapshot()
    for _ in range(3):
        run_all(heapledger.take_snapshot(), old, path, results)
    before = heapledger.take_snapshot()
    for _ in range(3):
        run_all(before, old, path, results)
    after = heapledger.take_snapshot()
    changed = [one for one in after.compare_to(before, "traceback") if one.size_diff or one.count_diff]
    assert [str(one) for one in changed if one.traceback[-1].filename != __file__] == []
    assert sum(abs(one.size_diff) for one in changed) < 1000  # this test's own loop and frames
    assert all(len(results[i]) > 10 for i in (0, 1, 3, 4))
    assert heapledger._validate() is None


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_rests_while_results_are_made(enabled):
    """It is asked once, afterwards, not again and again for nothing; and it is left as it was."""
    made = heapledger.Snapshot([(0, 1, (("a.py", number),), 1) for number in range(2000)], 1)
    runs = []
    thresholds, was_enabled = gc.get_threshold(), gc.isenabled()
    gc.callbacks.append(lambda phase, info: runs.append(phase))
    try:
        gc.collect()
        runs.clear()
        gc.set_threshold(50, 1000, 1000)
        (gc.enable if enabled else gc.disable)()
        results = made.statistics("lineno"), made.compare_to(made, "traceback")
        state, count = gc.isenabled(), runs.count("start")
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*thresholds)
        (gc.enable if was_enabled else gc.disable)()
    assert state is enabled
    assert [len(one) for one in results] == [2000, 2000]
    assert count <= 4
