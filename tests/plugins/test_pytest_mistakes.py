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
    source = "import shutil\ndef test_one():\n    shutil.rmtree('budgets')\n" + other
    folder = write(test_one=source)
    (folder / "budgets").mkdir()
    run = Run(folder, "--heapledger-baseline=budgets/budgets.json")
    assert run.status == status, run.text
    run.has("budgets.json was not written: No such file or directory", "1 passed")
    has_no_traceback(run)


@pytest.mark.parametrize(
    "option, wrong, wanted",
    [
        ("top", "0", "a whole number from 1 on"),
        ("top", "-1", "a whole number from 1 on"),
        ("nframe", "0", "a whole number from 1 to 65535"),
        ("warmup", "-1", "a whole number from 0 on"),
        ("tolerance", "nan", "a percentage from 0 on"),
        ("tolerance", "-0.5", "a percentage from 0 on"),
    ],
)
def test_numbers_of_options(write, option, wrong, wanted):
    run = Run(write(test_one=ONE_TEST), "--heapledger", f"--heapledger-{option}={wrong}")
    assert run.status == 4, run.text
    run.has(f"argument --heapledger-{option}: must be {wanted}, not '{wrong}'")
    has_no_traceback(run)
