"""The formats of export: functions that turn a call tree of snapshots of some moments into text or bytes."""

from __future__ import annotations

import csv
import io
import json

from heapledger.command import _names, _pprof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from heapledger._types import Location, Metadata, Moment
    from heapledger.command._tree import CallTree


class Exported:
    """What to write: the tree, the names of its snapshots' moments, the moment to show first, metadata, a title."""

    def __init__(self, tree: CallTree, moments: list[Moment], chosen: Moment, metadata: Metadata, title: str) -> None:
        self.tree = tree
        self.moments = moments
        self.chosen = chosen
        self.metadata = metadata
        self.title = title

    def stacks(self) -> Iterator[tuple[int, dict[Moment, tuple[int, int]]]]:
        """(node, {moment: (size, count)}) for all stacks that have blocks at any moment."""
        tree = self.tree
        columns = [
            zip(tree.own_sizes[place], tree.own_counts[place], strict=True) for place in range(len(self.moments))
        ]
        for node, sums in enumerate(zip(*columns, strict=True)):
            if any(count for _, count in sums):
                yield node, dict(zip(self.moments, sums, strict=True))


def pprof(exported: Exported) -> bytes:
    return _pprof.encode(exported.tree, exported.moments, exported.metadata, exported.chosen, exported.title)


def speedscope(exported: Exported) -> bytes:
    """https://www.speedscope.app/file-format-schema.json: two profiles, bytes and blocks, for each moment."""
    tree = exported.tree
    frames = [
        {"name": function or f"{filename}:{line}", "file": filename, "line": line}
        for filename, line, function in tree.locations
    ]
    stacks: dict[Moment, list[list[int]]] = {moment: [] for moment in exported.moments}
    sums: dict[Moment, list[tuple[int, int]]] = {moment: [] for moment in exported.moments}
    for node, found in exported.stacks():
        path = tree.path(node)
        for moment, (size, count) in found.items():
            if count:
                stacks[moment].append(path)
                sums[moment].append((size, count))
    profiles = []
    order = sorted(exported.moments, key=lambda moment: moment != exported.chosen)
    for moment in order:
        for place, (what, unit) in enumerate((("bytes", "bytes"), ("blocks", "none"))):
            weights = [one[place] for one in sums[moment]]
            profiles.append(
                {
                    "type": "sampled",
                    "name": f"{moment}, {what}",
                    "unit": unit,
                    "startValue": 0,
                    "endValue": sum(weights),
                    "samples": stacks[moment],
                    "weights": weights,
                }
            )
    value = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": exported.title,
        "exporter": "heapledger",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _collapsed_frame(location: Location) -> str:
    """Semicolons separate frames, and ends of lines separate stacks, so names cannot contain them."""
    filename, line, function = location
    name = f"{function} ({filename}:{line})" if function else f"{filename}:{line}"
    return "".join("_" if character == ";" or not character.isprintable() else character for character in name)


def collapsed(exported: Exported) -> bytes:
    """Brendan Gregg's format: a stack in each line, frames separated by semicolons, and the bytes of one moment."""
    tree = exported.tree
    names = [_collapsed_frame(location) for location in tree.locations]
    lines = []
    for node, found in exported.stacks():
        size, count = found[exported.chosen]
        if count:
            path = ";".join([names[place] for place in tree.path(node)])
            lines.append(f"{path or '<no frames>'} {size}\n")
    return "".join(lines).encode("utf-8", "backslashreplace")


def csv_table(exported: Exported) -> bytes:
    """A line for each stack. One field has its frames, each as file:line:function, oldest first."""
    tree, ids = exported.tree, _names.Ids().of_tree(exported.tree)
    names = [f"{filename}:{line}:{function or ''}" for filename, line, function in tree.locations]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    sums = [f"{moment}_{what}" for moment in exported.moments for what in ("bytes", "blocks")]
    writer.writerow(["traceback_id", *sums, "file", "line", "function", "traceback"])
    for node, found in exported.stacks():
        numbers = [number for moment in exported.moments for number in found[moment]]
        filename, line, function = tree.location(node) if node else ("", 0, None)
        path = ";".join([names[place] for place in tree.path(node)])
        writer.writerow([_names.Ids.text(ids[node]), *numbers, filename, line, function or "", path])
    return text.getvalue().encode("utf-8", "backslashreplace")


def json_document(exported: Exported) -> bytes:
    """Everything: each frame once, and stacks as numbers of frames, oldest first."""
    tree, ids = exported.tree, _names.Ids().of_tree(exported.tree)
    stacks = [
        {
            "id": _names.Ids.text(ids[node]),
            "frames": tree.path(node),
            **{moment: {"bytes": size, "blocks": count} for moment, (size, count) in found.items()},
        }
        for node, found in exported.stacks()
    ]
    value = {
        "format": "heapledger",
        "version": 1,
        "moments": exported.moments,
        "metadata": exported.metadata,
        "frames": [_names.frame_as_json(location) for location in tree.locations],
        "stacks": stacks,
    }
    return json.dumps(value, default=repr).encode("ascii")


FORMATS = {
    "pprof": pprof,
    "speedscope": speedscope,
    "collapsed": collapsed,
    "csv": csv_table,
    "json": json_document,
}
# The formats for graphs. Cut stacks would tear a graph apart.
JOINED = ("pprof", "speedscope", "collapsed")
