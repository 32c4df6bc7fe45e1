"""Filter._match_frame and _match_traceback: file name patterns mean what fnmatch says."""

import fnmatch
import random
import tracemalloc

import heapledger
import pytest
import random_values
from same import outcome

NAMES = [
    *random_values.FILES,
    "a",
    "aa",
    "ab",
    "ba",
    "a.b",
    "a-b",
    "]",
    "[",
    "!",
    "-",
    "^",
    "\\",
    "a]b",
    "x\ny",
    "/",
    "//",
]


def matches(pattern, name):
    return heapledger.Filter(True, pattern)._match_frame(name, 1)


@pytest.mark.parametrize("pattern", random_values.PATTERNS, ids=ascii)
def test_known_patterns(pattern):
    for name in NAMES:
        expected = tracemalloc.Filter(True, pattern)._match_frame(name, 1)
        assert matches(pattern, name) == expected, (pattern, name)
        if not pattern.endswith("c") and not name.endswith("c"):
            assert expected == fnmatch.fnmatch(name, pattern)


@pytest.mark.parametrize("seed", range(40))
def test_random_patterns(seed):
    """Short words over few letters, so that about every third pair matches."""
    source = random.Random(seed)
    letters = "ab*?[]!-^\\cé€\n"
    hits = 0
    for _ in range(400):
        pattern = "".join(source.choice(letters) for _ in range(source.randint(0, 7)))
        name = "".join(source.choice("ab]-!^\\cé€\n") for _ in range(source.randint(0, 5)))
        expected = fnmatch.fnmatchcase(name, pattern)
        assert matches(pattern, name) == expected, (pattern, name)
        hits += expected
    assert hits > 3


@pytest.mark.parametrize("seed", range(20))
def test_frames_and_tracebacks(seed):
    source = random.Random(seed)
    for _ in range(100):
        name, values = random_values.filter_recipe(source)
        ours, theirs = getattr(heapledger, name)(*values), getattr(tracemalloc, name)(*values)
        trace = random_values.trace(source)
        assert bool(ours._match(trace)) == bool(theirs._match(trace)), (values, trace)
        if name == "Filter":
            for frame in trace[2]:
                assert bool(ours._match_frame(*frame)) == bool(theirs._match_frame(*frame)), (values, frame)
            assert bool(ours._match_traceback(trace[2])) == bool(theirs._match_traceback(trace[2])), (values, trace)


def test_long_patterns_are_quick():
    """Time is bounded by the product of the lengths; backtracking without bound would not end."""
    pattern = "*a" * 60 + "b"
    assert not matches(pattern, "a" * 3000)
    assert matches("*a" * 60, "a" * 3000)
    snapshot = heapledger.Snapshot([(0, 5, (("a" * 3000, 1),), 1)], 1)
    assert len(snapshot.filter_traces([heapledger.Filter(True, pattern)]).traces) == 0


@pytest.mark.parametrize("bad", [None, 5, b"a.py", 1.5, ["a"], object], ids=repr)
def test_bad_pattern(bad):
    assert outcome(heapledger.Filter, True, bad) == outcome(tracemalloc.Filter, True, bad) or isinstance(bad, bytes)


@pytest.mark.parametrize(
    "arguments", [(), ("a",), (5, 1), (None, 1), ("a", 1, 2), ("a", None), ("a.py", "x")], ids=repr
)
def test_bad_frames(arguments):
    ours, theirs = heapledger.Filter(True, "a*", 3), tracemalloc.Filter(True, "a*", 3)
    our, their = outcome(ours._match_frame, *arguments), outcome(theirs._match_frame, *arguments)
    assert our == their
