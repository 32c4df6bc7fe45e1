"""Tests that run on one interpreter only, with packages from the index: tools/run-tests once, which is make test-once.

Without these packages nothing is collected here, so that `pytest tests` is the same on every interpreter.
"""

import os
import pathlib
import subprocess
import sys

import pytest

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent.parent
# for pytest_runs, beside and looking
sys.path += [str(CHECKOUT / "tests" / folder) for folder in ("plugins", "api", "browser")]

collect_ignore_glob = [] if "HEAPLEDGER_PACKAGES" in os.environ else ["*.py"]


@pytest.fixture(scope="session")
def checkout():
    return CHECKOUT


@pytest.fixture(scope="session")
def tracked():
    """The names of the checkout's files, new ones included, those that git ignores not."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.check_output(command, cwd=CHECKOUT, text=True).split("\0")
    return sorted(name for name in names if name and (CHECKOUT / name).exists())
