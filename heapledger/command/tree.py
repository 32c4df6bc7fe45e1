"""Show the call tree: how much memory was allocated by each line and all that it called.

What has less than --threshold per cent of the whole is folded into one line, or left out where that has less, too. A
call that is its caller's only one stands below it without being indented.
"""

from heapledger.command import _arguments, _inputs, _names, _sources, _table, _text
from heapledger.command._tree import CallTree

EXAMPLE = """\
  heapledger tree app.hlsnap
  heapledger tree app.hlsnap --peak --threshold 0.5 --depth 40"""


def add_arguments(parser):
    _inputs.add_files(parser)
    parser.add_argument(
        "--threshold",
        metavar="PERCENT",
        type=_arguments.percentage,
        default=1.0,
        help="fold what has less (default: 1)",
    )
    parser.add_argument(
        "--depth", metavar="N", type=_arguments.at_least_one, default=100, help="fold what is deeper (default: 100)"
    )
    parser.add_argument("--source", action="store_true", help="show the source of the lines too")
    parser.add_argument("--json", action="store_true", help="write JSON")
    _inputs.add_selection(parser)


class View:
    """The tree as it is shown: what is below the threshold is folded."""

    def __init__(self, tree, options):
        self.tree = tree
        self.sizes, self.counts = tree.sizes[0], tree.counts[0]
        self.least = self.sizes[0] * options.threshold / 100
        self.depth = options.depth

    def below(self, node, depth):
        """(nodes to show, the greatest first; number, size and count of those to fold)"""
        sizes, counts = self.sizes, self.counts
        nodes = [child for child in self.tree.children(node) if counts[child]]
        shown = [child for child in nodes if sizes[child] >= self.least] if depth < self.depth else []
        shown.sort(key=lambda child: (-sizes[child], -counts[child], child))
        kept = set(shown)
        folded = [child for child in nodes if child not in kept]
        return shown, (len(folded), sum(sizes[one] for one in folded), sum(counts[one] for one in folded))


def lines(view):
    """(node, guide before it) in the order of the picture; a triple instead of the node for what is folded."""
    waiting = [(0, 0, "", "")]
    while waiting:
        node, depth, guide, indent = waiting.pop()
        yield node, guide
        if isinstance(node, tuple):
            continue
        shown, folded = view.below(node, depth)
        entries = [*shown, *([folded] if folded[0] and folded[1] >= view.least else [])]
        if len(entries) == 1:
            waiting.append((entries[0], depth + 1, indent + ("└ " if node == 0 else "  "), indent + "  " * (node == 0)))
            continue
        for number in range(len(entries) - 1, -1, -1):
            last = number == len(entries) - 1
            waiting.append(
                (entries[number], depth + 1, indent + ("└ " if last else "├ "), indent + ("  " if last else "│ "))
            )


def show(view, options):
    whole = view.sizes[0]
    sources = _sources.Sources()
    rows = []
    for node, guide in lines(view):
        if isinstance(node, tuple):
            number, size, count = node
            text, style = f"{_text.plural(number, 'call')} folded", "dim"
        else:
            size, count, style = view.sizes[node], view.counts[node], ""
            text = "all" if node == 0 else describe(view.tree.location(node))
            if options.source and node:
                source = sources.line(*view.tree.location(node)[:2])
                text += f"    {source}" if source else ""
        rows.append([_text.share(size, whole), _text.size(size), _text.count(count), (guide + text, style)])
    columns = [_table.Column("share", "bold"), _table.Column("size"), _table.Column("blocks")]
    _table.show_table([*columns, _table.Column("call", right=False)], rows)


def describe(location):
    filename, line, function = location
    where = _names.place_label(filename, line)
    return f"{_names.function_label(function)}  {where}" if function else where


def as_json(view):
    """Nested objects, built from the bottom: deep trees need no deep recursion here."""
    order = [(node, depth) for node, depth in walk(view)]
    made = {}
    for node, depth in reversed(order):
        shown, (number, size, count) = view.below(node, depth)
        one = {"size": view.sizes[node], "count": view.counts[node]}
        if node:
            one = {**_names.frame_as_json(view.tree.location(node)), **one}
        one["children"] = [made.pop(child) for child in shown]
        if number:
            one["folded"] = {"number": number, "size": size, "count": count}
        made[node] = one
    return made[0]


def walk(view):
    waiting = [(0, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in view.below(node, depth)[0]]


def run(options):
    moment, snapshot = _inputs.select(_inputs.load(options.files), options)
    view = View(CallTree([snapshot]), options)
    if options.json:
        _table.show_json({"moment": moment, "threshold": options.threshold, "root": as_json(view)})
        return 0
    if view.counts[0]:
        show(view, options)
    else:
        _table.show(_inputs.nothing(options))
    _table.show()
    _table.show(f"{moment}: {_text.size(view.sizes[0])} in {_text.plural(view.counts[0], 'block')}")
    return 0
