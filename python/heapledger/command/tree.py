"""Show the call tree: how much memory each line, and everything that it called, allocated.

What has less than --threshold percent of the total is folded into one line. If that line has less too, it is left out.
A call that is the only one of its caller stands below it without indentation. The memory of imports is one line.

A stack that was cut at the frame limit stands below the line that most likely called it, marked as a guess.
"""

from __future__ import annotations

from heapledger.command import _arguments, _folding, _groups, _inputs, _kinds, _names, _sources, _table, _text
from heapledger.command._tree import CallTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator, Sequence
    from typing import Any

    from heapledger import Snapshot
    from heapledger._types import Cell, Location
    from heapledger.command._folding import Folding

EXAMPLE = """\
  heapledger tree app.hlsnap
  heapledger tree app.hlsnap --mine
  heapledger tree app.hlsnap --peak --threshold 0.5 --depth 40"""


def add_arguments(parser: ArgumentParser) -> None:
    _inputs.add_files(parser)
    parser.add_argument(
        "--threshold",
        metavar="PERCENT",
        type=_arguments.percentage,
        default=1.0,
        help="fold what has less than this (default: 1)",
    )
    parser.add_argument(
        "--depth", metavar="N", type=_arguments.at_least_one, default=100, help="fold deeper calls (default: 100)"
    )
    parser.add_argument("--source", action="store_true", help="also show the source of the lines")
    parser.add_argument("--json", action="store_true", help="write JSON")
    _folding.add_options(parser)
    _inputs.add_selection(parser)


class Frame:
    """A line of the picture: nodes of the tree at one place, several where frames between them are hidden."""

    __slots__ = ("count", "location", "nodes", "size")

    def __init__(self, location: Location | str | None, nodes: Sequence[int], size: int, count: int) -> None:
        self.location: Location | str | None = (
            location  # (file, line, function), None for the root; a text for what is folded
        )
        self.nodes: Sequence[int] = nodes
        self.size: int = size
        self.count: int = count


class View:
    """The tree to show. What is below the threshold or too deep is folded."""

    def __init__(self, snapshot: Snapshot, options: Namespace, folding: Folding) -> None:
        rest, imports = folding.parts(snapshot)
        self._tree = CallTree([rest], joined=True)
        self._hidden = [False, *[folding.hides(filename) for filename, _, _ in self._tree.locations]]
        self._sizes, self._counts = self._tree.sizes[0], self._tree.counts[0]
        size, count = _groups.total(imports) if imports is not None else (0, 0)
        self.imports: Frame = Frame(_names.IMPORTS[0], (), size, count)
        self.root: Frame = Frame(None, (0,), self._sizes[0] + size, self._counts[0] + count)
        self.least: float = self.root.size * options.threshold / 100
        self._depth = options.depth

    def _calls(self, frame: Frame) -> Iterator[Frame]:
        found: dict[int, list[int]] = {}
        waiting = list(frame.nodes)
        while waiting:
            for node in self._tree.children(waiting.pop()):
                place = self._tree.place(node)
                if not self._counts[node]:
                    continue
                if self._hidden[place]:
                    waiting.append(node)  # its calls are its caller's
                else:
                    found.setdefault(place, []).append(node)
        for nodes in found.values():
            size, count = (sum(sums[node] for node in nodes) for sums in (self._sizes, self._counts))
            yield Frame(self._tree.location(nodes[0]), nodes, size, count)

    def below(self, frame: Frame, depth: int) -> tuple[list[Frame], tuple[int, int, int]]:
        """(frames to show, the greatest first and imports last; number, size and count of those to fold)"""
        frames = list(self._calls(frame))
        if frame is self.root and self.imports.count:
            frames.append(self.imports)
        kept = [one for one in frames if one.size >= self.least] if depth < self._depth else []
        kept.sort(key=lambda one: (one is self.imports, -one.size, -one.count, min(one.nodes, default=0)))
        number = len(frames) - len(kept)
        size, count = (
            sum(getattr(one, what) for one in frames) - sum(getattr(one, what) for one in kept)
            for what in ("size", "count")
        )
        return kept, (number, size, count)


def lines(view: View) -> Iterator[tuple[Frame, str]]:
    """(frame, guide before it) in the order of the picture."""
    waiting = [(view.root, 0, "", "")]
    while waiting:
        frame, depth, guide, indent = waiting.pop()
        yield frame, guide
        shown, (number, size, count) = view.below(frame, depth)
        entries = list(shown)
        if number and size >= view.least:
            entries.append(Frame(f"{_text.plural(number, 'call')} folded", (), size, count))
        top = frame is view.root
        if len(entries) == 1:
            waiting.append((entries[0], depth + 1, indent + ("└ " if top else "  "), indent + "  " * top))
            continue
        for place in range(len(entries) - 1, -1, -1):
            last = place == len(entries) - 1
            waiting.append(
                (entries[place], depth + 1, indent + ("└ " if last else "├ "), indent + ("  " if last else "│ "))
            )


def show(view: View, options: Namespace) -> None:
    sources = _sources.Sources()
    rows: list[list[Cell]] = []
    for frame, guide in lines(view):
        style, text = "", describe(frame.location)
        if isinstance(frame.location, str):
            style = "dim"
        elif options.source and frame.location is not None:
            source = sources.line(*frame.location[:2])
            text += f"    {source}" if source else ""
        share, size, count = _text.share(frame.size, view.root.size), _text.size(frame.size), _text.count(frame.count)
        rows.append([share, size, count, (guide + text, style)])
    columns = [_table.Column("share", "bold"), _table.Column("size"), _table.Column("blocks")]
    _table.show_table([*columns, _table.Column("call", right=False)], rows)


def describe(location: Location | str | None) -> str:
    if location is None:
        return "all"
    if isinstance(location, str):
        return location
    filename, line, function = location
    where = _names.place_label(filename, line)
    if filename == _kinds.CUT and function:
        return function
    return f"{_names.function_label(function)}  {where}" if function else where


def as_json(view: View) -> dict[str, Any]:
    """Nested objects, built from the bottom: deep trees need no deep recursion here."""
    made: dict[tuple[int, ...], dict[str, Any]] = {}
    for frame, depth in reversed(list(walk(view))):
        shown, (number, size, count) = view.below(frame, depth)
        one: dict[str, Any] = {"size": frame.size, "count": frame.count}
        if isinstance(frame.location, str):
            one = {"imports": True, **one}
        elif frame.location is not None:
            one = {**_names.frame_as_json(frame.location), **one}
        one["children"] = [made.pop(key_of(child)) for child in shown]
        if number:
            one["folded"] = {"number": number, "size": size, "count": count}
        made[key_of(frame)] = one
    return made[key_of(view.root)]


def key_of(frame: Frame) -> tuple[int, ...]:
    return tuple(frame.nodes)


def walk(view: View) -> Iterator[tuple[Frame, int]]:
    waiting = [(view.root, 0)]
    while waiting:
        frame, depth = waiting.pop()
        yield frame, depth
        waiting += [(child, depth + 1) for child in view.below(frame, depth)[0]]


def run(options: Namespace) -> int:
    capture, folding = _inputs.load_folded(options.files, options)
    moment, snapshot = _inputs.select(capture, options)
    view = View(snapshot, options, folding)
    if options.json:
        document = {"moment": moment, "threshold": options.threshold, "fold": options.fold, "root": as_json(view)}
        _table.show_json(document)
        return 0
    if view.root.count:
        show(view, options)
    else:
        _table.show(_inputs.nothing(options))
    _table.show()
    _table.show(f"{moment}: {_text.size(view.root.size)} in {_text.plural(view.root.count, 'block')}")
    return 0
