"""The call tree of a subject as one compact run of bytes, which page/decode.js reads.

    u32        length of the header
    header     JSON: what is text, and for each array [length, bytes of a number]
    arrays     of the tree: depth and location of each node in preorder; file, line and function of each location
               of each column, which is what one capture has at one moment: nodes (as distances), and their own bytes
               and own blocks. A whole column has all nodes with blocks of their own; any other has those that differ
               from the column of the capture before

all compressed (raw deflate) and, in a page, in base64. A page has everything; a server hands out the tree without
columns, and each column, whole, when it is asked for.

An array is cut into planes, the lowest bytes of all numbers first, then the next: most planes are nearly constant,
which is what makes them small. Names are in the header and nowhere else, so no name ever stands in the page's markup.
"""

import base64
import json
import sys
import zlib
from array import array
from itertools import compress
from operator import ne

from heapledger._ledger import _call_tree
from heapledger.command._names import package_of
from heapledger.report import _names

_METADATA = ("command", "host", "pid", "python", "time", "traced", "peak", "rss", "tables", "lost_records")
_CONFIDENTIAL = ("command", "host", "pid", "python")


def _planes(numbers):
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

    def __init__(self, snapshots):
        parents, locations, _, self.names, sums = _call_tree(tuple(snapshots))
        self.parents = array("I", parents)
        self.locations = array("I", locations)
        self.sums = [tuple(array("Q", data) for data in column) for column in sums]

    def depths(self):
        depths = array("I", bytes(4 * len(self.parents)))
        for node in range(1, len(depths)):
            depths[node] = depths[self.parents[node]] + 1
        return depths


def _changes(column, before):
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


def _number(table, value):
    return table.setdefault(value, len(table))


def _names_of(tree, confidential):
    """(header fields, arrays) for the locations, of which the first is the root."""
    files, functions = {}, {None: 0}
    places = [(_number(files, name[0]), name[1], _number(functions, name[2])) for name in tree.names[1:]]
    places.insert(0, (0, 0, 0))
    kinds = [_names.KINDS.index(_names.kind_of(name)) for name in files]
    packages = [package_of(name) for name in files]
    shown_files, shown_functions = list(files), ["", *list(functions)[1:]]
    if confidential:
        pseudonyms = _names.Pseudonyms()
        shown_files = [f"{pseudonyms.of('file', name)}.py" for name in shown_files]
        packages = [pseudonyms.of("package", name) for name in packages]
        shown_functions = ["", *(pseudonyms.of("function", name) for name in shown_functions[1:])]
    fields = {
        "files": shown_files,
        "functions": shown_functions,
        "kinds": list(_names.KINDS),
        "kindOfFile": kinds,
        "packageOfFile": packages,
    }
    return fields, [array("I", column) for column in zip(*places, strict=True)]


def _describe(capture, label, confidential):
    """What the page says of a capture."""
    metadata = capture.metadata
    said = {name: metadata.get(name) for name in _METADATA}
    if isinstance(said["python"], str):
        said["python"] = said["python"].split(" ", 1)[0]
    if isinstance(said["time"], int):
        said["time"] = said["time"] // 1_000_000  # milliseconds are enough, and exact in the page
    if confidential:
        said.update(dict.fromkeys(_CONFIDENTIAL))
        label = ""
    return {"label": label, **said}


def _header(subject, tree, confidential):
    """(fields of the header, arrays) of the tree, without columns."""
    fields, names = _names_of(tree, confidential)
    fields["mode"] = subject.mode
    fields["moments"] = list(subject.moments)
    fields["confidential"] = confidential
    fields["captures"] = [
        _describe(capture, label, confidential) for capture, label in zip(subject.captures, subject.labels, strict=True)
    ]
    fields["totals"] = [{"bytes": column[2][0], "blocks": column[3][0]} for column in tree.sums]
    return fields, [tree.depths(), tree.locations, *names]


def _pack(fields, arrays):
    """The run of bytes, compressed."""
    packed = [_planes(numbers) for numbers in arrays]
    fields = {**fields, "arrays": [shape for shape, _ in packed]}
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=True).encode("ascii")
    compressor = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    pieces = [compressor.compress(len(text).to_bytes(4, "little")), compressor.compress(text)]
    pieces += [compressor.compress(data) for _, data in packed]
    return b"".join([*pieces, compressor.flush()])


def encode(subject, confidential=False):
    """All of the subject, for a page that has everything in it."""
    tree = Tree(subject.snapshots)
    fields, arrays = _header(subject, tree, confidential)
    fields["columns"] = []
    for index, column in enumerate(tree.sums):
        is_whole = index % len(subject.captures) == 0
        fields["columns"].append(is_whole)
        arrays += _changes(column, None if is_whole else tree.sums[index - 1])
    return _pack(fields, arrays)


def encode_tree(subject, tree, confidential=False):
    """The tree for a page that asks for columns."""
    fields, arrays = _header(subject, tree, confidential)
    return _pack({**fields, "columns": []}, arrays)


def encode_column(tree, index):
    """One column; the columns are in the order of Subject.snapshots."""
    return _pack({"columns": [True]}, _changes(tree.sums[index], None))


def to_text(data):
    return base64.b64encode(data).decode("ascii")
