"""One test's measurement: a trace of each round, with garbage collections before and after.

Between the beginning and the end of a round only the test runs, and the collections, which are our own work. So the
numbers belong to the test alone. docs/pytest.md says what can still make them differ.
"""

from __future__ import annotations

import functools
import math
import sys

from heapledger import get_traced_memory, is_tracing, take_snapshot, trace
from heapledger._tracing import total
from heapledger.pytest_plugin._collector import Collector
from heapledger.pytest_plugin._lines import by_line
from heapledger.pytest_plugin._threads import WHOLE_STACKS, own_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from heapledger import BaseFilter, Snapshot, Statistic, StatisticDiff
    from heapledger._types import FrameTuple
    from heapledger.pytest_plugin._threads import OwnThread

    _AnyStatistic = TypeVar("_AnyStatistic", Statistic, StatisticDiff)
    _ByLine = dict[FrameTuple, tuple[int, int]]

# The interpreter's cache of attribute lookups keeps names alive, or not, by their addresses.
_clear_lookups = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache


class Doubts:
    """When a full collection is worth its time: if more than `left` bytes seem to be left behind, or if any bytes are
    and the peak is above `peak`."""

    def __init__(self, left: float, peak: float = math.inf) -> None:
        self.left = left
        self.peak = peak

    def or_else(self, other: Doubts) -> Doubts:
        return Doubts(min(self.left, other.left), min(self.peak, other.peak))


class Ask:
    """What to measure.

    nframe       frames of each stack that are kept
    warmup       calls of the test function that are not measured
    rounds       calls that are
    own_thread   whether there are answers for the test's own thread
    """

    def __init__(self, nframe: int, doubts: Doubts, *, warmup: int, rounds: int, own_thread: bool) -> None:
        self.nframe = nframe
        self.doubts = doubts
        self.warmup = warmup
        self.rounds = rounds
        self.own_thread = own_thread


class Measurement:
    """The rounds of a test."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self._traces: list[trace] = []
        self._collector = Collector()
        self._thread: OwnThread | None = None

    def has_more(self) -> bool:
        return len(self._traces) < self.ask.rounds

    def has_begun(self) -> bool:
        return bool(self._traces)

    def begin(self) -> None:
        self._traces.append(trace(WHOLE_STACKS if self.ask.own_thread else self.ask.nframe))
        self._collector.before()
        _clear_lookups()
        self._traces[-1].__enter__()
        self._thread = own_thread() if self.ask.own_thread else None
        self._before = get_traced_memory()[0]
        self._collector.at_once_before()

    def end(self) -> None:
        self._collector.after()
        _clear_lookups()
        now, peak = get_traced_memory()
        left, doubts = now - self._before, self.ask.doubts
        if left > doubts.left or (left > 0 and peak - self._before > doubts.peak):
            self._collector.after_in_full()
        self._end = take_snapshot() if self.ask.own_thread and is_tracing() else None
        self._traces[-1].__exit__(None, None, None)

    # Results, after all rounds. `own`: only for the test's own thread, if Ask said so.

    def is_known(self) -> bool:
        """False if tracing was stopped inside a round, or if there was no round. Then there are no results."""
        return self.has_begun() and all(one._leaked is not None for one in self._traces)

    def numbers(self, own: bool) -> dict[str, int]:
        """Those of the last round."""
        last = self._traces[-1]
        allocated, leaked = self._total(last.allocated, own), self._total(last.leaked, own)
        return {
            "peak": self._total(last.peak, own)[0] - self._total(last.start, own)[0],
            "allocated": allocated[0],
            "blocks": allocated[1],
            "leaked": leaked[0],
            "leaked_blocks": leaked[1],
        }

    def had_other_threads(self) -> bool:
        """Whether threads other than the test's own have allocated something."""
        return self._thread is not None and not self._thread.is_all_of(self._traces[-1].allocated)

    def leaked(self, own: bool, filters: Iterable[BaseFilter] = ()) -> list[list[Statistic]]:
        """Of each round: [Statistic, ...] by stack."""
        return [self._select(one.leaked.filter_traces(filters).statistics("traceback"), own) for one in self._traces]

    def left_by_line(self) -> _ByLine:
        """What the last round has left behind, of the test's own thread: {line: (bytes, blocks)}."""
        return by_line(self.leaked(own=True)[-1])

    @functools.cached_property
    def alive_at_end(self) -> _ByLine:
        """The same of what was alive when it ended."""
        return self._by_line(self._end)

    def alive_now(self) -> _ByLine:
        """The same of what is alive, if tracing goes on."""
        self._collector.after_in_full()
        return self._by_line(take_snapshot())

    def _by_line(self, snapshot: Snapshot | None) -> _ByLine:
        return {} if snapshot is None else by_line(self._select(snapshot.statistics("traceback"), True))

    def growth_at_peak(self, own: bool) -> list[StatisticDiff]:
        last = self._traces[-1]
        return self._select(last.peak.compare_to(last.start, "traceback"), own)

    def allocated(self, own: bool) -> list[Statistic]:
        return self._select(self._traces[-1].allocated.statistics("traceback"), own)

    def _total(self, snapshot: Snapshot, own: bool) -> tuple[int, int]:
        """(bytes, blocks)"""
        return self._thread.total(snapshot) if own and self._thread is not None else total(snapshot)

    def _select(self, statistics: list[_AnyStatistic], own: bool) -> list[_AnyStatistic]:
        return self._thread.select(statistics) if own and self._thread is not None else statistics


def measure(
    measurement: Measurement, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call the function as often as asked, and return what the last call returns."""
    result = None
    for _ in range(measurement.ask.warmup):
        function(*args, **kwargs)
    while measurement.has_more():
        result = None
        measurement.begin()
        try:
            result = function(*args, **kwargs)
        finally:
            measurement.end()
    return result


async def measure_async(
    measurement: Measurement, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The same for a coroutine function."""
    result = None
    for _ in range(measurement.ask.warmup):
        await function(*args, **kwargs)
    while measurement.has_more():
        result = None
        measurement.begin()
        try:
            result = await function(*args, **kwargs)
        finally:
            measurement.end()
    return result
