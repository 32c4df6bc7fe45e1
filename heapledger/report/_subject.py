"""What a report is about: one capture, the difference of two, or a series of captures of one process.

    one file                          that capture
    two files                         the difference: what has grown and shrunk from the first to the second
    more, all of one process          a series, in the order of their times
    more, of several processes        their sum, as everywhere else

`merge`, `diff` and `series` say otherwise.
"""

import dataclasses
import os

import heapledger
from heapledger.command import Failure, _inputs

MOMENTS = ("live", "peak", "allocated")


@dataclasses.dataclass
class Subject:
    mode: str  # "one", "difference", "series"
    captures: list
    labels: list  # a name for each: the file's
    moments: tuple  # those that all captures have

    @property
    def snapshots(self):
        """Moment by moment, for each all captures."""
        return [getattr(capture, moment) for moment in self.moments for capture in self.captures]


def _process_of(capture):
    metadata = capture.metadata
    return metadata.get("host"), metadata.get("pid"), tuple(metadata.get("command") or ())


def _time_of(capture):
    time = capture.metadata.get("time")
    return time if isinstance(time, int) else 0


def _are_series(captures):
    """Whether these are of one process, at different times."""
    processes = {_process_of(capture) for capture in captures}
    times = {_time_of(capture) for capture in captures}
    return len(processes) == 1 and None not in next(iter(processes)) and len(times) == len(captures)


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
        raise Failure(f"a difference is that of two files, not of {len(filenames)}")
    if way == "merge":
        return _of("one", [_inputs.load(filenames)], [_label(filenames)])
    captures = [_inputs.load([filename]) for filename in filenames]
    way = _choose(captures, way)
    if way == "merge":
        try:
            return _of("one", [heapledger.Capture.merge(captures)], [_label(filenames)])
        except (OverflowError, MemoryError) as error:
            raise Failure(f"cannot merge these files: {error or 'there is not enough memory'}") from error
    labels = [os.path.basename(os.fsdecode(filename)) for filename in filenames]
    if way == "series":
        order = sorted(range(len(captures)), key=lambda index: _time_of(captures[index]))
        captures = [captures[index] for index in order]
        labels = [labels[index] for index in order]
    return _of("one" if len(captures) == 1 else way, captures, labels)


def _label(filenames):
    first = os.path.basename(os.fsdecode(filenames[0]))
    return first if len(filenames) == 1 else f"{first} and {len(filenames) - 1} more"


def _of(mode, captures, labels):
    moments = tuple(name for name in MOMENTS if all(getattr(capture, name) is not None for capture in captures))
    if not moments:
        raise Failure("the files have no moment in common")
    return Subject(mode, captures, labels, moments)
