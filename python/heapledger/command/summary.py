"""Show totals, the peak, the lines of your code that hold most, and traced memory compared with the process's memory.

A line of yours holds what it allocated itself and what the libraries that it called allocated. Imports are left out.
The system counts more than what was traced: the interpreter's own memory, the memory of native libraries, what
allocators keep for later, and heapledger's tables. The last table says how much each of these was when the snapshot was
taken.
"""

from __future__ import annotations

import os
import time

from heapledger.command import _fix, _folding, _groups, _inputs, _kinds, _names, _resident, _table, _text
from heapledger.command._resident import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from heapledger import Capture
    from heapledger._types import Metadata, Moment, Resident
    from heapledger.command._groups import Group

    _Totals = dict[Moment, dict[str, int]]

EXAMPLE = """\
  heapledger summary app.hlsnap
  heapledger summary worker-*.hlsnap --json"""

PACKAGES = 5
MUCH_HIGHER = 1.5


def add_arguments(parser: ArgumentParser) -> None:
    _inputs.add_files(parser)
    parser.add_argument("--json", action="store_true", help="write JSON")


def moments(capture: Capture) -> _Totals:
    """{moment: {"size": ..., "count": ...}}"""
    found = {}
    for name in capture.moments:
        size, count = _groups.total(getattr(capture, name))
        found[name] = {"size": size, "count": count}
    return found


def describe_process(metadata: Metadata) -> str:
    """One line about the process of the snapshot; empty if the file does not say it."""
    said = []
    command = metadata.get("command")
    if isinstance(command, list):
        said.append(_text.shorten(" ".join(_text.printable(str(word)) for word in command), 200))
    taken = number(metadata.get("time"))
    if taken is not None:
        said.append(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(taken // 10**9)))
    for key, form in (("host", "on %s"), ("pid", "process %s"), ("python", "Python %s")):
        value = metadata.get(key)
        if isinstance(value, (str, int)):
            said.append(form % _text.printable(str(value).split(" ", 1)[0]))
    limit = number(metadata.get("traceback_limit"))
    if limit is not None:
        said.append(_text.plural(limit, "frame"))
    return ", ".join(said)


def moments_to_fix(totals: _Totals) -> list[Moment]:
    """The first moment, and the peak if it was much higher."""
    first = next(iter(totals))
    is_higher = first == "live" and "peak" in totals and totals["peak"]["size"] > MUCH_HIGHER * totals["live"]["size"]
    return [first, "peak"] if is_higher else [first]


def show_moments(totals: _Totals) -> None:
    meanings = {
        "live": "alive when the snapshot was taken",
        "peak": "alive at the peak",
        "allocated": "allocated since tracing began, freed or not",
    }
    columns = [_table.Column("size", "bold"), _table.Column("blocks"), _table.Column("moment", right=False, prose=True)]
    rows = [
        [_text.size(one["size"]), _text.count(one["count"]), f"{name}: {meanings[name]}"]
        for name, one in totals.items()
    ]
    _table.show_table(columns, rows)


def show_packages(shown: list[Group], size: int) -> None:
    columns = [_table.Column("size", "bold"), _table.Column("share"), _table.Column("package", right=False)]
    rows = [[_text.size(one.size), _text.share(one.size, size), _names.label("package", one.key)] for one in shown]
    _table.show_table(columns, rows)


def show_resident(memory: Resident, several: bool) -> None:
    columns = [_table.Column("size", "bold"), _table.Column("share"), _table.Column("resident memory", prose=True)]
    note = "; pages that processes share count for each" if several else ""
    rows = [[_text.size(memory["rss"]), _text.share(1, 1), f"everything that the system counts (RSS){note}"]]
    for name, (title, meaning) in _resident.EXPLANATIONS.items():
        if name in memory["parts"]:
            size = memory["parts"][name]
            rows.append([_text.size(size), _text.share(size, memory["rss"]), f"{title}: {meaning}"])
    _table.show_table(columns, rows)


def run(options: Namespace) -> int:
    captures = _inputs.load_all(options.files)
    capture = _inputs.merged(captures, options.files)
    totals = moments(capture)
    moment, snapshot = _inputs.snapshot_at(capture)
    metadata = [one.metadata for one in captures]
    kinds = _kinds.Kinds(metadata)
    shown, _ = _groups.groups(snapshot, "package", False, PACKAGES, _folding.Folding("nothing", kinds))
    fixes = [_fix.find(name, getattr(capture, name), kinds) for name in moments_to_fix(totals)]
    memory = _resident.add_residents([_resident.resident(one) for one in metadata])
    # Lost records are missing everywhere else.
    lost = sum(number(one.get("lost_records")) or 0 for one in metadata)
    if options.json:
        _table.show_json(
            {
                "files": [os.fsdecode(name) for name in options.files],
                "moments": totals,
                "lines": {one.moment: one.as_json() for one in fixes},
                "lost_records": lost,
                "packages": [{"package": one.key[0], "size": one.size, "count": one.count} for one in shown],
                "resident": memory,
                "processes": [
                    {key: value for key, value in one.items() if isinstance(value, (str, int))} for one in metadata
                ],
            }
        )
        return 0
    for filename, one in zip(options.files, metadata, strict=True):
        said = describe_process(one)
        _table.show(f"{_text.printable(os.fsdecode(filename))}{': ' * bool(said)}{said}")
    _table.show()
    show_moments(totals)
    for fix in fixes:
        _table.show()
        fix.show([os.fsdecode(name) for name in options.files])
    _table.show()
    show_packages(shown, totals[moment]["size"])
    if memory is not None:
        _table.show()
        show_resident(memory, len(captures) > 1)
    if lost:
        _table.show()
        _table.show(f"{_text.plural(lost, 'allocation')} could not be recorded because memory ran out")
    return 0
