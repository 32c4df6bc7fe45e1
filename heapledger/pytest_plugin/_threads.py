"""Which blocks the test's own thread has allocated.

The ledger does not know of threads, but if whole stacks are kept, the stacks of the thread that runs the test share a
line: the one where pytest calls it.
"""

import sys

from _pytest.runner import runtestprotocol
from heapledger import get_traceback_limit
from heapledger._ledger import _OwnWork, _sum_by

WHOLE_STACKS = 65535  # frames


def own_thread():
    """Of the caller, while the tracer runs; None if stacks are cut, because somebody else has started it."""
    with _OwnWork():
        return OwnThread() if get_traceback_limit() == WHOLE_STACKS else None


class OwnThread:
    def __init__(self):
        with _OwnWork():
            frame = sys._getframe(1)
            while frame.f_back is not None and frame.f_code is not runtestprotocol.__code__:
                frame = frame.f_back
            self._line = frame.f_code.co_filename, frame.f_lineno

    def total(self, snapshot):
        """(bytes, blocks)"""
        sums = _sum_by(snapshot, lambda filename, line, function: (filename, line) == self._line, "all")
        return sums.get(True, (0, 0))

    def select(self, statistics):
        return [
            one for one in statistics if any((frame.filename, frame.lineno) == self._line for frame in one.traceback)
        ]
