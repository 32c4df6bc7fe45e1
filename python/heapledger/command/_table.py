"""Tables and other output of the commands. On a terminal they have colours and are cut to fit. Elsewhere they are plain
and whole.

Cells are text, never markup. rich is imported only if the output is a terminal.
"""

from __future__ import annotations

import os
import sys

from heapledger.command import _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from heapledger._types import Cell

    _Styled = tuple[str, str | None]

LEAST_ROOM = 10  # for the last column of a table
DEEPEST_INDENTATION = 100  # of JSON: one that always grew would be nearly all of a deep tree
_NOTHING = object()


class Column:
    """A column of a table. `style` is rich's; the last column of a table may have cells of several lines, and is cut to
    fit, or with `prose` wrapped."""

    def __init__(self, title: str, style: str = "", right: bool = True, prose: bool = False) -> None:
        self.title = title
        self.style = style
        self.right = right
        self.prose = prose


def is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def show(text: str = "") -> None:
    print(text)


def show_json(value: object) -> None:
    """Like json.dump(indent=2), but without recursion: a call tree may be too deep for it."""
    from json import dumps  # importing it takes as long as a small command

    waiting = [(0, "", value)]  # the last one is next: (level, text before it, value)
    while waiting:
        level, before, value = waiting.pop()
        sys.stdout.write(before)
        if isinstance(value, (dict, list)) and value:
            opening, closing = "{}" if isinstance(value, dict) else "[]"
            named = value.items() if isinstance(value, dict) else ((None, one) for one in value)
            entries = [("" if name is None else f"{dumps(name)}: ", one) for name, one in named]
            sys.stdout.write(opening)
            waiting.append((level, _new_line(level) + closing, _NOTHING))
            for number in range(len(entries) - 1, -1, -1):
                name, one = entries[number]
                waiting.append((level + 1, "," * (number > 0) + _new_line(level + 1) + name, one))
        elif value is not _NOTHING:
            sys.stdout.write(dumps(value))
    print()


def _new_line(level: int) -> str:
    return "\n" + "  " * min(level, DEEPEST_INDENTATION)


def show_table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    """`rows`: a cell for each column, text or, to give one another style, (text, style)."""
    styled = [[cell if isinstance(cell, tuple) else (cell, None) for cell in row] for row in rows]
    if is_terminal():
        _show_rich(columns, styled)
    else:
        _show_plain(columns, styled)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[_Styled]]) -> list[int]:
    """Of all columns but the last."""
    return [
        max([len(column.title), *(len(row[number][0]) for row in rows)]) for number, column in enumerate(columns[:-1])
    ]


def _show_plain(columns: Sequence[Column], rows: Sequence[Sequence[_Styled]]) -> None:
    widths = _widths(columns, rows)
    indent = sum(widths) + 2 * len(widths)
    for row in [[(column.title, None) for column in columns], *rows]:
        cells = [
            text.rjust(width) if column.right else text.ljust(width)
            for (text, _), width, column in zip(row, widths, columns, strict=False)
        ]
        print("  ".join([*cells, row[-1][0].replace("\n", "\n" + " " * indent)]).rstrip())


def _show_rich(columns: Sequence[Column], rows: Sequence[Sequence[_Styled]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    widths, last = _widths(columns, rows), columns[-1]
    for column, width in zip(columns, widths, strict=False):
        table.add_column(
            column.title, style=column.style, justify="right" if column.right else "left", no_wrap=True, width=width
        )
    taken = sum(widths) + 2 * len(widths)
    room = max(console.width - taken, LEAST_ROOM, len(last.title))
    table.add_column(last.title, style=last.style, no_wrap=not last.prose, max_width=room)
    # If the table were wider than the console, numbers would be cut too. The terminal breaks lines that are too long.
    console.width = taken + room
    for row in rows:
        first, *more = [line if last.prose else _text.shorten(line, room) for line in row[-1][0].split("\n")]
        described = Text(first, style=row[-1][1] or "")
        for line in more:
            described.append("\n" + line, style="dim")
        table.add_row(*(Text(text, style=style or "") for text, style in row[:-1]), described)
    console.print(table, crop=True, overflow="ellipsis")
