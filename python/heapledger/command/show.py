"""Show one traceback in full, with the source of its lines, and what it holds, held at the peak, and ever allocated.

heapledger top --by traceback and diff --by traceback print the numbers of tracebacks. The first digits of a number are
enough. A traceback has the same number in all files.
"""

from __future__ import annotations

from heapledger.command import Failure, _inputs, _names, _sources, _table, _text
from heapledger.command._tree import CallTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLE = """\
  heapledger top app.hlsnap --by traceback
  heapledger show app.hlsnap 3f9c01ab22"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="an .hlsnap file, or a pickle of tracemalloc")
    parser.add_argument("traceback", metavar="TRACEBACK-ID", help="the number of the traceback")
    parser.add_argument("--json", action="store_true", help="write JSON")


def find(tree: CallTree, wanted: str) -> dict[str, list[int]]:
    """{id: [node, ...]} of tracebacks whose ids begin like this. Those that differ only in function names are one."""
    found: dict[str, list[int]] = {}
    for node, (number, *counts) in enumerate(zip(_names.Ids().of_tree(tree), *tree.own_counts, strict=True)):
        if any(counts):
            text = _names.Ids.text(number)
            if text.startswith(wanted):
                found.setdefault(text, []).append(node)
    return found


def run(options: Namespace) -> int:
    wanted = options.traceback.lower()
    capture = _inputs.load([options.file])
    moments = capture.moments
    tree = CallTree([getattr(capture, name) for name in moments])
    found = find(tree, wanted) if wanted else {}
    if not found:
        raise Failure(f"no traceback has the number {_text.printable(options.traceback)}")
    if len(found) > 1:
        raise Failure(f"{_text.printable(options.traceback)} may be any of: {', '.join(sorted(found)[:10])}")
    ((number, nodes),) = found.items()
    frames = tree.frames(nodes[0])
    sums = {
        name: {
            "size": sum(tree.own_sizes[place][node] for node in nodes),
            "count": sum(tree.own_counts[place][node] for node in nodes),
        }
        for place, name in enumerate(moments)
    }
    sources = _sources.Sources()
    if options.json:
        listed = [{**_names.frame_as_json(frame), "source": sources.line(*frame[:2])} for frame in frames]
        _table.show_json({"id": number, "moments": sums, "frames": listed})
        return 0
    _table.show(f"traceback {number}, {_text.plural(len(frames), 'frame')}, the oldest first:")
    for frame in frames:
        _table.show(f"  {_names.frame_label(frame)}")
        source = sources.line(*frame[:2])
        if source:
            _table.show(f"    {source}")
    _table.show()
    columns = [_table.Column("size", "bold"), _table.Column("blocks"), _table.Column("moment")]
    rows = [[_text.size(one["size"]), _text.count(one["count"]), name] for name, one in sums.items()]
    _table.show_table(columns, rows)
    return 0
