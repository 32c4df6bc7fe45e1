"""Frame, Traceback, Trace, Statistic, StatisticDiff: value by value like the stdlib's classes."""

import copy
import itertools
import operator
import pickle
import random
import tracemalloc
from collections.abc import Sequence

import heapledger
import pytest
import random_values
from same import outcome, same_outcome

OPERATORS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
CASES = 150


def normal(value):
    """A value of either implementation in terms that can be compared: objects become their text and class name."""
    if isinstance(value, (list, tuple)):
        return type(value)(normal(part) for part in value)
    if type(value).__module__ in ("heapledger", "heapledger._ledger", "tracemalloc"):
        return type(value).__name__, outcome(repr, value)
    return value


def same(function, ours, theirs):
    """`function` answers the same for both objects, error included."""
    our, their = outcome(function, ours), outcome(function, theirs)
    assert normal(our) == normal(their)
    return our


def pairs(make, seed, count=CASES):
    """The same random object in both implementations."""
    source = random.Random(seed)
    for _ in range(count):
        name, arguments = make(source)
        yield getattr(heapledger, name)(*arguments), getattr(tracemalloc, name)(*arguments)


def make_frame(source):
    return "Frame", (random_values.frame(source),)


def make_traceback(source):
    stack = random_values.frames(source) if source.random() < 0.95 else ()
    return "Traceback", (stack,) if source.random() < 0.5 else (stack, source.choice([None, 7, 1, 0]))


def make_trace(source):
    return "Trace", (random_values.trace(source),)


MAKERS = {"Frame": make_frame, "Traceback": make_traceback, "Trace": make_trace}


@pytest.mark.parametrize("name", MAKERS)
def test_texts(name):
    for ours, theirs in pairs(MAKERS[name], 1):
        same(str, ours, theirs)
        same(repr, ours, theirs)


@pytest.mark.parametrize("name", MAKERS)
def test_order_equality_and_hash(name):
    made = list(pairs(MAKERS[name], 2, 40))
    for (our_left, their_left), (our_right, their_right) in itertools.product(made, made):
        for compare in OPERATORS:
            our, their = outcome(compare, our_left, our_right), outcome(compare, their_left, their_right)
            assert our == their
        if our_left == our_right:
            assert hash(our_left) == hash(our_right)
    for ours, theirs in made:
        assert hash(ours) == hash(theirs)
        for other in (None, 1, "a.py", (), object()):
            assert (ours == other) is (theirs == other) is False
            for compare in OPERATORS[2:]:
                same(lambda value, compare=compare, other=other: compare(value, other), ours, theirs)


def test_the_two_implementations_are_strangers():
    """Equal content, but neither knows the other's class, as with any two classes."""
    for ours, theirs in pairs(make_frame, 3, 20):
        assert ours != theirs
        with pytest.raises(TypeError):
            operator.lt(ours, theirs)


def test_frame_attributes():
    for ours, theirs in pairs(make_frame, 4):
        assert (ours.filename, ours.lineno) == (theirs.filename, theirs.lineno)
        assert ours._frame == theirs._frame
        assert ours.name is None or isinstance(ours.name, str)
    for attribute in ("filename", "lineno"):
        with pytest.raises(AttributeError):
            setattr(heapledger.Frame(("a.py", 1)), attribute, 1)


def test_traceback_as_a_sequence():
    source = random.Random(5)
    for ours, theirs in pairs(make_traceback, 5):
        assert isinstance(ours, Sequence)
        assert len(ours) == len(theirs)
        assert ours.total_nframe == theirs.total_nframe
        assert ours._frames == theirs._frames
        assert bool(ours) == bool(theirs)
        for function in (list, tuple, reversed, iter):
            same(lambda value, function=function: list(function(value)), ours, theirs)
        for _ in range(10):
            start, stop, step = (source.choice([None, *range(-5, 6)]) for _ in range(3))
            same(lambda value, part=slice(start, stop, step): value[part], ours, theirs)
        for index in (*range(-6, 7), True, 2**70, -(2**70)):
            same(lambda value, index=index: value[index], ours, theirs)
        for index in ("a", None, 1.5, ()):
            # The text comes from tuple in the stdlib.
            same(lambda value, index=index: value[index], ours, theirs)
        frame = random_values.frame(source)
        assert (heapledger.Frame(frame) in ours) == (tracemalloc.Frame(frame) in theirs)
        for frame in ours._frames:
            assert heapledger.Frame(frame) in ours
            assert ours.index(heapledger.Frame(frame)) == theirs.index(tracemalloc.Frame(frame))
            assert ours.count(heapledger.Frame(frame)) == theirs.count(tracemalloc.Frame(frame))
        for wrong in (None, 1, frame):
            same(lambda value, wrong=wrong: wrong in value, ours, theirs)


def test_traceback_format(tmp_path):
    path = tmp_path / "source.py"
    path.write_text("first = 1\n\n    third = 3  \n\tfourth\n", encoding="utf-8")
    source = random.Random(6)
    for _ in range(60):
        stack = tuple(
            (source.choice([str(path), "missing.py"]), source.randint(0, 6)) for _ in range(source.randint(0, 5))
        )
        ours, theirs = heapledger.Traceback(stack), tracemalloc.Traceback(stack)
        for limit in (None, *range(-6, 7), True, 10**30, "x", 1.5):
            for newest_first in (False, True, [], "yes"):
                same_outcome_of_format(ours, theirs, limit, newest_first)


def same_outcome_of_format(ours, theirs, limit, newest_first):
    assert outcome(ours.format, limit, newest_first) == outcome(theirs.format, limit, newest_first)
    assert outcome(ours.format, limit=limit, most_recent_first=newest_first) == outcome(
        theirs.format, limit=limit, most_recent_first=newest_first
    )


def test_traceback_frames_can_be_set():
    for ours, theirs in pairs(make_traceback, 7, 30):
        for traceback in (ours, theirs):
            traceback._frames = (("set.py", 5), ("set.py", 6))
        same(repr, ours, theirs)
        same(list, ours, theirs)
        same(hash, ours, theirs)
        same(str, ours, theirs)


def test_trace_attributes():
    for ours, theirs in pairs(make_trace, 8):
        assert (ours.domain, ours.size) == (theirs.domain, theirs.size)
        assert type(ours.traceback) is heapledger.Traceback
        assert normal(ours.traceback) == normal(theirs.traceback)
        assert ours.traceback.total_nframe == theirs.traceback.total_nframe
        assert ours._trace == theirs._trace
        for attribute in ("domain", "size", "traceback"):
            with pytest.raises(AttributeError):
                setattr(ours, attribute, 1)


SIZES = [
    *(sign * number for sign in (1, -1) for number in (0, 1, 99, 100, 101, 1023, 1024, 10239, 10240, 102399, 102400)),
    *(2**power + difference for power in (23, 27, 30, 33, 37, 40, 43, 50, 63, 64, 80) for difference in (-1, 0, 1)),
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_sizes_in_texts(size):
    frame = (("a.py", 3),)
    for count in (0, 1, 2, 7, -3):
        ours = heapledger.Statistic(heapledger.Traceback(frame), size, count)
        theirs = tracemalloc.Statistic(tracemalloc.Traceback(frame), size, count)
        assert (str(ours), repr(ours)) == (str(theirs), repr(theirs))
        ours = heapledger.StatisticDiff(heapledger.Traceback(frame), size, -size, count, -count)
        theirs = tracemalloc.StatisticDiff(tracemalloc.Traceback(frame), size, -size, count, -count)
        assert (str(ours), repr(ours)) == (str(theirs), repr(theirs))
    assert heapledger._format_size(size, True) == tracemalloc._format_size(size, True)
    assert heapledger._format_size(size, False) == tracemalloc._format_size(size, False)
    assert heapledger._format_size(size / 3, False) == tracemalloc._format_size(size / 3, False)


def statistics(source, count, difference):
    made = []
    for _ in range(count):
        frames = random_values.frames(source)
        numbers = [source.choice([0, 1, 2, 100, 5000, -7]) for _ in range(4 if difference else 2)]
        name = "StatisticDiff" if difference else "Statistic"
        made.append(tuple(getattr(m, name)(m.Traceback(frames), *numbers) for m in (heapledger, tracemalloc)))
    return made


@pytest.mark.parametrize("difference", [False, True])
def test_statistics(difference):
    made = statistics(random.Random(9), 40, difference)
    for ours, theirs in made:
        assert (str(ours), repr(ours), hash(ours)) == (str(theirs), repr(theirs), hash(theirs))
        assert normal(ours._sort_key()) == normal(theirs._sort_key())
        assert ours == type(ours)(*(getattr(ours, name) for name in type(theirs).__slots__))
        for name in type(theirs).__slots__:
            assert normal(getattr(ours, name)) == normal(getattr(theirs, name))
            setattr(ours, name, 5)
            assert getattr(ours, name) == 5
        same_outcome(type(ours), type(theirs))
    made = statistics(random.Random(10), 30, difference)
    for (our_left, their_left), (our_right, their_right) in itertools.product(made, made):
        assert (our_left == our_right) == (their_left == their_right)
        assert (our_left != our_right) == (their_left != their_right)
        assert (our_left._sort_key() < our_right._sort_key()) == (their_left._sort_key() < their_right._sort_key())
    for compare in OPERATORS[2:]:
        same(lambda value, compare=compare: compare(value, value), *made[0])


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling(name, protocol):
    """At protocols 0 and 1 the stdlib's classes cannot be pickled (they have __slots__); ours can."""
    for ours, _ in pairs(MAKERS[name], 11, 15):
        back = pickle.loads(pickle.dumps(ours, protocol))
        assert type(back) is type(ours) and back == ours and repr(back) == repr(ours)


@pytest.mark.parametrize("name", MAKERS)
def test_copying(name):
    for ours, _ in pairs(MAKERS[name], 12, 20):
        for twin in (copy.copy(ours), copy.deepcopy(ours)):
            assert type(twin) is type(ours) and twin == ours and repr(twin) == repr(ours)
    statistic = heapledger.Statistic(heapledger.Traceback((("a.py", 1),)), 5, 6)
    assert copy.deepcopy(statistic) == statistic == pickle.loads(pickle.dumps(statistic))


def test_native_objects_are_like_made_ones():
    """What comes from the ledger behaves as what a caller makes of the same tuples."""
    heapledger.start(4)
    kept = [bytes(size) for size in range(3000, 3040)]
    snapshot = heapledger.take_snapshot()
    heapledger.stop()
    assert len(snapshot.traces) >= len(kept)
    for trace in itertools.islice(snapshot.traces, 60):
        made = heapledger.Trace(trace._trace)
        theirs = tracemalloc.Trace(trace._trace)
        assert trace == made and hash(trace) == hash(made) == hash(theirs)
        assert (str(trace), repr(trace)) == (str(theirs), repr(theirs)) == (str(made), repr(made))
        traceback = trace.traceback
        assert normal(list(traceback)) == normal(list(theirs.traceback))
        assert traceback == made.traceback and hash(traceback) == hash(theirs.traceback)
        assert traceback[-1] == heapledger.Frame(theirs.traceback._frames[-1])
        assert traceback[-1] in traceback and traceback.format() == theirs.traceback.format()
        assert pickle.loads(pickle.dumps(trace)) == trace == copy.deepcopy(trace)
        assert pickle.loads(pickle.dumps(traceback)) == traceback == copy.copy(traceback)
    for statistic in snapshot.statistics("traceback")[:30]:
        twin = pickle.loads(pickle.dumps(statistic))
        assert twin == statistic and repr(twin) == repr(statistic) and hash(twin) == hash(statistic)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Frame", (("a.py", 1),)),
        ("Traceback", ((("a.py", 1), ("b.py", 2)), 5)),
        ("Trace", ((0, 10, (("a.py", 1),), 1),)),
        ("Statistic", ((("a.py", 1),), 10, 1)),
        ("StatisticDiff", ((("a.py", 1),), 10, 1, 1, 1)),
        ("Snapshot", ([(0, 10, (("a.py", 1),), 1)], 2)),
        ("Filter", (True, "*.py", 3, True, 4)),
        ("DomainFilter", (False, 3)),
        ("BaseFilter", (True,)),
    ],
)
def test_subclassing(name, arguments):
    for module in (heapledger, tracemalloc):
        base = getattr(module, name)

        class Derived(base):
            def __init__(self, *values):
                super().__init__(*values)
                self.extra = "more"

            def __repr__(self):
                return "derived " + super().__repr__()

        made = Derived(*arguments)
        assert made.extra == "more" and isinstance(made, base) and repr(made).startswith("derived ")
        if name in ("Frame", "Trace", "Traceback"):
            assert made == base(*arguments) and hash(made) == hash(base(*arguments))


@pytest.mark.parametrize("name", ["Frame", "Traceback", "Trace", "Statistic", "StatisticDiff"])
def test_no_attributes_beyond_the_slots(name):
    arguments = {"Frame": 1, "Traceback": 1, "Trace": 1, "Statistic": 3, "StatisticDiff": 5}[name]
    for module in (heapledger, tracemalloc):
        value = getattr(module, name)(*([(("a.py", 1),)] * arguments))
        # Traceback inherits from Sequence in the stdlib, which has slots too.
        with pytest.raises(AttributeError):
            value.something_else = 1


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (name, wrong)
        for name in ("Frame", "Traceback", "Trace", "Statistic", "StatisticDiff", "Snapshot", "Filter", "DomainFilter",
                     "BaseFilter")
        for wrong in ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), (1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6, 7))
    ],
)  # fmt: skip
def test_constructor_arguments(name, wrong):
    """The number of arguments, and what constructors check at once."""
    same_outcome(getattr(heapledger, name), getattr(tracemalloc, name), *wrong)
    same_outcome(getattr(heapledger, name), getattr(tracemalloc, name), *wrong, unknown=1)


@pytest.mark.parametrize(
    "value", [None, 1, (), (1,), ("a.py",), ("a.py", 1, 2), "ab", ["a.py", 3], {"a": 1}, object()], ids=repr
)
@pytest.mark.parametrize("name", ["Frame", "Traceback", "Trace"])
def test_odd_contents(name, value):
    """The stdlib keeps whatever it is given and fails when it is used, or does not."""
    ours, theirs = same_outcome(getattr(heapledger, name), getattr(tracemalloc, name), value)
    if ours is None:
        return

    def at(index):
        return lambda one: one[index]

    uses = [str, repr, hash, len, list, at(0), at(slice(1)), lambda one: one == one, lambda one: one < one]
    uses += [
        operator.attrgetter(name) for name in ("filename", "lineno", "domain", "size", "traceback", "total_nframe")
    ]
    if isinstance(value, object) and type(value) is object:
        uses = uses[1:]
    for use in uses:
        same(use, ours, theirs)
