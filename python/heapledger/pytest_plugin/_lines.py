"""The lines responsible, as a table with their source."""

from __future__ import annotations

import linecache
import os.path

from heapledger.command._text import plural
from heapledger.command._text import size as format_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from heapledger import Statistic, StatisticDiff
    from heapledger._types import FrameTuple

    _Excess = dict[tuple[FrameTuple, FrameTuple | None], list[int]]


def line_of(statistic: Statistic) -> FrameTuple:
    """The line that allocated."""
    newest = statistic.traceback[-1]
    return newest.filename, newest.lineno


def by_line(statistics: Iterable[Statistic]) -> dict[FrameTuple, tuple[int, int]]:
    """{line: (bytes, blocks)}"""
    sums: dict[FrameTuple, tuple[int, int]] = {}
    for statistic in statistics:
        size, count = sums.get(line_of(statistic), (0, 0))
        sums[line_of(statistic)] = size + statistic.size, count + statistic.count
    return sums


def excess(statistics: Iterable[Statistic | StatisticDiff], test_path: PathLike[str]) -> _Excess:
    """{(line that allocates, line of the test that led there or None): [bytes, blocks]}, growth only."""
    lines: _Excess = {}
    for statistic in statistics:
        size = getattr(statistic, "size_diff", statistic.size)
        count = getattr(statistic, "count_diff", statistic.count)
        if size <= 0 and count <= 0:
            continue
        frames = [(frame.filename, frame.lineno) for frame in statistic.traceback]
        newest, test = frames[-1], os.fspath(test_path)
        caller = next((frame for frame in reversed(frames[:-1]) if frame[0] == test), None)
        key = newest, None if newest[0] == test else caller
        sums = lines.setdefault(key, [0, 0])
        sums[0] += size
        sums[1] += count
    return lines


def _place(line: FrameTuple, folder: PathLike[str]) -> str:
    name, number = line
    relative = os.path.relpath(name, folder) if os.path.isabs(name) else name
    return f"{name if relative.startswith('..') else relative}:{number}"


def table(lines: _Excess, most: int, folder: PathLike[str]) -> str:
    """The table as text, largest first."""
    ranked = sorted(lines.items(), key=lambda line: (-line[1][0], line[0][0], line[0][1] or ()))
    rows = [f"{'bytes':>14} {'blocks':>9}  line"]
    for (line, caller), (size, count) in ranked[:most]:
        rows.append(f"{format_size(size):>14} {count:>9,}  {_place(line, folder)}")
        source = linecache.getline(*line).strip()
        if source:
            rows.append(f"{'':>26}    {source}")
        if caller is not None:
            rows.append(f"{'':>26}  called from {_place(caller, folder)}")
            rows.append(f"{'':>26}    {linecache.getline(*caller).strip()}")
    left = ranked[most:]
    if left:
        size, count = (sum(sums[i] for _, sums in left) for i in (0, 1))
        rows.append(f"{format_size(size):>14} {count:>9,}  {plural(len(left), 'more line')}")
    return "\n".join(rows)
