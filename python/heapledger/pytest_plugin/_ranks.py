"""The largest tests so far: what a test must exceed to be listed at the end."""

from __future__ import annotations

import bisect
import math

from heapledger.pytest_plugin._measure import Doubts


class Ranks:
    """Of peaks and of what was left behind, as many as will be listed."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._largest: dict[str, list[int]] = {"leaked": [], "peak": []}

    def add(self, numbers: dict[str, int]) -> None:
        for name, largest in self._largest.items():
            bisect.insort(largest, numbers[name])
            del largest[: max(0, len(largest) - self._places)]

    def doubts(self) -> Doubts:
        return Doubts(self._least("leaked"), self._least("peak"))

    def _least(self, name: str) -> float:
        if self._places == 0:
            return math.inf
        largest = self._largest[name]
        return largest[0] if len(largest) == self._places else 0
