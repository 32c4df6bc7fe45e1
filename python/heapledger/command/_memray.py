"""Tables that `memray transform csv` writes: a line for each allocator, thread and stack, with bytes and allocations.

Frames are function;file;line, newest first, with | between them. Allocators and threads are added up. The table has
only the total bytes of all allocations of a line, so the sizes of single allocations are unknown. This module makes
them as equal as whole numbers can be. Their sum and their number are right.
"""

from __future__ import annotations

import collections
import csv
import io
import re
import sys

from heapledger import _files
from heapledger.command import Failure, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from heapledger._types import Location, Moment

HEADER = "allocator,num_allocations,size,tid,thread_name,stack_trace"
_FRAME = re.compile(r"([^;]*);(.*?);(\d+)(?:\||$)", re.DOTALL)
_UNKNOWN = ("<unknown>", 0, None)


def is_table(data: bytes) -> bool:
    """Whether these bytes begin like such a table."""
    return data.startswith(HEADER.encode("ascii"))


def _frames(text: str) -> tuple[Location, ...]:
    """The newest first."""
    found, at = [], 0
    for match in _FRAME.finditer(text):
        if match.start() != at:
            break
        function, filename, line = match.groups()
        found.append((filename, int(line), function))
        at = match.end()
    if at != len(text):
        raise ValueError("a stack is malformed")
    return tuple(found) or (_UNKNOWN,)


def convert(data: bytes, filename: str, moment: Moment) -> bytes:
    """The bytes of an .hlsnap file with what the table has."""
    sums: collections.Counter[tuple[tuple[Location, ...], int]] = collections.Counter()  # blocks by stack and size
    deepest = 1
    csv.field_size_limit(sys.maxsize)  # deep stacks are long fields
    with io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="surrogateescape", newline="") as file:
        table = csv.DictReader(file)
        try:
            if "stack_trace" not in (table.fieldnames or ()):  # the last name of HEADER, which may go on
                raise ValueError("the column stack_trace is missing")
            for row in table:
                frames = _frames(row["stack_trace"])
                deepest = max(deepest, len(frames))
                count, size = int(row["num_allocations"]), int(row["size"])
                if not (0 < count < 2**56 and 0 <= size < 2**62) or max(frame[1] for frame in frames) >= 2**32:
                    raise ValueError("a number is too large or too small")
                each, greater = divmod(size, count)
                if greater:
                    sums[frames, each + 1] += greater
                sums[frames, each] += count - greater
        except (ValueError, TypeError, csv.Error) as error:
            raise Failure(f"cannot read {_text.printable(filename)}: line {table.line_num}: {error}") from error
    rows = [(frames, size, count) for (frames, size), count in sums.items()]
    metadata = {"imported_from": "memray", "moment": moment, "traceback_limit": deepest}
    try:
        return _files.encode_all([_files.from_rows(rows, moment, deepest, metadata)])
    except OverflowError as error:
        raise Failure(f"cannot import {_text.printable(filename)}: {error}") from error
