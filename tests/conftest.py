"""What every test relies on: the installed package is tested, and no test leaves tracing on for the next.

Tests marked slow run when HEAPLEDGER_SLOW is set in the environment.
"""

import os
import platform
import signal
import tracemalloc

import pytest

try:
    import heapledger
except ImportError as error:
    pytest.exit(f"heapledger is not installed for this interpreter ({error}); try: make test", returncode=4)


def pytest_report_header():
    return f"heapledger: {heapledger.__file__}, CPython {platform.python_version()}"


def pytest_configure(config):
    # A shell that starts something in the background has it ignore ^C and ^\. So would the children that tests end by
    # these signals.
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
    config.addinivalue_line("markers", "slow: takes long; runs when HEAPLEDGER_SLOW is set")


def pytest_collection_modifyitems(items):
    if os.environ.get("HEAPLEDGER_SLOW"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow; set HEAPLEDGER_SLOW to run it"))


@pytest.fixture(autouse=True)
def stopped():
    """Both engines are stopped after each test, however it ended."""
    yield
    heapledger.stop()
    tracemalloc.stop()
