"""The markers limit_memory and limit_leaks: their arguments, and the messages for wrong arguments.

The functions below have the parameters of the markers, so their signatures are those of the markers.
"""

import inspect

import pytest
from heapledger.pytest_plugin._sizes import parse_size


class Memory:
    """The limit of limit_memory."""

    def __init__(self, size, current_thread_only):
        self.size = size
        self.current_thread_only = current_thread_only
        self.needs_whole_stacks = False


class StackFrame:
    """What a filter_fn sees of a frame, with the names that pytest-memray gives them."""

    __slots__ = ("function", "filename", "lineno")

    def __init__(self, frame):
        self.function = getattr(frame, "name", None) or "???"
        self.filename = frame.filename
        self.lineno = frame.lineno


class Stack:
    """The argument of a filter_fn: `frames`, most recent first."""

    __slots__ = ("frames",)

    def __init__(self, traceback):
        self.frames = tuple(StackFrame(frame) for frame in reversed(traceback))


class Leaks:
    """The limit of limit_leaks."""

    def __init__(self, size, filters, filter_fn, current_thread_only, warmup, rounds):
        self.size = size
        self.filters = filters
        self.current_thread_only = current_thread_only
        self.warmup = warmup
        self.rounds = rounds
        self.needs_whole_stacks = filter_fn is not None
        self._filter_fn = filter_fn

    def select(self, statistics):
        """Those that count."""
        if self._filter_fn is None:
            return statistics
        return [one for one in statistics if self._filter_fn(Stack(one.traceback))]


def _limit_memory(size, *, current_thread_only=False):
    return Memory(parse_size(size), bool(current_thread_only))


def _limit_leaks(size, *, filter=None, filter_fn=None, current_thread_only=False, warmup=2, rounds=3):
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


_READERS = {"limit_memory": _limit_memory, "limit_leaks": _limit_leaks}


def read_marker(item, name):
    """The limit in the test's marker of this name: Memory, Leaks, or None without it. A wrong one fails the test."""
    marker = item.get_closest_marker(name)
    if marker is None:
        return None
    reader = _READERS[name]
    signature = inspect.signature(reader)
    try:
        signature.bind(*marker.args, **marker.kwargs)
        return reader(*marker.args, **marker.kwargs)
    except (TypeError, ValueError) as error:
        reason = error
    pytest.fail(f"heapledger: the marker {name}{signature}: {reason}", pytrace=False)
