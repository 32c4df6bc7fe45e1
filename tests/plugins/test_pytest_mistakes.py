"""The pytest plugin, asked for what it cannot do: a sentence that says what is wrong, and no traceback."""

import pytest
from pytest_runs import Run

ONE_TEST = "def test_one():\n    assert [bytes(1000) for _ in range(100)]\n"


def has_no_traceback(run):
    for sign in ("Traceback", "INTERNALERROR", "During handling", "heapledger/pytest_plugin", "_heapledger_pytest.py"):
        assert sign not in run.text, run.text


def test_a_baseline_in_no_folder(write):
    run = Run(write(test_one=ONE_TEST), "--heapledger-baseline=nodir/budgets.json")
    assert run.status == 4, run.text
    run.has("--heapledger-baseline: there is no folder ", "nodir")
    assert "passed" not in run.text  # said before the tests run, not after
    has_no_traceback(run)


@pytest.mark.parametrize("other, status", [("", 1), ("def test_interrupted():\n    raise KeyboardInterrupt\n", 2)])
def test_a_baseline_that_cannot_be_written(write, other, status):
    """Its folder is gone at the end. The run has not done what it was asked to, and says so by its status."""
    source = "import shutil\ndef test_one():\n    shutil.rmtree('budgets', ignore_errors=True)\n" + other
    folder = write(test_one=source)
    (folder / "budgets").mkdir()
    run = Run(folder, "--heapledger-baseline=budgets/budgets.json")
    assert run.status == status, run.text
    run.has("budgets.json was not written: No such file or directory", "1 passed")
    has_no_traceback(run)


@pytest.mark.parametrize(
    "option, wrong, wanted",
    [
        ("top", "0", "a whole number of at least 1"),
        ("top", "-1", "a whole number of at least 1"),
        ("nframe", "0", "a whole number from 1 to 65535"),
        ("warmup", "-1", "a whole number of at least 0"),
        ("tolerance", "nan", "a percentage of at least 0"),
        ("tolerance", "-0.5", "a percentage of at least 0"),
    ],
)
def test_numbers_of_options(write, option, wrong, wanted):
    run = Run(write(test_one=ONE_TEST), "--heapledger", f"--heapledger-{option}={wrong}")
    assert run.status == 4, run.text
    run.has(f"argument --heapledger-{option}: must be {wanted}, not '{wrong}'")
    has_no_traceback(run)


MEMORY = "limit_memory(size, *, current_thread_only=False)"
LEAKS = "limit_leaks(size, *, filter=None, filter_fn=None, current_thread_only=False, warmup=2, rounds=3)"
WRONG_MARKERS = [
    ("limit_memory()", f"{MEMORY}: missing a required argument: 'size'"),
    ("limit_memory('1 KB', 2)", f"{MEMORY}: too many positional arguments"),
    ("limit_memory('much')", f"{MEMORY}: 'much' is not a size; write '24 MB', '1.5 GiB', '100 B' or a number of bytes"),
    ("limit_memory('1 KB', rounds=1)", f"{MEMORY}: got an unexpected keyword argument 'rounds'"),
    ("limit_leaks(True)", f"{LEAKS}: True is not a size; write"),
    ("limit_leaks('1 KB', 3)", f"{LEAKS}: too many positional arguments"),
    ("limit_leaks('1 KB', rounds='x')", f"{LEAKS}: rounds must be an int of at least 1, not 'x'"),
    ("limit_leaks('1 KB', rounds=2.5)", f"{LEAKS}: rounds must be an int of at least 1, not 2.5"),
    ("limit_leaks('1 KB', rounds=0)", f"{LEAKS}: rounds must be an int of at least 1, not 0"),
    ("limit_leaks('1 KB', warmup=-1)", f"{LEAKS}: warmup must be an int of at least 0, not -1"),
    ("limit_leaks(1, filter='*/x/*')", f"{LEAKS}: filter must be a heapledger.Filter or a list of them, not '*/x/*'"),
    ("limit_leaks(1, filter_fn='*/x/*')", f"{LEAKS}: filter_fn must be a function of a stack, not '*/x/*'"),
    ("limit_leaks(1, filter=[Filter])", f"{LEAKS}: filter must be a heapledger.Filter or a list of them, not <class"),
]


def test_wrong_markers(write):
    """One sentence each, and the test is not called. In a module of doctests as well."""
    tests = [
        f"@pytest.mark.{marker}\ndef test_{number:02}():\n    print('called')\n"
        for number, (marker, _) in enumerate(WRONG_MARKERS)
    ]
    examples = (
        "import pytest\npytestmark = pytest.mark.limit_memory()\ndef f():\n    '''\n    >>> print('called')\n    '''\n"
    )
    folder = write(test_all="import pytest\nfrom heapledger import Filter\n" + "\n".join(tests), test_examples=examples)
    run = Run(folder, "--doctest-modules", "--tb=short", "-rN")
    run.has(f"{len(WRONG_MARKERS) + 1} failed")
    for number, (_, sentence) in enumerate(WRONG_MARKERS):
        part = run.text.partition(f" test_{number:02} ___")[2]
        assert part.partition("\n")[2].startswith(f"heapledger: the marker {sentence}"), run.text
    assert f"heapledger: the marker {MEMORY}: missing" in run.text.partition("test_examples.f ")[2], run.text
    assert run.text.count("heapledger: ") == len(WRONG_MARKERS) + 1, run.text
    assert "called" not in run.text, run.text
    has_no_traceback(run)


def test_a_test_that_stops_the_tracer(write):
    """In its last round, or in an earlier one."""
    source = """
import heapledger, pytest

calls = []

@pytest.mark.limit_memory('1 GB')
def test_once():
    heapledger.stop()

@pytest.mark.limit_leaks('1 GB', warmup=0, rounds=3)
def test_in_the_first_round():
    calls.append(1)
    if len(calls) == 1:
        heapledger.stop()
"""
    folder = write(test_all=source)
    for option in "--heapledger", "--heapledger-baseline=budgets.json":
        run = Run(folder, option, "-rN")
        assert run.status == 1
        assert run.text.count("the test's memory is unknown because the test stopped the tracer") == 2, run.text
        has_no_traceback(run)
