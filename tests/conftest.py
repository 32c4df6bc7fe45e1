"""What every test relies on: the installed package is tested, and no test leaves tracing on for the next."""

import platform
import tracemalloc

import pytest

try:
    import heapledger
except ImportError as error:
    pytest.exit(f"heapledger is not installed for this interpreter ({error}); try: make test", returncode=4)


def pytest_report_header():
    return f"heapledger: {heapledger.__file__}, CPython {platform.python_version()}"


@pytest.fixture(autouse=True)
def stopped():
    """Both engines are stopped after each test, however it ended."""
    yield
    heapledger.stop()
    tracemalloc.stop()
