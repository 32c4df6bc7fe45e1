"""The markers limit_memory and limit_leaks: their arguments, and the messages for wrong arguments.

The functions below have the parameters of the markers, so their signatures are those of the markers.
"""

from __future__ import annotations

import inspect

import pytest
from heapledger.pytest_plugin._sizes import parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from heapledger import BaseFilter, Frame, Statistic, Traceback

    _FilterFn = Callable[["Stack"], object]
    _Rule = TypeVar("_Rule")


class Memory:
    """The limit of limit_memory."""

    def __init__(self, size: int, current_thread_only: bool) -> None:
        self.size = size
        self.current_thread_only = current_thread_only
        self.needs_whole_stacks = False


class StackFrame:
    """What a filter_fn sees of a frame, with the names that pytest-memray gives them."""

    __slots__ = ("function", "filename", "lineno")

    def __init__(self, frame: Frame) -> None:
        self.function = getattr(frame, "name", None) or "???"
        self.filename = frame.filename
        self.lineno = frame.lineno


class Stack:
    """The argument of a filter_fn: `frames`, most recent first."""

    __slots__ = ("frames",)

    def __init__(self, traceback: Traceback) -> None:
        self.frames = tuple(StackFrame(frame) for frame in reversed(traceback))


class Leaks:
    """The limit of limit_leaks."""

    def __init__(
        self,
        size: int,
        filters: Sequence[BaseFilter],
        filter_fn: _FilterFn | None,
        current_thread_only: bool,
        warmup: int,
        rounds: int,
    ) -> None:
        self.size = size
        self.filters = filters
        self.current_thread_only = current_thread_only
        self.warmup = warmup
        self.rounds = rounds
        self.needs_whole_stacks = filter_fn is not None
        self._filter_fn = filter_fn

    def select(self, statistics: list[Statistic]) -> list[Statistic]:
        """Those that count."""
        if self._filter_fn is None:
            return statistics
        return [one for one in statistics if self._filter_fn(Stack(one.traceback))]


def _limit_memory(size: object, *, current_thread_only: object = False) -> Memory:
    return Memory(parse_size(size), bool(current_thread_only))


def _limit_leaks(
    size: object,
    *,
    filter: Any = None,
    filter_fn: _FilterFn | None = None,
    current_thread_only: object = False,
    warmup: int = 2,
    rounds: int = 3,
) -> Leaks:
    filters = [] if filter is None else list(filter) if isinstance(filter, (list, tuple)) else [filter]
    for one in filters:
        if not hasattr(one, "inclusive"):  # what every filter has, those of the standard library and the user's own too
            raise ValueError(f"filter must be a heapledger.Filter or a list of them, not {one!r}")
    if filter_fn is not None and not callable(filter_fn):
        raise ValueError(f"filter_fn must be a function of a stack, not {filter_fn!r}")
    for name, number, least in (("warmup", warmup, 0), ("rounds", rounds, 1)):
        if not isinstance(number, int) or number < least:
            raise ValueError(f"{name} must be an int of at least {least}, not {number!r}")
    return Leaks(parse_size(size), filters, filter_fn, bool(current_thread_only), warmup, rounds)


def read_limit_memory(item: pytest.Item) -> Memory | None:
    """The limit in the test's marker limit_memory; None without it. A wrong one fails the test."""
    return _read_marker(item, "limit_memory", _limit_memory)


def read_limit_leaks(item: pytest.Item) -> Leaks | None:
    return _read_marker(item, "limit_leaks", _limit_leaks)


def _read_marker(item: pytest.Item, name: str, reader: Callable[..., _Rule]) -> _Rule | None:
    marker = item.get_closest_marker(name)
    if marker is None:
        return None
    signature = _without_types(inspect.signature(reader))
    try:
        signature.bind(*marker.args, **marker.kwargs)
        return reader(*marker.args, **marker.kwargs)
    except (TypeError, ValueError) as error:
        reason = error
    pytest.fail(f"heapledger: the marker {name}{signature}: {reason}", pytrace=False)


def _without_types(signature: inspect.Signature) -> inspect.Signature:
    parameters = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return inspect.Signature(parameters)
