"""The conformance run really tests heapledger: with a broken engine most of it must fail."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

RUN = pathlib.Path(__file__).with_name("run.py")
HAS_TESTS = importlib.util.find_spec("test") and importlib.util.find_spec("test.test_tracemalloc")


@pytest.mark.skipif(not HAS_TESTS, reason="the interpreter's own tests are not installed")
def test_conformance_notices_a_broken_engine():
    done = subprocess.run([sys.executable, str(RUN), "--broken"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
