"""trace() and track_leaks(): what a part of a program allocates, what it leaves behind, and its peak.

A trace is a window (docs/design.md) with a context manager around it. It must show only the traced block itself.
Functions of this file do not show in it, because they are our own work. So ``_calls.py`` calls the program's functions
for them.
"""

from __future__ import annotations

import functools
import gc

from heapledger._calls import call, call_and_collect
from heapledger._ledger import _format_size, _Window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, ParamSpec, Self, TypeVar

    from heapledger._ledger import Snapshot
    from heapledger._types import Traced

    _Parameters = ParamSpec("_Parameters")
    _Result = TypeVar("_Result")


def total(snapshot: Snapshot) -> tuple[int, int]:
    """Return (bytes, blocks) of a snapshot, without reading its blocks one by one."""
    size = 0
    for statistic in snapshot.statistics("filename"):
        size += statistic.size
    return size, len(snapshot.traces)


class trace(_Window):
    """Trace a block: ``with heapledger.trace() as t:``, or a function: ``@heapledger.trace()``.

    Afterwards there are four snapshots:

        t.start      what was alive before
        t.peak       what was alive at the moment inside with the most traced memory
        t.allocated  what was allocated inside, freed or not
        t.leaked     what is alive in addition to what was alive before, by traceback and size

    If tracing is off, the trace starts it, with tracebacks of nframe frames, and stops it at the end. If tracing is on,
    it stays as it is. Traces may contain and overlap each other. They do not change the program's own peak. What other
    threads allocate in the meantime counts, too. At the end `report` is called with the trace, unless an exception
    ended the block.

    A decorated function, or coroutine function, is traced at each call. Its attribute `last` is the trace of the call
    that ended last.
    """

    __slots__ = ("_nframe", "_report", "__weakref__")

    def __init__(self, nframe: int = 1, *, report: Callable[[trace], object] | None = None) -> None:
        first: Any = nframe  # without parentheses, this is the function to decorate
        if callable(first):
            raise TypeError("a function is decorated with @heapledger.trace(), with parentheses")
        if report is not None and not callable(report):
            raise TypeError(f"report must be callable, not {type(report).__name__}")
        self._nframe = nframe
        self._report = report

    def __enter__(self) -> Self:
        self._open(self._nframe)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()
        if kind is None and self._report is not None:
            call(self._report, (self,), None)

    def __call__(self, function: Callable[_Parameters, _Result]) -> Traced[_Parameters, _Result]:
        """Trace each call of the function."""
        import inspect  # takes long to import, and most programs do not decorate

        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("a generator cannot be traced as a whole: its caller runs in between")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def traced(*args: Any, **kwargs: Any) -> Any:
                one = trace(self._nframe, report=self._report)
                try:
                    with one:
                        return await call(function, args, kwargs)
                finally:
                    traced.last = one  # type: ignore[attr-defined]

        else:

            @functools.wraps(function)
            def traced(*args: Any, **kwargs: Any) -> Any:
                one = trace(self._nframe, report=self._report)
                try:
                    with one:
                        return call(function, args, kwargs)
                finally:
                    traced.last = one  # type: ignore[attr-defined]

        traced.last = None  # type: ignore[attr-defined]
        return traced  # type: ignore[return-value]

    def _answer(self, name: str) -> Snapshot:
        answer: Snapshot | None = getattr(self, name)
        if answer is None:
            raise RuntimeError(f"the trace {self._state()}")
        return answer

    def _state(self) -> str:
        if self._is_open:
            return "is still running"
        return "has not run yet" if self._start is None else "has no result: tracing was stopped before it was over"

    @property
    def start(self) -> Snapshot:
        """What was alive before."""
        return self._answer("_start")

    @property
    def peak(self) -> Snapshot:
        """What was alive at the moment inside with the most traced memory."""
        return self._answer("_peak")

    @property
    def allocated(self) -> Snapshot:
        """What was allocated inside, freed or not."""
        return self._answer("_allocated")

    @property
    def leaked(self) -> Snapshot:
        """What is alive in addition to what was alive before, by traceback and size."""
        return self._answer("_leaked")

    def __repr__(self) -> str:
        if self._leaked is None:
            return f"<heapledger.trace: {self._state()}>"
        peak = total(self.peak)[0] - total(self.start)[0]
        size, count = total(self.allocated)
        left, left_count = total(self.leaked)
        return (
            f"<heapledger.trace: peak {_format_size(peak, True)}, "
            f"allocated {_format_size(size, False)} in {count} blocks, "
            f"leaked {_format_size(left, False)} in {left_count} blocks>"
        )


class Leaks:
    """What the rounds of track_leaks() have left behind.

        leaks.leaked  a snapshot: what is alive after the last round in addition to what was alive before the first
        leaks.rounds  (bytes, blocks) of each round: what is alive after it in addition to what was alive before it

    A Leaks object is true if there is anything in `leaked`.
    """

    __slots__ = ("leaked", "rounds")

    def __init__(self, leaked: Snapshot, rounds: tuple[tuple[int, int], ...]) -> None:
        self.leaked: Snapshot = leaked
        self.rounds: tuple[tuple[int, int], ...] = rounds

    def __bool__(self) -> bool:
        return len(self.leaked.traces) > 0

    def __repr__(self) -> str:
        size, count = total(self.leaked)
        return f"<heapledger.Leaks: {_format_size(size, False)} in {count} blocks after {len(self.rounds)} rounds>"


def _runs_later(function: Callable[[], object]) -> bool:
    import inspect

    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return any(is_kind(function) for is_kind in kinds)


def track_leaks(function: Callable[[], object], *, rounds: int = 3, warmup: int = 2, nframe: int = 10) -> Leaks:
    """Call the function several times, and return what stays: Leaks.

    `warmup` calls come first and do not count, so that caches can fill. Garbage is collected after each call. The
    results of the function are dropped.
    """
    if rounds < 1 or warmup < 0:
        raise ValueError("rounds must be at least 1, and warmup at least 0")
    if _runs_later(function):
        raise TypeError("calling a coroutine function or a generator does not run it: give a function that does")
    whole, each = trace(nframe), [trace(nframe) for _ in range(rounds)]
    for _ in range(warmup):
        call_and_collect(function)
    gc.collect()
    with whole:
        for one in each:
            with one:
                call_and_collect(function)
    return Leaks(whole.leaked, tuple(total(one.leaked) for one in each))


for _one in (trace, Leaks, track_leaks):
    _one.__module__ = "heapledger"
del _one
