"""One test's measurement: a trace of each round, with a collection before and after.

Between the beginning and the end of a round nothing runs but the test, and the collection, which is our own work: so
the numbers are the test's alone, and the same in the next process (docs/pytest.md says what can make them differ).
"""

import gc
import sys

from heapledger import trace
from heapledger._ledger import _OwnWork
from heapledger._tracing import total

# The interpreter's cache of attribute lookups keeps names alive, or not, by their addresses.
_clear_lookups = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache


class Measurement:
    """Rounds of a test: `warmup` of them do not count."""

    def __init__(self, nframe, warmup=0, rounds=1):
        self.warmup = warmup
        self._traces = [trace(nframe) for _ in range(rounds)]
        self._own_work = _OwnWork()
        self._round = 0

    def has_more(self):
        return self._round < len(self._traces)

    def begin(self):
        # Twice: what the finalizers of the first round set free has to go as well.
        gc.collect()
        gc.collect()
        _clear_lookups()
        self._traces[self._round].__enter__()

    def end(self):
        self._own_work.__enter__()
        gc.collect()
        _clear_lookups()
        self._own_work.__exit__()
        self._traces[self._round].__exit__(None, None, None)
        self._round += 1

    # Answers; the others only where there are numbers.

    def numbers(self):
        """The numbers of the last round; None if tracing was stopped inside a round, or none has been."""
        if self._round == 0 or any(one._leaked is None for one in self._traces[: self._round]):
            return None
        last = self._last()
        allocated, leaked = total(last.allocated), total(last.leaked)
        return {
            "peak": total(last.peak)[0] - total(last.start)[0],
            "allocated": allocated[0],
            "blocks": allocated[1],
            "leaked": leaked[0],
            "leaked_blocks": leaked[1],
        }

    def _last(self):
        return self._traces[self._round - 1]

    def leaked(self):
        return [one.leaked for one in self._traces[: self._round]]

    def growth_at_peak(self):
        last = self._last()
        return last.peak.compare_to(last.start, "traceback")

    def allocated(self):
        return self._last().allocated.statistics("traceback")


def measure(measurement, function, args, kwargs):
    """Call the function as often as asked for; what the last call returns."""
    with _OwnWork():  # passing the arguments on may take a dict
        result = None
        for _ in range(measurement.warmup):
            function(*args, **kwargs)
        while measurement.has_more():
            result = None
            measurement.begin()
            try:
                result = function(*args, **kwargs)
            finally:
                measurement.end()
        return result


async def measure_async(measurement, function, args, kwargs):
    """The same for a coroutine function, whose frame comes and goes: its own work cannot be told apart."""
    result = None
    for _ in range(measurement.warmup):
        await function(*args, **kwargs)
    while measurement.has_more():
        result = None
        measurement.begin()
        try:
            result = await function(*args, **kwargs)
        finally:
            measurement.end()
    return result
