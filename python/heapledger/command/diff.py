"""Show what grew and what shrank between two snapshots, the largest changes first.

The files may come from different processes. The command compares what has the same name in both. It marks groups that
only the new file has as new, and groups that only the old file has as gone.
"""

from __future__ import annotations

from heapledger._metadata import MOMENTS
from heapledger.command import Failure, _folding, _groups, _inputs, _names, _table, _text, top

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from heapledger import Snapshot
    from heapledger._types import Cell, Moment
    from heapledger.command._folding import Folding

EXAMPLE = """\
  heapledger diff before.hlsnap after.hlsnap
  heapledger diff before.hlsnap after.hlsnap --mine
  heapledger diff before.hlsnap after.hlsnap --by function --cumulative -n 20"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="the file of the earlier snapshot")
    parser.add_argument("new", metavar="NEW", help="the file of the later snapshot")
    top.add_view(parser)
    _inputs.add_selection(parser)


def select(options: Namespace) -> tuple[Moment, list[Snapshot], Folding]:
    """(moment, snapshots of the files, folding) of the given moment, or of the first moment that both have."""
    names = [options.old, options.new]
    _inputs.warn_of_exclusion(options)
    captures = _inputs.load_all(names)
    folding = _folding.of_captures(options.fold, captures)
    for moment in MOMENTS if options.moment is None else (options.moment,):
        snapshots = [getattr(capture, moment) for capture in captures]
        if None not in snapshots:
            return moment, [_inputs.filtered(snapshot, options) for snapshot in snapshots], folding
    wanted = "a moment in common" if options.moment is None else f"both a snapshot of the moment '{options.moment}'"
    has = [f"{_text.printable(name)}: {', '.join(one.moments)}" for name, one in zip(names, captures, strict=True)]
    raise Failure(f"the files do not have {wanted}; {'; '.join(has)}")


def run(options: Namespace) -> int:
    top.check_view(options)
    moment, (old, new), folding = select(options)
    (old_size, old_count), (size, count) = _groups.total(old), _groups.total(new)
    shown, number = _groups.differences(old, new, options.by, options.cumulative, options.number, folding)
    described = top.Described(options)
    if options.json:
        keys = ("size", "count", "size_diff", "count_diff", "mark")
        groups = [{**described.json(one.key), **{key: getattr(one, key) for key in keys}} for one in shown]
        _table.show_json(
            {
                "moment": moment,
                "by": options.by,
                "cumulative": options.cumulative,
                "fold": options.fold,
                "old": {"size": old_size, "count": old_count},
                "new": {"size": size, "count": count},
                "number_of_groups": number,
                "groups": groups,
            }
        )
        return 0
    columns = [_table.Column("growth", "bold"), _table.Column("blocks"), _table.Column("now"), _table.Column("")]
    ids = _names.Ids() if options.by == "traceback" else None
    if ids is not None:
        columns.append(_table.Column("id", "cyan"))
    columns.append(_table.Column(options.by, right=False))
    rows: list[list[Cell]] = [
        [
            (_text.size(one.size_diff, sign=True), "bold yellow" if one.size_diff > 0 else "bold cyan"),
            _text.count(one.count_diff, sign=True),
            _text.size(one.size),
            one.mark,
            *([top.traceback_id(ids, one.key)] if ids is not None else []),
            described.text(one.key),
        ]
        for one in shown
    ]
    if not rows:
        _table.show("no difference")
    else:
        _table.show_table(columns, rows)
        _table.show()
    _table.show(
        f"{moment}: {_text.size(old_size)} -> {_text.size(size)}, {_text.size(size - old_size, sign=True)}; "
        f"{_text.plural(old_count, 'block')} -> {_text.count(count)}{top.rest(options, number - len(shown))}"
    )
    return 0
