"""The largest tests so far: what a test must exceed to be listed at the end."""

import bisect
import math

from heapledger.pytest_plugin._measure import Doubts


class Ranks:
    """Of peaks and of what was left behind, as many as will be listed."""

    def __init__(self, places):
        self._places = places
        self._largest = {"leaked": [], "peak": []}

    def add(self, numbers):
        for name, largest in self._largest.items():
            bisect.insort(largest, numbers[name])
            del largest[: max(0, len(largest) - self._places)]

    def doubts(self):
        return Doubts(self._least("leaked"), self._least("peak"))

    def _least(self, name):
        if self._places == 0:
            return math.inf
        largest = self._largest[name]
        return largest[0] if len(largest) == self._places else 0
