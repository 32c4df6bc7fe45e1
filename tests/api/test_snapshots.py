"""Snapshot: statistics, comparison, filters and files, with the same results and order as the stdlib's."""

import gc
import io
import pickle
import random
import tracemalloc

import heapledger
import pytest
import random_values
from children import run
from same import flat_all, outcome, same_outcome, tuples

KEY_TYPES = ("traceback", "filename", "lineno")
SEEDS = range(25)
MODULES = (heapledger, tracemalloc)


def made_of(traces, limit=4):
    return tuple(module.Snapshot(traces, limit) for module in MODULES)


def grouped(snapshot, *arguments, **named):
    """Tracebacks sort by frames only, so of tracebacks with the same frames it is open which total is shown."""
    return [one[:1] + one[2:] for one in flat_all(snapshot.statistics(*arguments, **named))]


def compared(new, old, *arguments, **named):
    return [one[:1] + one[2:] for one in flat_all(new.compare_to(old, *arguments, **named))]


def modes():
    for key_type in KEY_TYPES:
        yield key_type, False
        if key_type != "traceback":
            yield key_type, True


def native(limit, seed):
    """A snapshot of the ledger, the stdlib's of the same traces, and the objects that they are of."""
    source = random.Random(seed)
    heapledger.start(limit)

    def leaf(size):
        return bytes(size), bytearray(size)

    def branch(depth, size):
        return [branch(depth - 1, size + 1), leaf(size)] if depth else [leaf(size), leaf(size)]

    kept = [branch(source.randint(0, 6), source.randint(0, 700)) for _ in range(40)]
    ours = heapledger.take_snapshot()
    heapledger.stop()
    return ours, tracemalloc.Snapshot(list(ours.traces._traces), limit), kept


@pytest.mark.parametrize("seed", SEEDS)
def test_statistics(seed):
    ours, theirs = made_of(random_values.traces(random.Random(seed)))
    for key_type, cumulative in modes():
        assert grouped(ours, key_type, cumulative) == grouped(theirs, key_type, cumulative)
        assert grouped(ours, key_type=key_type, cumulative=cumulative) == grouped(theirs, key_type, cumulative)
        assert list(map(str, ours.statistics(key_type, cumulative))) == list(
            map(str, theirs.statistics(key_type, cumulative))
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_total_of_a_group(seed):
    """Where all tracebacks of a group have one total, it is that; in the other groupings it is None."""
    ours, theirs = made_of(random_values.traces(random.Random(seed)))
    totals = {}
    for _, _, frames, total in tuples(theirs):
        totals.setdefault(frames[::-1], set()).add(total)
    for our, their in zip(ours.statistics("traceback"), theirs.statistics("traceback"), strict=True):
        if len(totals[their.traceback._frames]) == 1:
            assert our.traceback.total_nframe == their.traceback.total_nframe
    for key_type in ("filename", "lineno"):
        assert {one.traceback.total_nframe for one in ours.statistics(key_type)} <= {None}


@pytest.mark.parametrize("seed", SEEDS)
def test_compare_to(seed):
    source = random.Random(seed)
    traces = random_values.traces(source)
    changed = [trace for trace in traces if source.random() < 0.7] + random_values.traces(source, 15)
    our_old, their_old = made_of(traces)
    our_new, their_new = made_of(changed)
    for key_type, cumulative in modes():
        assert compared(our_new, our_old, key_type, cumulative) == compared(their_new, their_old, key_type, cumulative)
        assert compared(our_old, our_new, key_type, cumulative) == compared(their_old, their_new, key_type, cumulative)
        assert compared(our_old, our_old, key_type, cumulative) == compared(their_old, their_old, key_type, cumulative)
        assert list(map(str, our_new.compare_to(our_old, key_type, cumulative))) == list(
            map(str, their_new.compare_to(their_old, key_type, cumulative))
        )


@pytest.mark.parametrize("seed", range(60))
def test_filter_traces(seed):
    source = random.Random(seed)
    ours, theirs = made_of(random_values.traces(source))
    recipes = [random_values.filter_recipe(source) for _ in range(source.randint(0, 4))]
    our_filters, their_filters = ([getattr(module, name)(*values) for name, values in recipes] for module in MODULES)
    for kind in (list, tuple):
        our_result, their_result = ours.filter_traces(kind(our_filters)), theirs.filter_traces(kind(their_filters))
        assert type(our_result) is heapledger.Snapshot and our_result is not ours
        assert tuples(our_result) == tuples(their_result)
        assert our_result.traceback_limit == theirs.traceback_limit
        assert grouped(our_result, "lineno") == grouped(their_result, "lineno")


@pytest.mark.parametrize("limit", [1, 2, 5, 25])
def test_native_statistics(limit):
    ours, theirs, kept = native(limit, limit)
    assert len(ours.traces) > 100
    assert ours.traceback_limit == limit
    for key_type, cumulative in modes():
        assert grouped(ours, key_type, cumulative) == grouped(theirs, key_type, cumulative)
    del kept


@pytest.mark.parametrize("limit", [1, 5, 25])
def test_native_compare_to(limit):
    """Two native snapshots of one round, of two rounds, and a native one with one made of tuples."""
    first, their_first, kept = native(limit, 1)
    heapledger.start(limit)
    more = [bytes(size) for size in range(100, 300)]
    second = heapledger.take_snapshot()
    del more[::2]
    third = heapledger.take_snapshot()
    heapledger.stop()
    their_second, their_third = (tracemalloc.Snapshot(tuples(snapshot), limit) for snapshot in (second, third))
    made = heapledger.Snapshot(tuples(first), limit)
    for key_type, cumulative in modes():
        expected = compared(their_third, their_second, key_type, cumulative)
        assert compared(third, second, key_type, cumulative) == expected
        expected = compared(their_third, their_first, key_type, cumulative)
        assert compared(third, first, key_type, cumulative) == expected
        assert compared(third, made, key_type, cumulative) == expected
        expected = compared(their_first, their_third, key_type, cumulative)
        assert compared(first, third, key_type, cumulative) == expected
        assert compared(made, third, key_type, cumulative) == expected
    del kept, more


@pytest.mark.parametrize("seed", range(20))
def test_native_filter_traces(seed):
    ours, theirs, kept = native(4, seed)
    source = random.Random(seed)
    patterns = [__file__, "*test_snap*", "*.py", "<*", "*/random*.py", "[!/]*", "*"]
    recipes = [
        (source.random() < 0.5, source.choice(patterns), source.choice([None, None, 55, 58]), source.random() < 0.5)
        for _ in range(source.randint(0, 3))
    ]
    our_result = ours.filter_traces([heapledger.Filter(*recipe) for recipe in recipes])
    their_result = theirs.filter_traces([tracemalloc.Filter(*recipe) for recipe in recipes])
    assert sorted(tuples(our_result)) == sorted(tuples(their_result))
    for key_type, cumulative in modes():
        assert grouped(our_result, key_type, cumulative) == grouped(their_result, key_type, cumulative)
    again = our_result.filter_traces([heapledger.Filter(True, "*.py")])
    assert sorted(tuples(again)) == sorted(tuples(their_result.filter_traces([tracemalloc.Filter(True, "*.py")])))
    assert sorted(tuples(ours)) == sorted(tuples(theirs))  # the original is as it was
    del kept


def test_own_lines_are_excluded_by_the_package_s_file():
    heapledger.start(10)
    snapshot = heapledger.take_snapshot()
    kept = snapshot.statistics("traceback"), snapshot.filter_traces([]), [str(t) for t in snapshot.traces], bytes(777)
    later = heapledger.take_snapshot().filter_traces([heapledger.Filter(False, heapledger.__file__)])
    folder = heapledger.__file__.rpartition("/")[0] + "/"
    assert [t for t in tuples(later) if t[2][0][0].startswith(folder)] == []
    assert any(size == 777 + 33 for _, size, _, _ in tuples(later))
    del kept


@pytest.mark.parametrize("bad", [None, 5, "foo", "", b"lineno", (), "Lineno", ["lineno"], object], ids=repr)
@pytest.mark.parametrize("cumulative", [False, True])
def test_bad_key_type(bad, cumulative):
    ours, theirs = made_of([(0, 5, (("a.py", 1),), 1)])
    same_outcome(ours.statistics, theirs.statistics, bad, cumulative)
    assert outcome(ours.statistics, bad)[0] == "error"
    assert outcome(ours.compare_to, ours, bad) == outcome(theirs.compare_to, theirs, bad)


def test_cumulative_by_traceback():
    ours, theirs = made_of([])
    same_outcome(ours.statistics, theirs.statistics, "traceback", True)
    assert outcome(ours.statistics, "traceback", True)[:2] == ("error", ValueError)
    assert outcome(ours.compare_to, ours, "traceback", True) == outcome(theirs.compare_to, theirs, "traceback", True)


@pytest.mark.parametrize("method", ["statistics", "compare_to", "filter_traces"])
def test_missing_and_surplus_arguments(method):
    ours, theirs = made_of([])
    for arguments in ((), (1, 2, 3, 4), (1, 2, 3, 4, 5)):
        same_outcome(getattr(ours, method), getattr(theirs, method), *arguments)
        same_outcome(getattr(ours, method), getattr(theirs, method), *arguments, unknown=5)


def test_missing_and_surplus_arguments_of_dump():
    """It has one more than the standard library's."""
    ours, theirs = made_of([])
    same_outcome(ours.dump, theirs.dump)
    same_outcome(ours.dump, theirs.dump, unknown=5)
    same_outcome(ours.dump, theirs.dump, "x", unknown=5)
    text = "Snapshot.dump() takes from 2 to 3 positional arguments but 4 were given"
    assert outcome(ours.dump, 1, 2, 3) == ("error", TypeError, text)


@pytest.mark.parametrize("bad", [5, "x", None, {1: 2}, [5], [None], ["x"], object(), {3}, iter([])], ids=repr)
def test_bad_filters(bad):
    traces = [(0, 5, (("a.py", 1),), 1)]
    ours, theirs = made_of(traces)
    same_outcome(ours.filter_traces, theirs.filter_traces, bad)


def test_a_filter_for_filters():
    ours, theirs = made_of([])
    our = outcome(ours.filter_traces, heapledger.Filter(True, "*"))
    assert our == outcome(theirs.filter_traces, tracemalloc.Filter(True, "*"))
    assert our[1] is TypeError


def test_filters_of_the_caller():
    """A class with a _match of its own, and a subclass that overrides it, are asked for each trace."""
    traces = random_values.traces(random.Random(77))

    def results(module):
        class Large(module.BaseFilter):
            def _match(self, trace):
                return trace[1] >= 100

        class Odd(module.Filter):
            def _match(self, trace):
                return trace[1] % 2 == 1

        class Pattern(module.Filter):
            def _match_frame(self, filename, lineno):
                return lineno > 2

        snapshot = module.Snapshot(traces, 4)
        cases = [[Large(True)], [Odd(False, "*")], [Large(True), Odd(True, "*"), module.Filter(False, "a.py")],
                 [Pattern(True, "x")], [Pattern(False, "x", None, True)]]  # fmt: skip
        return [tuples(snapshot.filter_traces(case)) for case in cases]

    assert results(heapledger) == results(tracemalloc)


def test_filter_attributes():
    for module in MODULES:
        one = module.Filter(True, "a/b.pyc", 5, True, 7)
        assert (one.inclusive, one.filename_pattern, one.lineno, one.all_frames, one.domain) == (
            True,
            "a/b.py",
            5,
            True,
            7,
        )
        assert module.Filter(inclusive=1, filename_pattern="x", lineno=None, all_frames=0, domain=None).inclusive == 1
        with pytest.raises(AttributeError):
            one.filename_pattern = "other"
        domain = module.DomainFilter(False, 9)
        assert (domain.inclusive, domain.domain) == (False, 9)
        with pytest.raises(AttributeError):
            domain.domain = 10
        assert isinstance(one, module.BaseFilter) and isinstance(domain, module.BaseFilter)


@pytest.mark.parametrize("native_traces", [False, True])
def test_changed_filter_is_noticed(native_traces):
    if native_traces:
        snapshots = native(3, 5)[:2]
    else:
        snapshots = made_of(random_values.traces(random.Random(5)))
    line = tuples(snapshots[0])[0][2][0][1]
    answers = []
    for module, snapshot in zip(MODULES, snapshots, strict=True):
        one, sizes = module.Filter(True, "*"), []
        for attribute, value in [("lineno", line), ("inclusive", False), ("all_frames", True), ("domain", 0),
                                 ("lineno", None), ("inclusive", True), ("domain", 5)]:  # fmt: skip
            setattr(one, attribute, value)
            sizes.append(len(snapshot.filter_traces([one]).traces))
        answers.append(sizes)
    assert answers[0] == answers[1]
    assert len(set(answers[0])) > 1


def test_traces_of_a_snapshot():
    ours, theirs = made_of(random_values.traces(random.Random(3)) + [(0, 5, (("a.py", 1),), 1)])
    assert repr(ours.traces) == repr(theirs.traces) and len(ours.traces) == len(theirs.traces)
    assert [repr(trace) for trace in ours.traces] == [repr(trace) for trace in theirs.traces]
    assert [repr(trace) for trace in ours.traces[1:9:2]] == [repr(trace) for trace in theirs.traces[1:9:2]]
    assert repr(ours.traces[-1]) == repr(theirs.traces[-1])
    assert ours.traces[0] in ours.traces
    assert heapledger.Trace((0, 99999, (("a.py", 1),), 1)) not in ours.traces
    for index in (10**6, -(10**6), "x", None, 1.5):
        same_outcome(ours.traces.__getitem__, theirs.traces.__getitem__, index)
    same_outcome(ours.traces.__contains__, theirs.traces.__contains__, 5)
    assert ours.traces == heapledger.Snapshot(tuples(ours), 9).traces
    assert ours.traces != heapledger.Snapshot([], 9).traces
    assert (ours.traces == 5) is False


def test_native_traces_of_a_snapshot():
    snapshot, theirs, kept = native(3, 9)
    traces = snapshot.traces
    assert len(traces) == len(traces._traces) == len(list(traces)) == len(theirs.traces)
    assert [trace._trace for trace in traces] == list(traces._traces)
    assert repr(traces) == repr(theirs.traces)
    assert traces[5] in traces and traces[-1] == traces[len(traces) - 1]
    assert [repr(trace) for trace in traces[3:60:7]] == [repr(trace) for trace in theirs.traces[3:60:7]]
    same_outcome(traces.__getitem__, theirs.traces.__getitem__, len(traces))
    assert traces == heapledger.Snapshot(list(traces._traces), 3).traces
    del kept


def test_snapshot_attributes_are_free():
    for snapshot in (native(1, 1)[0], heapledger.Snapshot([], 3)):
        snapshot.traceback_limit = 17
        snapshot.note = "mine"
        assert (snapshot.traceback_limit, snapshot.note) == (17, "mine")
        snapshot.traces = heapledger.Snapshot([(0, 5, (("a.py", 1),), 1)], 1).traces
        assert [one.size for one in snapshot.statistics("lineno")] == [5]


# Files


@pytest.fixture
def file(tmp_path):
    return str(tmp_path / "snapshot.pickle")


LOAD_WITH_THE_STDLIB = """
    import pickle, sys, tracemalloc
    snapshot = tracemalloc.Snapshot.load(sys.argv[1])
    assert "heapledger" not in sys.modules
    assert type(snapshot) is tracemalloc.Snapshot
    expected = pickle.load(open(sys.argv[2], "rb"))
    found = [tuple(trace) for trace in snapshot.traces._traces], snapshot.traceback_limit, snapshot.__dict__.get("note")
    assert found == expected, (found, expected)
    snapshot.statistics("lineno"), snapshot.compare_to(snapshot, "traceback")
"""


@pytest.mark.parametrize("kind", ["made", "native", "empty"])
def test_the_stdlib_loads_our_files(kind, file, tmp_path):
    snapshot = {
        "made": lambda: heapledger.Snapshot(random_values.traces(random.Random(1)), 7),
        "native": lambda: native(5, 1)[0],
        "empty": lambda: heapledger.Snapshot([], 1),
    }[kind]()
    snapshot.note = {"mine": [1, 2.5]}
    snapshot.dump(file, "tracemalloc")
    expected = tmp_path / "expected.pickle"
    expected.write_bytes(pickle.dumps((tuples(snapshot), snapshot.traceback_limit, snapshot.note)))
    run(LOAD_WITH_THE_STDLIB, file, expected)


def test_we_load_the_stdlib_s_files(file):
    theirs = tracemalloc.Snapshot(random_values.traces(random.Random(2)), 6)
    theirs.note = "survives"
    theirs.dump(file)
    ours = heapledger.Snapshot.load(file)
    assert type(ours) is heapledger.Snapshot
    assert tuples(ours) == tuples(theirs)
    assert (ours.traceback_limit, ours.note) == (6, "survives")
    assert grouped(ours, "lineno") == grouped(theirs, "lineno")


@pytest.mark.parametrize("make_native", [False, True])
def test_round_trip(make_native, file):
    snapshot = native(4, 2)[0] if make_native else heapledger.Snapshot(random_values.traces(random.Random(4)), 4)
    snapshot.dump(file)
    back = heapledger.Snapshot.load(file)
    assert back.traces == snapshot.traces and tuples(back) == tuples(snapshot)
    for key_type, cumulative in modes():
        assert grouped(back, key_type, cumulative) == grouped(snapshot, key_type, cumulative)
    assert compared(back, snapshot, "traceback") == compared(snapshot, snapshot, "traceback")


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_plain_pickle(protocol):
    for snapshot in (native(4, 3)[0], heapledger.Snapshot(random_values.traces(random.Random(4)), 4)):
        back = pickle.loads(pickle.dumps(snapshot, protocol))
        assert type(back) is heapledger.Snapshot and tuples(back) == tuples(snapshot)
        assert back.traceback_limit == snapshot.traceback_limit


class Malicious:
    def __reduce__(self):
        return exec, ("import builtins; builtins.was_executed = True",)


def test_malicious_files_are_refused(file):
    """A file of snapshots may name our classes only; loading runs nothing else."""
    import builtins

    for value in (Malicious(), [Malicious()], {"x": Malicious()}):
        with open(file, "wb") as stream:
            pickle.dump(value, stream)
        with pytest.raises(pickle.UnpicklingError):
            heapledger.Snapshot.load(file)
        assert not hasattr(builtins, "was_executed")


def test_file_errors(tmp_path):
    ours, theirs = made_of([])
    missing = str(tmp_path / "no" / "file")
    same_outcome(heapledger.Snapshot.load, tracemalloc.Snapshot.load, missing)
    same_outcome(ours.dump, theirs.dump, missing)
    same_outcome(ours.dump, theirs.dump, str(tmp_path))
    for bad in (None, 1.5, [], io.BytesIO()):
        same_outcome(ours.dump, theirs.dump, bad)
        same_outcome(heapledger.Snapshot.load, tracemalloc.Snapshot.load, bad)
    same_outcome(heapledger.Snapshot.load, tracemalloc.Snapshot.load)


def test_snapshots_outlive_the_ledger():
    """Names live in the ledger's name table: a snapshot keeps what it needs of it after stop, clear and new rounds."""
    first, theirs, kept = native(5, 12)
    before = [flat_all(theirs.statistics(key_type)) for key_type in KEY_TYPES]
    del kept
    for limit in (1, 9):
        heapledger.start(limit)
        for number in range(200):
            exec(compile(f"x = bytes({number})\n", f"<other {limit} {number}>", "exec"), {})
            if number % 50 == 0:
                heapledger.clear_traces()
        heapledger.stop()
    gc.collect()
    theirs_again = tracemalloc.Snapshot(tuples(first), 5)
    assert [flat_all(theirs_again.statistics(key_type)) for key_type in KEY_TYPES] == before
    assert [grouped(first, key_type) for key_type in KEY_TYPES] == [grouped(theirs, key_type) for key_type in KEY_TYPES]


@pytest.mark.parametrize("name", ["_match", "_match_traceback", "_match_frame", "_match_frame_impl"])
def test_methods_replaced_on_a_filter(name):
    """They call each other through the instance, as the stdlib's do."""
    traces = [(0, 1, (("a.py", 1),), 1), (0, 2, (("b.py", 1),), 1)]
    for module in (tracemalloc, heapledger):
        one = module.Filter(True, "a.py")
        setattr(one, name, lambda *arguments: True)
        assert len(module.Snapshot(list(traces), 1).filter_traces([one]).traces) == 2
