"""A fatal error of the interpreter's debug allocator while heapledger is tracing: its report is as without us.

It ends with a traceback from the standard library's tracer; docs/compat.md says why ours cannot stand there.
"""

import signal
import subprocess
import sys

import pytest
from environments import ELSEWHERE, TIMEOUT

OVERFLOW = """
import resource, sys
import _testcapi
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
tracer = __import__(sys.argv[1])
tracer.start(5)
_testcapi.pymem_buffer_overflow()
"""


@pytest.mark.parametrize(
    "tracer, told",
    [
        ("heapledger", "Enable tracemalloc to get the memory block allocation traceback"),
        ("tracemalloc", 'Memory block allocated at (most recent call first):\n  File "<string>", line 7'),
    ],
)
def test_report_of_the_debug_allocator(tracer, told):
    pytest.importorskip("_testcapi")
    command = [sys.executable, "-X", "dev", "-c", OVERFLOW, tracer]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, cwd=ELSEWHERE)
    assert done.returncode == -signal.SIGABRT
    assert "16 bytes originally requested" in done.stderr
    assert "Fatal Python error: _PyMem_DebugRawFree: bad trailing pad byte" in done.stderr
    assert told in done.stderr
