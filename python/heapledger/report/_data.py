"""The call tree of a subject as one compact run of bytes, which page/decode.js reads.

    u32        length of the header
    header     JSON: what is text, and for each array [length, bytes of a number]
    arrays     of the tree: depth and location of each node in preorder; file, line, function, source of each location
               of each column, which is what one capture has at one moment: nodes (as distances), and their own bytes
               and own blocks. A whole column has all nodes with blocks of their own; any other has those that differ
               from the column of the capture before

Everything is compressed (raw deflate) and, in a page, in base64. A page contains everything. A server sends the tree
without columns, and each whole column on request.

An array is cut into planes: the lowest bytes of all numbers first, then the next. Most planes are nearly constant, so
they become small. Names are only in the header, so no name is ever in the page's markup.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import sys
import zlib
from array import array
from itertools import compress
from operator import ne

from heapledger._ledger import _call_tree
from heapledger.command import _kinds, _resident, _sources, _text
from heapledger.command._names import package_of
from heapledger.report import _names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence
    from typing import TypeVar

    from heapledger import Capture, Snapshot
    from heapledger.report._subject import Subject

    _Column = tuple[array[int], ...]
    _Value = TypeVar("_Value", bound=Hashable)

_METADATA = ("command", "host", "pid", "python", "time", "peak", "rss", "lost_records")
_CONFIDENTIAL = ("command", "host", "pid", "python")
_LONGEST_SOURCE = 160  # characters of a line


@dataclasses.dataclass
class Options:
    """What a page shows of its subject."""

    kinds: _kinds.Kinds
    fold: str = "imports"  # one of _folding.FOLDS, to begin with
    confidential: bool = False  # no names
    sources: bool = True  # the text of lines


def _planes(numbers: array[int]) -> tuple[list[int], bytes]:
    """([length, width], bytes) of an array of unsigned numbers."""
    if sys.byteorder != "little":
        numbers = numbers[:]
        numbers.byteswap()
    data, item = numbers.tobytes(), numbers.itemsize
    planes = [data[place::item] for place in range(item)]
    while len(planes) > 1 and not any(planes[-1]):
        planes.pop()
    return [len(numbers), len(planes)], b"".join(planes)


class Tree:
    """The call tree of some snapshots as arrays. sums[i] is (own bytes, own blocks, bytes, blocks)."""

    def __init__(self, snapshots: Iterable[Snapshot]) -> None:
        parents, locations, _, self.names, sums = _call_tree(tuple(snapshots), True)
        self.parents = array("I", parents)
        self.locations = array("I", locations)
        self.sums = [tuple(array("Q", data) for data in column) for column in sums if column is not None]

    def depths(self) -> array[int]:
        depths = array("I", bytes(4 * len(self.parents)))
        for node in range(1, len(depths)):
            depths[node] = depths[self.parents[node]] + 1
        return depths


def _changes(column: _Column, before: _Column | None) -> tuple[array[int], array[int], array[int]]:
    """(distances, own bytes, own blocks) of the nodes where two columns differ; before is None for the first."""
    sizes, blocks = column[:2]
    count = len(sizes)
    if before is None:
        changed = list(compress(range(count), blocks))
    else:
        differs = map(ne, zip(sizes, blocks, strict=True), zip(before[0], before[1], strict=True))
        changed = list(compress(range(count), differs))
    distances = array("I", changed)
    for index in range(len(changed) - 1, 0, -1):
        distances[index] -= distances[index - 1]
    return distances, array("Q", [sizes[node] for node in changed]), array("Q", [blocks[node] for node in changed])


def _number(table: dict[_Value, int], value: _Value) -> int:
    return table.setdefault(value, len(table))


def _sources_of(tree: Tree) -> tuple[list[str], array[int]]:
    """(texts, the number of each location's text) of the lines that the locations name, if their files exist."""
    sources, texts, numbers = _sources.Sources(for_others=True), {"": 0}, array("I", [0])
    for filename, line, _ in tree.names[1:]:
        numbers.append(_number(texts, _text.shorten(sources.line(filename, line), _LONGEST_SOURCE)))
    return list(texts), numbers


def _names_of(tree: Tree, options: Options) -> tuple[dict[str, object], list[array[int]]]:
    """(header fields, arrays) for the locations, of which the first is the root."""
    files: dict[str, int] = {}
    functions: dict[str | None, int] = {None: 0}
    places = [(_number(files, name[0]), name[1], _number(functions, name[2])) for name in tree.names[1:]]
    places.insert(0, (0, 0, 0))
    kinds = [_kinds.KINDS.index(options.kinds.of(name)) for name in files]
    packages = [package_of(name) for name in files]
    shown_files, shown_functions = list(files), ["", *list(functions)[1:]]
    if options.sources:
        sources, source_numbers = _sources_of(tree)
    else:
        sources, source_numbers = [""], array("I", [0] * len(tree.names))
    if options.confidential:
        pseudonyms = _names.Pseudonyms()
        cut = _kinds.KINDS.index("cut")
        shown_files = [
            name if kind == cut else f"{pseudonyms.of('file', name)}.py"
            for name, kind in zip(shown_files, kinds, strict=True)
        ]
        packages = [pseudonyms.of("package", name) for name in packages]
        joints = {functions[name[2]] for name in tree.names[1:] if name[0] == _kinds.CUT}
        shown_functions = [
            name if not name or number in joints else pseudonyms.of("function", name)
            for number, name in enumerate(shown_functions)
        ]
    fields: dict[str, object] = {
        "files": shown_files,
        "functions": shown_functions,
        "sources": sources,
        "kinds": list(_kinds.KINDS),
        "kindOfFile": kinds,
        "packageOfFile": packages,
    }
    return fields, [*(array("I", column) for column in zip(*places, strict=True)), source_numbers]


def _describe(capture: Capture, label: str, confidential: bool) -> dict[str, object]:
    """What the page says about a capture."""
    metadata = capture.metadata
    said = {name: metadata.get(name) for name in _METADATA}
    said["resident"] = _resident.resident(metadata)
    if isinstance(said["python"], str):
        said["python"] = said["python"].split(" ", 1)[0]
    if isinstance(said["time"], int):
        said["time"] = said["time"] // 1_000_000  # milliseconds are enough, and exact in the page
    if confidential:
        said.update(dict.fromkeys(_CONFIDENTIAL))
        label = ""
    return {"label": label, **said}


def _header(subject: Subject, tree: Tree, options: Options) -> tuple[dict[str, object], list[array[int]]]:
    """(fields of the header, arrays) of the tree, without columns."""
    confidential = options.confidential
    fields, names = _names_of(tree, options)
    fields["mode"] = subject.mode
    fields["moments"] = list(subject.moments)
    fields["confidential"] = confidential
    fields["fold"] = options.fold
    fields["resident"] = _resident.EXPLANATIONS
    fields["captures"] = [
        _describe(capture, label, confidential) for capture, label in zip(subject.captures, subject.labels, strict=True)
    ]
    fields["totals"] = [{"bytes": column[2][0], "blocks": column[3][0]} for column in tree.sums]
    return fields, [tree.depths(), tree.locations, *names]


def _pack(fields: dict[str, object], arrays: Sequence[array[int]]) -> bytes:
    """The run of bytes, compressed."""
    packed = [_planes(numbers) for numbers in arrays]
    fields = {**fields, "arrays": [shape for shape, _ in packed]}
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=True).encode("ascii")
    compressor = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    pieces = [compressor.compress(len(text).to_bytes(4, "little")), compressor.compress(text)]
    pieces += [compressor.compress(data) for _, data in packed]
    return b"".join([*pieces, compressor.flush()])


def encode(subject: Subject, options: Options | None = None) -> bytes:
    """The whole subject, for a page that contains everything."""
    options = options or Options(_kinds.Kinds(subject.metadata))
    tree = Tree(subject.snapshots)
    fields, arrays = _header(subject, tree, options)
    are_whole = [index % len(subject.captures) == 0 for index in range(len(tree.sums))]
    for index, (column, is_whole) in enumerate(zip(tree.sums, are_whole, strict=True)):
        arrays += _changes(column, None if is_whole else tree.sums[index - 1])
    return _pack({**fields, "columns": are_whole}, arrays)


def encode_tree(subject: Subject, tree: Tree, options: Options | None = None) -> bytes:
    """The tree for a page that asks for columns."""
    options = options or Options(_kinds.Kinds(subject.metadata))
    fields, arrays = _header(subject, tree, options)
    return _pack({**fields, "columns": []}, arrays)


def encode_column(tree: Tree, index: int) -> bytes:
    """One column; the columns are in the order of Subject.snapshots."""
    return _pack({"columns": [True]}, _changes(tree.sums[index], None))


def to_text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
