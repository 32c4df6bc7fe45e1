"""Tracebacks against walks by sys._getframe, for stacks.py: what one round compares, and what it finds."""

import collections
import gc
import pathlib
import sys
import traceback

import heapledger

sys.path.append(str(pathlib.Path(__file__).parent.parent / "api"))
from random_stacks import SIZE, Program, walk  # noqa: E402, F401


class Round:
    """Exceptions may be lost on their way, in callbacks from C for instance, so problems are kept here."""

    def __init__(self, limit):
        self.limit = limit
        self.checked = 0
        self.problems = []
        self.depths = collections.defaultdict(set)  # newest frames, as many as the limit allows: how deep they were met
        self.kept = collections.deque(maxlen=500)  # objects with the frames that made them

    def compare(self, made, frames):
        found = heapledger.get_object_traceback(made)
        newest = frames[: self.limit]
        self.depths[tuple(newest)].add(len(frames))
        self.checked += 1
        if found is None or [(frame.filename, frame.lineno) for frame in found] != newest[::-1]:
            problem = self.describe(found, frames)
            self.problems.append(problem)
            raise AssertionError(problem)

    def describe(self, found, frames):
        recorded = [(frame.filename, frame.lineno) for frame in found or ()][::-1]
        pairs = enumerate(zip(recorded, frames, strict=False))
        at = next((number for number, (one, other) in pairs if one != other), 0)
        return (
            f"limit {self.limit}, {len(recorded)} frames, the walk has {len(frames)}; the first that differs is {at}:\n"
            f"recorded {recorded[max(at - 3, 0) : at + 3]}\nwalk     {frames[max(at - 3, 0) : at + 3]}"
        )

    def failed(self, error):
        self.problems.append("".join(traceback.format_exception(error)))

    def end(self):
        """What was kept is where it was. A traceback's total is one of the depths at which this stack was met, so it is
        exact unless the traceback was cut.
        """
        assert not self.problems, self.problems[0]
        gc.collect()  # the last finalizers keep objects, too
        for made, frames in self.kept:
            self.compare(made, frames)
        found = 0
        for trace in heapledger.take_snapshot().traces:
            newest = tuple((frame.filename, frame.lineno) for frame in reversed(trace.traceback))
            if newest in self.depths:
                found += 1
                assert trace.traceback.total_nframe in self.depths[newest], (trace, self.depths[newest])
        assert found >= len(self.kept), (found, len(self.kept))


current = None  # the round that is running


def begin(limit):
    global current
    current = Round(limit)
    return current


def check():
    """For callbacks that belong to no program."""
    current.compare(bytearray(SIZE), walk())


def leaf():
    return bytes(SIZE)


LEAF = (__file__, leaf.__code__.co_firstlineno + 1)
