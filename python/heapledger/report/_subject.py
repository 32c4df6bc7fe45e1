"""What a report is about: one capture, the difference of two, or a series of captures of one process.

    one file                          that capture
    two files                         the difference: what has grown and shrunk from the first to the second
    more, all from one process        a series, in the order of their times
    more, from several processes      their sum, as everywhere else

`merge`, `diff` and `series` override this.
"""

from __future__ import annotations

import dataclasses
import os

from heapledger._metadata import MOMENTS
from heapledger.command import Failure, _inputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from heapledger import Capture, Snapshot
    from heapledger._types import Metadata, Moment

MANY_FILES = 10
MANY_BYTES = 4 << 20  # a second's work


@dataclasses.dataclass
class Subject:
    mode: str  # "one", "difference", "series"
    captures: list[Capture]
    labels: list[str]  # a name for each: the file's
    moments: tuple[Moment, ...]  # those that all captures have
    is_long: bool  # whether adding up its stacks takes so long that the user should see progress
    metadata: list[Metadata]  # of the files, also where one capture is the sum of many

    @property
    def snapshots(self) -> list[Snapshot]:
        """For each moment, all captures."""
        return [getattr(capture, moment) for moment in self.moments for capture in self.captures]


def _time_of(capture: Capture) -> int:
    time = capture.metadata.get("time")
    return time if isinstance(time, int) else 0


def _are_series(captures: Sequence[Capture]) -> bool:
    """Whether these are from one process, at different times."""
    processes = {_inputs.process_of(capture) for capture in captures}
    times = {_time_of(capture) for capture in captures}
    return len(processes) == 1 and None not in processes and len(times) == len(captures)


def _choose(captures: Sequence[Capture], way: str | None) -> str:
    if way is not None:
        return way
    if len(captures) == 1:
        return "one"
    if len(captures) == 2:
        return "difference"
    return "series" if _are_series(captures) else "merge"


def load(filenames: Sequence[str], way: str | None = None) -> Subject:
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
    moments = tuple(name for name in MOMENTS if all(getattr(capture, name) is not None for capture in captures))
    if not moments:
        raise Failure("the files have no moment in common")
    return Subject(way, captures, labels, moments, is_long, metadata)
