"""What a report is about: one capture, the difference of two, or a series of captures of one process.

    one file                          that capture
    two files                         the difference: what has grown and shrunk from the first to the second
    more, all from one process        a series, in the order of their times
    more, from several processes      their sum, as everywhere else

`merge`, `diff` and `series` override this.
"""

import dataclasses
import os

from heapledger.command import Failure, _inputs

MANY_FILES = 10
MANY_BYTES = 4 << 20  # a second's work


@dataclasses.dataclass
class Subject:
    mode: str  # "one", "difference", "series"
    captures: list
    labels: list  # a name for each: the file's
    moments: tuple  # those that all captures have
    is_long: bool  # whether adding up its stacks takes so long that the user should see progress
    metadata: list  # of the files, also where one capture is the sum of many

    @property
    def snapshots(self):
        """For each moment, all captures."""
        return [getattr(capture, moment) for moment in self.moments for capture in self.captures]


def _time_of(capture):
    time = capture.metadata.get("time")
    return time if isinstance(time, int) else 0


def _are_series(captures):
    """Whether these are from one process, at different times."""
    processes = {_inputs.process_of(capture) for capture in captures}
    times = {_time_of(capture) for capture in captures}
    return len(processes) == 1 and None not in processes and len(times) == len(captures)


def _choose(captures, way):
    if way is not None:
        return way
    if len(captures) == 1:
        return "one"
    if len(captures) == 2:
        return "difference"
    return "series" if _are_series(captures) else "merge"


def load(filenames, way=None):
    """The subject of these files; `way` is None, "merge", "difference" or "series"."""
    if way == "difference" and len(filenames) != 2:
        raise Failure(f"a difference needs two files, not {len(filenames)}")
    is_long = sum(map(_inputs.size_of, filenames)) > MANY_BYTES
    captures = _inputs.load_all(filenames, is_long or len(filenames) > MANY_FILES)
    metadata = [capture.metadata for capture in captures]
    way = _choose(captures, way)
    labels = [os.path.basename(os.fsdecode(filename)) for filename in filenames]
    if len(captures) == 1:
        way = "one"
    elif way == "merge":
        captures, labels = [_inputs.merged(captures, filenames)], [f"{labels[0]} and {len(labels) - 1} more"]
        way = "one"
    elif way == "series":
        order = sorted(range(len(captures)), key=lambda index: _time_of(captures[index]))
        captures = [captures[index] for index in order]
        labels = [labels[index] for index in order]
    moments = tuple(name for name in _inputs.MOMENTS if all(getattr(capture, name) is not None for capture in captures))
    if not moments:
        raise Failure("the files have no moment in common")
    return Subject(way, captures, labels, moments, is_long, metadata)
