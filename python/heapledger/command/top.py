"""Show what holds the most memory, by line, file, function, traceback or package.

The memory of a line is what its own code allocated. With --cumulative it includes what the functions that it called
allocated. --mine shows only lines of your own code, each with what the libraries that it called allocated for it.
Several files, such as those of many processes, are merged. Give the number of a traceback to heapledger show.
"""

from __future__ import annotations

from heapledger.command import Failure, _arguments, _folding, _groups, _inputs, _names, _sources, _table, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from heapledger._types import Key

EXAMPLE = """\
  heapledger top app.hlsnap
  heapledger top app.hlsnap --mine
  heapledger top app.hlsnap --peak --by package
  heapledger top worker-*.hlsnap --include '*/myapp/*' --cumulative -n 30"""


def add_view(parser: ArgumentParser) -> None:
    """Options that top and diff have in common."""
    parser.add_argument("--by", choices=_names.KEYS, default="line", help="what to group by (default: line)")
    parser.add_argument(
        "-n", "--number", metavar="N", type=_arguments.at_least_one, default=10, help="how many to show (default: 10)"
    )
    parser.add_argument("--cumulative", action="store_true", help="count what callees allocated too (not by traceback)")
    parser.add_argument("--no-source", action="store_true", help="do not show the source of lines")
    parser.add_argument("--json", action="store_true", help="write JSON")
    _folding.add_options(parser)
    parser.set_defaults(fold=None)


def check_view(options: Namespace) -> None:
    if options.fold == "libraries" and options.by == "traceback":
        raise Failure("--mine cannot be used with --by traceback, which shows whole tracebacks")
    if options.fold is None:
        options.fold = "nothing" if options.by == "traceback" else "imports"
    if options.cumulative and options.by == "traceback":
        raise Failure("--cumulative cannot be used with --by traceback: a traceback has no callees")


def add_arguments(parser: ArgumentParser) -> None:
    _inputs.add_files(parser)
    add_view(parser)
    _inputs.add_selection(parser)


class Described:
    """The last cell of a row: the name of the group, and below it source or callers."""

    def __init__(self, options: Namespace) -> None:
        self._by = options.by
        self._sources = None if options.no_source else _sources.Sources()

    def source(self, filename: str, line: int) -> str:
        return self._sources.line(filename, line) if self._sources is not None else ""

    def text(self, key: Key) -> str:
        lines = [_names.label(self._by, key)]
        if _names.is_folded(key):
            return lines[0]
        if self._by in ("line", "traceback"):
            filename, number = key[:2] if self._by == "line" else key[-1][:2]
            source = self.source(filename, number)
            if source:
                lines.append(f"  {source}")
        if self._by == "traceback":
            callers = [f"  from {_names.frame_label(frame)}" for frame in reversed(key[:-1])]
            lines += callers[:3] + ([f"  and {_text.plural(len(callers) - 3, 'frame')} more"] if callers[3:] else [])
        return "\n".join(lines)

    def json(self, key: Key) -> dict[str, object]:
        described = _names.as_json(self._by, key)
        if self._by == "line" and self._sources is not None and not _names.is_folded(key):
            described["source"] = self.source(*key)
        return described


def traceback_id(ids: _names.Ids, key: Key) -> str:
    return "" if _names.is_folded(key) else ids.of(key)


def rest(options: Namespace, number: int) -> str:
    """The text about the groups that are not shown."""
    return f"; not shown: {_text.plural(number, options.by)}" if number else ""


def run(options: Namespace) -> int:
    check_view(options)
    capture, folding = _inputs.load_folded(options.files, options)
    moment, snapshot = _inputs.select(capture, options)
    size, count = _groups.total(snapshot)
    shown, number = _groups.groups(snapshot, options.by, options.cumulative, options.number, folding)
    described = Described(options)
    if options.json:
        groups = [{**described.json(one.key), "size": one.size, "count": one.count} for one in shown]
        _table.show_json(
            {
                "moment": moment,
                "by": options.by,
                "cumulative": options.cumulative,
                "fold": options.fold,
                "total": {"size": size, "count": count},
                "number_of_groups": number,
                "groups": groups,
            }
        )
        return 0
    columns = [_table.Column("size", "bold"), _table.Column("share"), _table.Column("blocks")]
    ids = _names.Ids() if options.by == "traceback" else None
    if ids is not None:
        columns.append(_table.Column("id", "cyan"))
    columns.append(_table.Column(options.by, right=False))
    rows = [
        [
            _text.size(one.size),
            _text.share(one.size, size),
            _text.count(one.count),
            *([traceback_id(ids, one.key)] if ids is not None else []),
            described.text(one.key),
        ]
        for one in shown
    ]
    if rows:
        _table.show_table(columns, rows)
    else:
        _table.show(_inputs.nothing(options))
    _table.show()
    _table.show(f"{moment}: {_text.size(size)} in {_text.plural(count, 'block')}{rest(options, number - len(shown))}")
    return 0
