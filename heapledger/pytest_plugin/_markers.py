"""The markers limit_memory and limit_leaks: what their arguments mean, and what is said of wrong ones.

The functions below have the parameters of the markers, so their signatures are how the markers are written.
"""

import inspect

import pytest
from heapledger.pytest_plugin._sizes import parse_size


class Leaks:
    """What limit_leaks asks for."""

    def __init__(self, size, filters, warmup, rounds):
        self.size = size
        self.filters = filters
        self.warmup = warmup
        self.rounds = rounds


def _limit_memory(size):
    return parse_size(size)


def _limit_leaks(size, *, filter=None, warmup=2, rounds=3):
    filters = [] if filter is None else list(filter) if isinstance(filter, (list, tuple)) else [filter]
    for one in filters:
        if not hasattr(one, "inclusive"):  # what every filter has, those of the standard library and the user's own too
            raise ValueError(f"filter must be a heapledger.Filter or a list of them, not {one!r}")
    for name, number, least in (("warmup", warmup, 0), ("rounds", rounds, 1)):
        if not isinstance(number, int) or number < least:
            raise ValueError(f"{name} must be an int from {least} on, not {number!r}")
    return Leaks(parse_size(size), filters, warmup, rounds)


_READERS = {"limit_memory": _limit_memory, "limit_leaks": _limit_leaks}


def read_marker(item, name):
    """What the test's marker of this name asks for: bytes, Leaks, or None without one. A wrong one fails the test."""
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
    pytest.fail(f"heapledger: {item.nodeid}: the marker {name}{signature}: {reason}", pytrace=False)
