"""The comparison itself: it is silent about equal traces and reports every kind of change."""

import sys

import comparison
import pytest

FILE, OTHER, HARNESS = "/program.py", "/library.py", "/harness.py"
TRACES = [
    (0, 100, ((FILE, 3), (FILE, 9)), 2),
    (0, 100, ((FILE, 3), (FILE, 9)), 2),
    (0, 640, ((OTHER, 5), (FILE, 3)), 2),
    (7, 33, ((FILE, 4), (FILE, 9)), 2),
    (0, 41, ((FILE, 1), (FILE, 9)), 30),
    (0, 55, ((HARNESS, 2),), 1),
    (0, 24, ((FILE, 6),), 1),
    (0, 24, ((FILE, 8),), 1),
]
FLOATS = comparison.Explanation("floats", frozenset({24}), "for these tests")


def differences(ours, theirs=TRACES, explanations=()):
    return comparison.compare(ours, theirs, 2, {HARNESS}, explanations).differences


def test_equal():
    report = comparison.compare(list(reversed(TRACES)), TRACES, 2, {HARNESS})
    assert report.differences == []
    assert report.compared == 7


@pytest.mark.parametrize(
    ("index", "changed"),
    [
        (0, (0, 101, ((FILE, 3), (FILE, 9)), 2)),
        (0, (1, 100, ((FILE, 3), (FILE, 9)), 2)),
        (0, (0, 100, ((FILE, 2), (FILE, 9)), 2)),
        (0, (0, 100, ((FILE, 3), (FILE, 8)), 2)),
        (0, (0, 100, ((OTHER, 3), (FILE, 9)), 2)),
        (0, (0, 100, ((FILE, 3),), 1)),
        (3, (0, 33, ((FILE, 4), (FILE, 9)), 2)),
        (4, (0, 41, ((FILE, 1), (FILE, 9)), 2)),
        (4, (0, 41, ((FILE, 1), (FILE, 9)), 1)),
        (6, (0, 24, ((FILE, 7),), 1)),
    ],
)
def test_one_changed(index, changed):
    assert differences([*TRACES[:index], changed, *TRACES[index + 1 :]])


@pytest.mark.parametrize("index", [0, 2, 3, 4, 6])
def test_one_missing_or_one_more(index):
    assert differences(TRACES[:index] + TRACES[index + 1 :])
    assert differences([*TRACES, TRACES[index]])


def test_harness_is_ignored():
    assert differences([trace for trace in TRACES if trace[2][0][0] != HARNESS]) == []


def test_depth_of_a_cut_stack_is_ignored():
    assert differences([*TRACES[:4], (0, 41, ((FILE, 1), (FILE, 9)), 31), *TRACES[5:]]) == []


def test_explanation_excuses_the_traceback_only():
    moved = [*TRACES[:6], (0, 24, ((FILE, 7),), 1), TRACES[7]]
    assert differences(moved) != []
    assert differences(moved, explanations=[FLOATS, None]) == []
    assert comparison.compare(moved, TRACES, 2, (), [FLOATS]).excused == {"floats": 1}


def test_explanation_does_not_excuse_numbers_sizes_or_others():
    assert differences(TRACES[:7], explanations=[FLOATS])
    assert differences([*TRACES[:7], (1, 24, ((FILE, 8),), 1)], explanations=[FLOATS])
    assert differences([(0, 100, ((FILE, 2), (FILE, 9)), 2), *TRACES[1:]], explanations=[FLOATS])


def test_numbers_only_are_excused():
    sizes = comparison.recycled_numbers().sizes
    assert sys.getsizeof(1.5) in sizes and not {40, 56, 64, 208} & sizes
    assert comparison.resurrection(()) is None
