"""Garbage collections around a test. Their cost depends on what the test has made, not on what the process holds.

A full collection goes through all objects of the process. Once a large package is imported, that takes longer than most
tests. But all objects can be put into the oldest generation before a test at no cost. Then the younger generations hold
what the test has made, unless a collection inside the test has moved some of it to the oldest.

The collections after a test are part of its measurement, so all of this is our own work.
"""

from __future__ import annotations

import gc

_FROZEN_AT_START = gc.get_freeze_count()  # 3.12 starts with some


def _collect(generation: int) -> None:
    """Without callbacks, for example those of hypothesis: they would allocate inside the measurement."""
    if not gc.callbacks:
        gc.collect(generation)
        return
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    try:
        gc.collect(generation)
    finally:
        gc.callbacks[:] = callbacks


def _empty_freelists() -> None:
    """Only a full collection does that. While the heap is frozen it has nothing to go through.

    Afterwards all objects are in the oldest generation. Objects that the program has frozen itself stay frozen.
    """
    if gc.get_freeze_count() > _FROZEN_AT_START:
        _collect(2)
    else:
        gc.freeze()
        _collect(2)
        gc.unfreeze()


def _promotions() -> int:
    """How many collections have moved objects into the oldest generation so far."""
    _, middle, oldest = gc.get_stats()
    number: int = middle["collections"] + oldest["collections"]
    return number


class Collector:
    """The collections around one test."""

    def before(self) -> None:
        _collect(1)
        _empty_freelists()

    def at_once_before(self) -> None:
        """Last before the test: its objects could get blocks of ours from a freelist, and would not count."""
        self._promotions = _promotions() + 1  # with the collection that comes now
        _empty_freelists()

    def after(self) -> None:
        """All garbage that the test has made is gone, except cycles with objects older than the test."""
        _collect(1 if _promotions() == self._promotions else 2)
        _empty_freelists()

    def after_in_full(self) -> None:
        """All garbage is gone."""
        _collect(2)
