"""Which blocks the test's own thread has allocated, without the reports of subtests.

The ledger does not record threads. But if it keeps whole stacks, all stacks of the thread that runs the test share a
line: the line where pytest calls the test.
"""

from __future__ import annotations

import sys

from _pytest.runner import runtestprotocol
from heapledger import get_traceback_limit
from heapledger._ledger import _sum_by
from heapledger._tracing import total
from heapledger.pytest_plugin._subtests import is_reporting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from heapledger import Snapshot, Statistic, StatisticDiff, Traceback

    _AnyStatistic = TypeVar("_AnyStatistic", Statistic, StatisticDiff)

WHOLE_STACKS = 65535  # frames


def own_thread() -> OwnThread | None:
    """The thread of the caller, while the tracer runs. None if stacks are cut because somebody else started it."""
    return OwnThread() if get_traceback_limit() == WHOLE_STACKS else None


class OwnThread:
    def __init__(self) -> None:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code is not runtestprotocol.__code__:
            frame = frame.f_back
        self._line = frame.f_code.co_filename, frame.f_lineno

    def _kind(self, filename: str, line: int, function: str | None) -> str | None:
        """Of a frame; only stacks of the test's own thread have one that reports."""
        if (filename, line) == self._line:
            return "own"
        return "reporting" if is_reporting(filename, function) else None

    def _sums(self, snapshot: Snapshot) -> tuple[tuple[int, int], tuple[int, int]]:
        """(bytes, blocks) of the thread, and of reports"""
        sums = _sum_by(snapshot, self._kind, "all")
        return sums.get("own", (0, 0)), sums.get("reporting", (0, 0))

    def total(self, snapshot: Snapshot) -> tuple[int, int]:
        """(bytes, blocks)"""
        own, reports = self._sums(snapshot)
        return own[0] - reports[0], own[1] - reports[1]

    def is_all_of(self, snapshot: Snapshot) -> bool:
        return self._sums(snapshot)[0] == total(snapshot)

    def select(self, statistics: list[_AnyStatistic]) -> list[_AnyStatistic]:
        return [one for one in statistics if self._is_own(one.traceback)]

    def _is_own(self, traceback: Traceback) -> bool:
        kinds = {self._kind(frame.filename, frame.lineno, frame.name) for frame in traceback}
        return "own" in kinds and "reporting" not in kinds
