"""Show totals, the peak, what holds most, and how the memory that was traced compares with the process's.

The system counts more than what was traced: the interpreter's own memory, that of native libraries, what allocators
keep for later, and heapledger's tables. The last table says how much each of these was when the file was written.
"""

import os
import time

from heapledger.command import _groups, _inputs, _names, _table, _text

EXAMPLE = """\
  heapledger summary app.hlsnap
  heapledger summary worker-*.hlsnap --json"""

PACKAGES = 5


def add_arguments(parser):
    _inputs.add_files(parser)
    parser.add_argument("--json", action="store_true", help="write JSON")


def moments(capture):
    """{moment: {"size": ..., "count": ...}}"""
    found = {}
    for name in capture.moments:
        size, count = _groups.total(getattr(capture, name))
        found[name] = {"size": size, "count": count}
    return found


def number(value):
    """A size as files have it, which anybody may have written; None if it is not one."""
    return value if type(value) is int and 0 <= value < 2**63 else None


def part(mapping, key):
    return mapping.get(key) if isinstance(mapping, dict) else None


def resident(metadata):
    """{"rss": ..., "parts": {name: bytes}} of one process; None where the file does not say it."""
    process = part(metadata, "process_at_dump")
    pages = part(process, "pages")
    rss = number(part(pages, "Rss"))
    at_dump = rss is not None
    if not at_dump:
        rss = number(part(metadata, "rss"))
    traced = number(part(metadata, "traced"))
    if rss is None or traced is None:
        return None
    tables = number(part(part(process, "tables"), "total")) if at_dump else None
    if tables is None:
        tables = number(part(metadata, "tables")) or 0
    parts = {"traced": traced, "tables": tables}
    anonymous = number(part(pages, "Anonymous"))
    if at_dump and anonymous is not None:
        parts["files"] = max(rss - anonymous, 0)
    heap, arenas = part(process, "malloc"), number(part(process, "pymalloc_arenas"))
    used, mapped, free = (number(part(heap, key)) for key in ("used", "mapped", "free"))
    if at_dump and None not in (used, mapped, free):
        parts["untraced"] = (arenas or 0) + used + mapped - traced
        parts["free"] = free
    parts["other"] = rss - sum(parts.values())
    return {"rss": rss, "parts": parts}


EXPLANATIONS = {
    "traced": ("traced", "blocks in the ledger when the snapshot was taken"),
    "tables": ("heapledger", "our own tables, which go when tracing stops"),
    "files": ("mapped files", "code and data of the interpreter and its libraries"),
    "untraced": ("not traced", "in the interpreter's arenas and the C heap: from before tracing, of native code, gaps"),
    "free": ("free in the C heap", "kept by malloc for later"),
    "other": ("other", "stacks of threads, memory mapped by libraries; negative: obtained, but never touched"),
}


def add_residents(found):
    """The sum of several processes'; None if not all are known."""
    if not found or None in found:
        return None
    names = [name for name in EXPLANATIONS if all(name in one["parts"] for one in found)]
    rss = sum(one["rss"] for one in found)
    parts = {name: sum(one["parts"][name] for one in found) for name in names if name != "other"}
    parts["other"] = rss - sum(parts.values())
    return {"rss": rss, "parts": parts}


def describe_process(metadata):
    """One line about who took the snapshot; empty if the file does not say."""
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


def show_moments(totals):
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


def show_packages(shown, size):
    columns = [_table.Column("size", "bold"), _table.Column("share"), _table.Column("package", right=False)]
    rows = [[_text.size(one.size), _text.share(one.size, size), _names.label("package", one.key)] for one in shown]
    _table.show_table(columns, rows)


def show_resident(memory, several):
    columns = [_table.Column("size", "bold"), _table.Column("share"), _table.Column("resident memory", prose=True)]
    note = ", pages that processes share counted for each" if several else ""
    rows = [[_text.size(memory["rss"]), _text.share(1, 1), f"all that the system counts (RSS){note}"]]
    for name, (title, meaning) in EXPLANATIONS.items():
        if name in memory["parts"]:
            size = memory["parts"][name]
            rows.append([_text.size(size), _text.share(size, memory["rss"]), f"{title}: {meaning}"])
    _table.show_table(columns, rows)


def run(options):
    captures = _inputs.load_all(options.files)
    capture = _inputs.merged(captures, options.files)
    totals = moments(capture)
    moment, snapshot = _inputs.snapshot_at(capture)
    shown, _ = _groups.groups(snapshot, "package", False, PACKAGES)
    metadata = [one.metadata for one in captures]
    memory = add_residents([resident(one) for one in metadata])
    # What got lost is missing everywhere else.
    lost = sum(number(one.get("lost_records")) or 0 for one in metadata)
    if options.json:
        _table.show_json(
            {
                "files": [os.fsdecode(name) for name in options.files],
                "moments": totals,
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
    _table.show()
    show_packages(shown, totals[moment]["size"])
    if memory is not None:
        _table.show()
        show_resident(memory, len(captures) > 1)
    if lost:
        _table.show()
        _table.show(f"{_text.plural(lost, 'allocation')} could not be recorded for lack of memory")
    return 0
