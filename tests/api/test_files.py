"""Snapshot.dump and Snapshot.load: what is saved comes back, in both formats."""

import datetime
import os
import pickle
import random
import tracemalloc

import heapledger
import hlsnap_reader
import pytest
import random_values
from children import run
from heapledger import _plain
from same import flat_all, outcome, tuples

KEY_TYPES = ("traceback", "filename", "lineno")
FORMATS = ("hlsnap", "tracemalloc")
MAGIC = b"\x89HLS\r\n\x1a\n"


def odd_name(source):
    """File names as os.fsdecode makes them of any bytes, long ones, empty ones."""
    kind = source.randrange(5)
    if kind == 0:
        return os.fsdecode(bytes(source.randrange(1, 256) for _ in range(source.randrange(20))))
    if kind == 1:
        return "".join(chr(source.randrange(0x110000)) for _ in range(source.randrange(10)))
    if kind == 2:
        return "long/" * source.randrange(2000)
    return source.choice(random_values.FILES)


def odd_trace(source, stacks):
    if len(stacks) < 10 or source.random() < 0.3:
        frames = [(odd_name(source), source.choice([0, 1, 7, 2**31, 2**32 - 1])) for _ in range(source.randrange(30))]
        stacks.append(tuple(frames))
    frames = source.choice(stacks)
    total = source.choice([len(frames) or None, len(frames) or None, None, len(frames) + 5, 0, 1, 2**32 - 1])
    size = source.choice([0, 1, 100, 2**20, 2**40, source.randrange(2**50)])
    trace = (source.choice([0, 0, 1, 2**32 - 1]), size, frames, total)
    return [trace] * source.choice([1, 1, 1, 2, 50])


def odd_traces(source):
    stacks, traces = [], []
    for _ in range(source.randrange(60)):
        traces += odd_trace(source, stacks)
    return traces


def native(limit, seed):
    source = random.Random(seed)
    heapledger.start(limit)

    def branch(depth, size):
        return [branch(depth - 1, size + 1), bytes(size)] if depth else [bytearray(size), bytes(size)]

    kept = [branch(source.randint(0, 30), source.randint(0, 700)) for _ in range(40)]
    snapshot = heapledger.take_snapshot()
    heapledger.stop()
    del kept
    return snapshot


def statistics(snapshot):
    found = {key_type: flat_all(snapshot.statistics(key_type)) for key_type in KEY_TYPES}
    for key_type in KEY_TYPES[1:]:
        found["cumulative", key_type] = flat_all(snapshot.statistics(key_type, True))
    return found


def through(snapshot, file, format):
    snapshot.dump(file, format)
    back = heapledger.Snapshot.load(file)
    assert type(back) is heapledger.Snapshot
    assert back.traceback_limit == snapshot.traceback_limit
    assert file.read_bytes().startswith(MAGIC if format == "hlsnap" else b"\x80\x03ctracemalloc")
    return back


@pytest.fixture
def file(tmp_path):
    return tmp_path / "snapshot"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", range(40))
def test_made_of_tuples(format, seed, file):
    snapshot = heapledger.Snapshot(odd_traces(random.Random(seed)), seed)
    back = through(snapshot, file, format)
    assert tuples(back) == tuples(snapshot)
    assert back.traces == snapshot.traces


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", range(10))
def test_statistics_are_the_same(format, seed, file):
    snapshot = heapledger.Snapshot(random_values.traces(random.Random(seed)), 4)
    back = through(snapshot, file, format)
    assert {key: [one[:1] + one[2:] for one in found] for key, found in statistics(back).items()} == {
        key: [one[:1] + one[2:] for one in found] for key, found in statistics(snapshot).items()
    }
    assert flat_all(back.compare_to(snapshot, "lineno")) == flat_all(snapshot.compare_to(snapshot, "lineno"))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("limit", [1, 25])
def test_taken_from_the_ledger(format, limit, file):
    snapshot = native(limit, 5)
    back = through(snapshot, file, format)
    if format == "hlsnap":
        names = [[frame.name for frame in trace.traceback] for trace in back.traces]
        assert names == [[frame.name for frame in trace.traceback] for trace in snapshot.traces]
        assert any("branch" in name for traceback in names for name in traceback if name)
    assert tuples(back) == tuples(snapshot)
    assert statistics(back) == statistics(snapshot)
    assert [trace.traceback.total_nframe for trace in back.traces] == [
        trace.traceback.total_nframe for trace in snapshot.traces
    ]
    filtered = snapshot.filter_traces([heapledger.Filter(True, __file__)])
    assert tuples(through(filtered, file, format)) == tuples(filtered)
    assert tuples(through(back, file, format)) == tuples(snapshot)


def expand(row):
    """The traces of a row of the independent reader."""
    frames = tuple((file.decode("utf-8", "surrogatepass"), line) for file, _, line in reversed(row.stack))
    return [(row.domain, row.size, frames, row.total or None)] * row.live


@pytest.mark.parametrize("seed", range(20))
def test_an_independent_reader_finds_the_same(seed, file):
    source = random.Random(seed)
    made = [trace[:3] + (len(trace[2]) or None,) for trace in odd_traces(source)]  # one total for each stack
    for snapshot in (native(source.choice([1, 2, 25]), seed), heapledger.Snapshot(made, seed)):
        snapshot.note = seed
        snapshot.dump(file)
        content = hlsnap_reader.read(file.read_bytes())
        (one,) = content.snapshots
        assert [trace for row in one.rows for trace in expand(row)] == tuples(heapledger.Snapshot.load(file))
        assert (one.moment, one.frame_limit) == (0, snapshot.traceback_limit)
        assert all(row.allocated >= row.live for row in one.rows)
        assert dict(content.others)[b"ATTR"] == _plain.encode({"note": seed})
        assert (b"META" in dict(content.others)) == bool(snapshot.metadata)


def test_from_one_format_to_the_other(file):
    """The totals of one stack may differ in the standard library's snapshots."""
    run(
        """
        import sys, tracemalloc
        tracemalloc.start(1)
        def make(depth):
            return [make(depth - 1)] if depth else []
        kept = [make(depth) for depth in (1, 5, 9)]
        tracemalloc.take_snapshot().dump(sys.argv[1])
        """,
        file,
    )
    theirs = heapledger.Snapshot.load(file)
    totals = {}
    for _, _, frames, total in tuples(theirs):
        totals.setdefault(frames, set()).add(total)
    assert max(map(len, totals.values())) > 1
    assert tuples(through(theirs, file, "hlsnap")) == tuples(theirs)
    assert tuples(through(theirs, file, "tracemalloc")) == tuples(theirs)


def test_traces_without_total(file):
    snapshot = heapledger.Snapshot([(0, 5, (("a.py", 1),)), (1, 6, ())], 1)
    assert tuples(through(snapshot, file, "tracemalloc")) == tuples(snapshot)
    assert tuples(through(snapshot, file, "hlsnap")) == [(0, 5, (("a.py", 1),), None), (1, 6, (), None)]


def test_many_blocks_take_no_room(file):
    snapshot = heapledger.Snapshot([(0, 5, (("a.py", 1),), 1)] * 100_000, 1)
    assert len(through(snapshot, file, "hlsnap").traces) == 100_000
    assert file.stat().st_size < 500


PLAIN = {
    "text": "über \udc80", "number": -(2**70), "float": 1.5, "none": None, "flags": [True, False], "raw": b"\0\xff",
    "nested": {"a": [(1,), {2: {3, 4}}, frozenset({5})], (1, "k"): []}, "metadata": "the user's", "": 0,
}  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
def test_attributes(format, file):
    for snapshot in (native(2, 1), heapledger.Snapshot([(0, 5, (("a.py", 1),), 1)], 3)):
        vars(snapshot).update(PLAIN)
        back = through(snapshot, file, format)
        found = {name: value for name, value in vars(back).items() if name not in ("traces", "traceback_limit")}
        assert found == PLAIN and list(found) == list(PLAIN)
        assert back.metadata == "the user's"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("limit", [0, 17, -1, 2**40, None, "x", True, 1.5], ids=repr)
def test_frame_limits(format, limit, file):
    """Nothing keeps a user from giving or setting any."""
    snapshot = native(2, 1)
    snapshot.traceback_limit = limit
    for one in (snapshot, heapledger.Snapshot([], limit)):
        back = through(one, file, format)
        assert (back.traceback_limit, type(back.traceback_limit)) == (limit, type(limit))


@pytest.mark.parametrize("format", FORMATS)
def test_attributes_that_cannot_be_saved(format, file):
    snapshot = heapledger.Snapshot([], 1)
    file.write_bytes(b"old")
    loop = []
    loop.append(loop)
    for value, error, text in [
        (["a", "b", datetime.datetime(2020, 1, 1)], TypeError, "attribute 'tags'[2]: a datetime can't be saved; only"),
        ({"x": {"y": object}}, TypeError, "attribute 'tags'['x']['y']: a type can't be saved"),
        (heapledger, TypeError, "attribute 'tags': a module can't be saved"),
        (loop, ValueError, "nested more than 32 levels deep"),
    ]:
        snapshot.tags = value
        kind, raised, message = outcome(snapshot.dump, file, format)
        assert (kind, raised) == ("error", error) and text in message
    deep = []
    for _ in range(30):
        deep = [deep]
    snapshot.tags = deep
    assert outcome(snapshot.dump, file, format)[0] != "error" and heapledger.Snapshot.load(file).tags == deep
    heapledger.Snapshot.load(file).dump(file, "hlsnap")  # what one format takes, the other takes too
    file.write_bytes(b"old")
    snapshot.tags = [deep]
    assert "attribute 'tags'[0]" in outcome(snapshot.dump, file, format)[2]
    snapshot.tags = {10**5000: object()}
    assert outcome(snapshot.dump, file, format)[2].startswith("attribute 'tags'[<int>]: an object can't be saved")
    del snapshot.tags
    vars(snapshot)["n" * 10**6] = object()
    assert len(outcome(snapshot.dump, file, format)[2]) < 300
    del vars(snapshot)["n" * 10**6]
    vars(snapshot)[5] = 6
    assert outcome(snapshot.dump, file, format)[1] is TypeError
    del vars(snapshot)[5]
    snapshot.traces.note = 5
    assert "attributes of a snapshot's traces" in outcome(snapshot.dump, file, format)[2]
    assert file.read_bytes() == b"old" and os.listdir(file.parent) == [file.name]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("trace", "error", "text"),
    [
        ((0, "5", (("a.py", 1),), 1), TypeError, "size must be an int, not str"),
        ((0, 5, (("a.py", "1"),), 1), TypeError, "line number must be an int, not str"),
        ((0, 5, ((b"a.py", 1),), 1), TypeError, "file name must be a str, not bytes"),
        ((0, 5, [("a.py", 1)], 1), TypeError, "unhashable type: 'list'"),
        ((0, 5, (("a.py",),), 1), ValueError, "not enough values to unpack (expected 2, got 1)"),
        ((0, 5, (("a.py", 1),), "x"), TypeError, "total_nframe must be an int, not str"),
        ((0, 5, (("a.py", 1),), -1), OverflowError, "total_nframe -1 is not in range"),
        ((None, 5, (("a.py", 1),), 1), TypeError, "domain must be an int"),
        ((0, -1, (("a.py", 1),), 1), OverflowError, "size -1 is not in range"),
        ((0, 2**63, (("a.py", 1),), 1), OverflowError, "is not in range"),
        ((0, 5), ValueError, "not enough values to unpack (expected 4, got 2)"),
        (7, TypeError, "cannot unpack non-iterable int object"),
    ],
    ids=repr,
)
def test_traces_that_cannot_be_saved(format, trace, error, text, file):
    good = (0, 5, (("a.py", 1),), 1)
    kind, raised, message = outcome(heapledger.Snapshot([good, good, trace, good], 1).dump, file, format)
    assert (kind, raised) == ("error", error)
    assert message == f"traces[2] can't be saved: {message.partition(': ')[2]}" and text in message
    assert not file.exists()


def test_formats(file):
    snapshot = heapledger.Snapshot([], 1)
    for bad in ("pickle", "", 5, b"hlsnap", [], "HLSNAP"):
        kind, raised, message = outcome(snapshot.dump, file, bad)
        assert (kind, raised) == ("error", ValueError)
        assert "'hlsnap' or 'tracemalloc'" in message and repr(bad) in message
    assert not file.exists()
    snapshot.dump(file)
    assert file.read_bytes().startswith(MAGIC)
    snapshot.dump(filename=file, format=None)
    assert file.read_bytes().startswith(MAGIC)


def test_the_default_while_installed(tmp_path):
    run(
        """
        import sys, heapledger
        snapshot = heapledger.Snapshot([], 1)
        heapledger.install()
        snapshot.dump("installed")
        snapshot.dump("named", format="hlsnap")
        heapledger.uninstall()
        snapshot.dump("not")
        starts = [open(name, "rb").read(4) for name in ("installed", "named", "not")]
        assert starts == [b"\\x80\\x03ct", b"\\x89HLS", b"\\x89HLS"], starts
        """
    )


def test_subclasses(file):
    class Special(heapledger.Snapshot):
        pass

    for format in FORMATS:
        snapshot = Special([(0, 5, (("a.py", 1),), 1)], 1)
        snapshot.note = 1
        back = through(snapshot, file, format)
        assert type(back) is heapledger.Snapshot and back.note == 1


LOAD_WITHOUT_HEAPLEDGER = """
    import pickle, sys, tracemalloc
    snapshot = tracemalloc.Snapshot.load(sys.argv[1])
    assert "heapledger" not in sys.modules and type(snapshot) is tracemalloc.Snapshot
    expected = pickle.load(open(sys.argv[2], "rb"))
    assert snapshot.traces._traces == expected, (snapshot.traces._traces, expected)
    assert (snapshot.traceback_limit, snapshot.note) == (25, {"a": {1, 2}})
    snapshot.statistics("lineno"), snapshot.compare_to(snapshot, "traceback")
    try:
        import heapledger
    except ImportError:
        pass
    else:
        raise SystemExit("heapledger is there")
"""


def test_the_standard_library_alone_loads_our_pickles(file, tmp_path):
    snapshot = native(25, 3)
    snapshot.note = {"a": {1, 2}}
    snapshot.dump(file, "tracemalloc")
    expected = tmp_path / "expected"
    expected.write_bytes(pickle.dumps(tuples(snapshot)))
    run(LOAD_WITHOUT_HEAPLEDGER, file, expected, options=("-I", "-S"))


def test_we_load_the_standard_library_s_pickles(file):
    answer = run(
        """
        import sys, tracemalloc
        tracemalloc.start(7)
        kept = [bytes(n) for n in range(2000)]
        snapshot = tracemalloc.take_snapshot()
        snapshot.note = {"a": (1, 2)}
        snapshot.dump(sys.argv[1])
        print(len(snapshot.traces), sum(trace.size for trace in snapshot.traces))
        """,
        file,
        options=("-I", "-S"),
    )
    back = heapledger.Snapshot.load(file)
    assert answer.split() == [str(len(back.traces)), str(sum(trace.size for trace in back.traces))]
    assert back.traceback_limit == 7 and back.note == {"a": (1, 2)} and back.metadata == {}
    theirs = tracemalloc.Snapshot.load(str(file))
    assert tuples(back) == tuples(theirs)


def test_names_of_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    snapshot = heapledger.Snapshot([], 1)
    for name in ("plain", b"bytes", tmp_path / "path", "\udcff", "x" * 255, "./a/../b"):
        os.makedirs("a", exist_ok=True)
        snapshot.dump(name)
        heapledger.Snapshot.load(name)
        os.unlink(name)
    assert os.listdir() == ["a"]
    for number in (os.open("by number", os.O_WRONLY | os.O_CREAT), os.open("by number", os.O_RDWR)):
        snapshot.dump(number)
        with pytest.raises(OSError):
            os.close(number)  # as open() does
    assert heapledger.Snapshot.load(os.open("by number", os.O_RDONLY)).traceback_limit == 1


def test_a_dump_leaves_nothing_in_the_ledger(file):
    heapledger.start(1)
    kept = [bytes(size) for size in range(500)]
    snapshot = heapledger.take_snapshot()
    snapshot.note = {"a": [1, 2, {3: (4, 5)}]}
    made = heapledger.Snapshot(tuples(snapshot)[:50], 1)
    results = []
    folder = os.path.dirname(heapledger.__file__)
    for _ in range(3):
        for format in FORMATS:
            for one in (snapshot, made):
                one.dump(file, format)
                results.append(heapledger.Snapshot.load(file))
                results.append(one.metadata)
    left = [trace for trace in heapledger._get_traces() if trace[2][0][0].startswith(folder)]
    assert left == []
    del kept, results
