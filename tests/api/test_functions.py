"""The module's functions: results, errors and error texts as the stdlib's of the running version."""

import gc
import sys
import tracemalloc
import weakref

import heapledger
import pytest
from same import both, frames_of, outcome, same_outcome

NAMES = [
    "start", "stop", "is_tracing", "clear_traces", "reset_peak", "get_traced_memory", "get_tracemalloc_memory",
    "get_traceback_limit", "get_object_traceback", "take_snapshot", "_get_traces", "_get_object_traceback",
]  # fmt: skip
TEXT = "x"
BAD_LIMITS = [
    0,
    -1,
    65536,
    2**30,
    2**31,
    -(2**31),
    -(2**31) - 1,
    2**63,
    2**200,
    TEXT,
    b"1",
    None,
    1.5,
    [],
    {},
    object,
    ...,
]
GOOD_LIMITS = [1, 2, 25, 65535, True]


def line_here(offset=0):
    return sys._getframe(1).f_lineno + offset


@pytest.fixture
def stop_both():
    yield
    heapledger.stop()
    tracemalloc.stop()


def test_every_public_name_of_the_stdlib_is_here():
    public = [
        name for name in vars(tracemalloc) if name[0] != "_" or name in ("_get_traces", "_Traces", "_format_size")
    ]
    imported_modules = {"fnmatch", "linecache", "os", "pickle", "Sequence", "Iterable", "total_ordering"}
    assert [name for name in public if not hasattr(heapledger, name) and name not in imported_modules] == []


@pytest.mark.parametrize("limit", BAD_LIMITS, ids=repr)
def test_bad_limit(limit, stop_both):
    same_outcome(*both("start"), limit)
    assert outcome(heapledger.start, limit)[0] == "error"
    assert not heapledger.is_tracing()


@pytest.mark.parametrize("limit", BAD_LIMITS, ids=repr)
def test_bad_limit_while_tracing(limit, stop_both):
    """The range is checked first, then nothing happens."""
    heapledger.start(3), tracemalloc.start(3)
    same_outcome(*both("start"), limit)
    assert heapledger.get_traceback_limit() == tracemalloc.get_traceback_limit() == 3


@pytest.mark.parametrize("limit", GOOD_LIMITS, ids=repr)
def test_limit_survives_stop(limit, stop_both):
    for module in (heapledger, tracemalloc):
        assert module.start(limit) is None
        assert module.get_traceback_limit() == limit
        module.start(limit + 1 if limit < 65535 else 1)
        assert module.get_traceback_limit() == limit
        assert module.stop() is None
        assert module.get_traceback_limit() == limit


def test_limit_is_one_at_first():
    from children import run

    assert run("import heapledger; print(heapledger.get_traceback_limit(), heapledger.is_tracing())") == "1 False\n"


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@pytest.mark.parametrize("value", [0, 7, 70000, 2**40, TEXT, ZeroDivisionError("by __index__")], ids=repr)
def test_limit_by_index(value, stop_both):
    same_outcome(*both("start"), Index(value))
    assert heapledger.is_tracing() == tracemalloc.is_tracing() == (value == 7)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("arguments", "named"),
    [((1, 2), {}), ((1, 2, 3), {}), ((), {"nframe": 1}), ((), {"obj": 1, "x": 2}), ((1,), {"x": 2}), ((), {"x": 2})],
    ids=repr,
)
def test_wrong_arguments(name, arguments, named, stop_both):
    ours, theirs = both(name)
    if name == "start" and named:  # it has a keyword of its own, so the message is another
        for function in (ours, theirs):
            assert outcome(function, *arguments, **named)[:2] == ("error", TypeError)
    else:
        same_outcome(ours, theirs, *arguments, **named)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "start" and "object" not in name])
def test_one_argument_too_many(name, stop_both):
    same_outcome(*both(name), None)
    assert outcome(getattr(heapledger, name), None)[:2] == ("error", TypeError)


@pytest.mark.parametrize("name", ["get_object_traceback", "_get_object_traceback"])
def test_missing_argument(name):
    assert outcome(getattr(heapledger, name))[:2] == ("error", TypeError)
    same_outcome(*both(name))


def test_stopped():
    same_outcome(*both("take_snapshot"))
    assert outcome(heapledger.take_snapshot)[:2] == ("error", RuntimeError)
    assert heapledger.get_traced_memory() == tracemalloc.get_traced_memory() == (0, 0)
    assert heapledger._get_traces() == tracemalloc._get_traces() == []
    assert heapledger.get_object_traceback(object()) is None
    assert heapledger._get_object_traceback(object()) is None
    assert heapledger.clear_traces() is heapledger.reset_peak() is heapledger.stop() is None
    assert heapledger.get_tracemalloc_memory() == tracemalloc.get_tracemalloc_memory()


@pytest.mark.parametrize("size", [0, 1, 100, 512, 513, 5000, 100_000, 3_000_000])
def test_traced_memory_is_exact(size):
    """Both of the numbers; a block more, of another size or not freed would show."""
    heapledger.start()
    bytes(size)  # whatever a first call allocates for good
    before, _ = heapledger.get_traced_memory()
    heapledger.reset_peak()
    block = bytes(size)
    after, peak = heapledger.get_traced_memory()
    # before, after and peak themselves are alive or not at each point, so they must be taken into account.
    numbers = sys.getsizeof(before) if before > 256 else 0
    expected = sys.getsizeof(block) if size > 1 else 0
    assert numbers <= after - before - expected <= numbers + 150
    assert peak >= after
    traces = [trace for trace in heapledger._get_traces() if trace[1] == sys.getsizeof(block)]
    assert size < 2000 or len(traces) == 1
    del block
    assert heapledger.get_traced_memory()[0] <= after - expected + 150


def test_traced_memory_is_the_sum_of_the_traces():
    heapledger.start(5)
    kept = [bytearray(size) for size in range(0, 5000, 17)]
    traces = heapledger._get_traces()
    current, peak = heapledger.get_traced_memory()
    # The tuple, two numbers and the variables' objects come after the traces; the list of traces is not entered.
    assert 0 <= current - sum(trace[1] for trace in traces) < 300
    assert peak >= current
    del kept


def test_peak_and_reset():
    heapledger.start()
    block = bytearray(1_000_000)
    del block
    current, peak = heapledger.get_traced_memory()
    assert current < 100_000 and peak > 1_000_000
    heapledger.reset_peak()
    current, peak = heapledger.get_traced_memory()
    assert peak < 100_000
    block = bytearray(500_000)
    assert heapledger.get_traced_memory()[1] > 500_000
    heapledger.clear_traces()
    assert heapledger.get_traced_memory()[1] < 10_000
    assert heapledger.get_object_traceback(block) is None
    del block
    assert heapledger.get_traced_memory()[0] >= 0


def test_clear_traces_keeps_tracing():
    heapledger.start(4)
    old = bytes(1234)
    heapledger.clear_traces()
    new = bytes(1234)
    assert heapledger.is_tracing() and heapledger.get_traceback_limit() == 4
    assert heapledger.get_object_traceback(old) is None
    assert heapledger.get_object_traceback(new)[-1].lineno == line_here(-3)
    assert [trace[1] for trace in heapledger._get_traces()].count(sys.getsizeof(new)) == 1


def test_rounds():
    for limit in (1, 3, 1, 30, 2):
        heapledger.start(limit)
        block = bytes(2000 + limit)
        line = line_here(-1)
        traceback = heapledger.get_object_traceback(block)
        assert len(traceback) <= limit and traceback[-1] == heapledger.Frame((__file__, line))
        assert len(traceback) == limit or traceback.total_nframe in (None, len(traceback))
        heapledger.stop()
        assert heapledger._get_traces() == []
        assert heapledger.get_object_traceback(block) is None
        del block


class Plain:
    pass


class Slotted:
    __slots__ = ("a", "b")


class SlottedWeak:
    __slots__ = ("a", "__weakref__")


class SlottedDict:
    __slots__ = ("a", "__dict__")


class SmallBytes(bytes):
    pass


class ListWithDict(list):
    pass


class TupleWithDict(tuple):
    pass


class IntWithDict(int):
    pass


class Failing(Exception):
    pass


class Meta(type):
    pass


MAKERS = {
    "plain": Plain,
    "slots": Slotted,
    "slots and weak references": SlottedWeak,
    "slots and a dict": SlottedDict,
    "object()": object,
    "bytes": lambda: bytes(3000),
    "bytes subclass": lambda: SmallBytes(100),
    "list": lambda: [1, 2, 3],
    "list subclass": lambda: ListWithDict([1]),
    "tuple subclass": lambda: TupleWithDict((1, 2)),
    "int subclass": lambda: IntWithDict(5),
    "int": lambda: 10**50,
    "str": lambda: "".join(["x"] * 1000),
    "set": lambda: {1, 2},
    "dict": lambda: {"a": 1},
    "function": lambda: lambda: None,
    "exception": lambda: Failing("x"),
    "class": lambda: Meta("Made", (), {}),
    "bytearray": lambda: bytearray(10),
    "generator": lambda: (x for x in ()),
    "weak reference": lambda: weakref.ref(Plain, lambda reference: None),
    "memoryview": lambda: memoryview(b"abc"),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_object_traceback(kind):
    """Right on every version; the stdlib of 3.11 answers None for plain instances."""
    make = MAKERS[kind]
    gc.collect()  # empty the freelist of floats, which is on
    heapledger.start(30)
    made = make()
    line = line_here(-1)
    traceback = heapledger.get_object_traceback(made)
    assert type(traceback) is heapledger.Traceback
    assert (__file__, line) in frames_of(traceback), f"{traceback!r}"
    assert heapledger._get_object_traceback(made) == tuple(reversed(traceback._frames))
    heapledger.stop()
    assert heapledger.get_object_traceback(made) is None


@pytest.mark.parametrize("kind", MAKERS)
def test_object_traceback_as_the_stdlib(kind):
    gc.collect()
    tracemalloc.start(30)
    heapledger.start(30)
    made = MAKERS[kind]()
    ours, theirs = heapledger._get_object_traceback(made), tracemalloc._get_object_traceback(made)
    if theirs is not None or sys.version_info >= (3, 12):
        assert ours == theirs
    heapledger.stop()
    tracemalloc.stop()


@pytest.mark.parametrize("old", [None, 5, (), "", Ellipsis, int, test_rounds, sys], ids=repr)
def test_object_older_than_start(old):
    heapledger.start()
    assert heapledger.get_object_traceback(old) is None


def test_memory():
    stopped = heapledger.memory()
    assert set(stopped) >= {"map", "sites", "names", "snapshots", "total"}
    heapledger.start(10)
    kept = [bytes(size) for size in range(3000)]
    tables = heapledger.memory()
    value = heapledger.get_tracemalloc_memory()
    assert tables["total"] == sum(size for name, size in tables.items() if name != "total")
    assert all(type(size) is int and size >= 0 for size in tables.values())
    assert tables["map"] > 0 and tables["sites"] > 0 and tables["names"] > 0
    assert tables["total"] - tables["snapshots"] <= value <= 2 * tables["total"]
    snapshot = heapledger.take_snapshot()
    assert heapledger.memory()["snapshots"] > tables["snapshots"]
    heapledger.stop()
    assert heapledger.memory()["map"] == 0
    assert heapledger.memory()["snapshots"] > stopped["snapshots"]
    del snapshot, kept
    gc.collect()
    assert heapledger.memory()["snapshots"] <= stopped["snapshots"]
    assert heapledger.get_tracemalloc_memory() == tracemalloc.get_tracemalloc_memory()


def test_tracebacks_are_shared_by_identity():
    heapledger.start(3)
    kept = [bytes(size) for size in range(5000, 5050)]
    frames = [trace[2] for trace in heapledger._get_traces() if trace[1] >= 5000 + sys.getsizeof(b"")]
    assert len(frames) >= 50
    distinct = {}
    assert all(distinct.setdefault(one, one) is one for one in frames)
    del kept


def test_traces_look_like_the_stdlib_s():
    heapledger.start(2)
    kept = [object() for _ in range(10)]
    for domain, size, frames, total in heapledger._get_traces():
        assert type(domain) is int and type(size) is int and type(frames) is tuple
        assert total is None or (type(total) is int and total >= len(frames))
        assert 1 <= len(frames) <= 2
        for frame in frames:
            assert type(frame) is tuple and type(frame[0]) is str and type(frame[1]) is int and len(frame) == 2
    del kept


def test_frame_names():
    """The one thing more than the stdlib."""

    def allocating():
        return bytes(4321)

    heapledger.start(5)
    traceback = heapledger.get_object_traceback(allocating())
    assert [frame.name for frame in traceback[-2:]] == ["test_frame_names", "allocating"] or [
        frame.name.rpartition(".")[2] for frame in traceback[-2:]
    ] == ["test_frame_names", "allocating"]
