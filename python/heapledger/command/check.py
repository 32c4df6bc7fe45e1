"""Say whether a file is sound, and if not, what is wrong, where, and which sections of it are intact.

The command compares the checksum of every section, also of those behind a damaged one if it can find them. Then it
reads the file as all commands do. It repairs nothing. The exit status is 0 if all files are sound, 1 if one is not, and
2 if one cannot be read at all.
"""

from __future__ import annotations

import os
import sys

import heapledger
from heapledger import _capture
from heapledger._ledger import _file_header, _file_section
from heapledger.command import Failure, _inputs, _table, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

EXAMPLE = """\
  heapledger check app.hlsnap && cp app.hlsnap /archive"""

MEANINGS = {
    b"FILE": "names of files",
    b"FUNC": "names of functions",
    b"LOCS": "lines",
    b"STKS": "stacks",
    b"ROWS": "a snapshot",
    b"META": "metadata",
    b"ATTR": "attributes",
    b"TOTL": "totals of frames",
    b"END ": "the end",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="an .hlsnap file, or a pickle of tracemalloc")
    parser.add_argument("--json", action="store_true", help="write JSON")


class Section:
    """A part of the file: `state` is "sound", "damaged", "cut off" or "unreadable"."""

    def __init__(self, kind: bytes, offset: int, length: int, state: str) -> None:
        self.kind = kind
        self.offset = offset
        self.length = length
        self.state = state

    @property
    def name(self) -> str:
        return self.kind.decode("ascii").rstrip()

    @property
    def meaning(self) -> str:
        return MEANINGS.get(self.kind, "header" if self.name == "header" else "")


def _section_at(data: bytes, offset: int) -> Section | None:
    """The section at this place; None if there cannot be one."""
    found = _file_section(data, offset)
    return None if found is None else Section(found[0], offset, *found[1:])


class Search:
    """Looks for the next sound section. It reads a bounded amount, because a file may consist of false beginnings."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._budget = 16 * len(data)

    def _is_sound(self, place: int) -> bool:
        section = _section_at(self._data, place)
        self._budget -= 0 if section is None else section.length
        return section is not None and section.state == "sound"

    def next(self, offset: int) -> int:
        """The place of the next section of a known kind, or the end of the file."""
        best = len(self._data)
        for kind in MEANINGS:
            place = self._data.find(kind, offset, best)
            while place >= 0 and self._budget > 0:
                if self._is_sound(place):
                    best = place
                    break
                place = self._data.find(kind, place + 1, best)
        return best


def sections(data: bytes, header: Section) -> list[Section]:
    """The parts of an .hlsnap file, one after the other."""
    found, search, offset = [header], Search(data), header.length
    while offset < len(data) and found[-1].name != "END":
        section = _section_at(data, offset)
        if section is None:
            section = Section(b"?", offset, search.next(offset + 1) - offset, "unreadable")
        elif section.state != "sound":
            # Its length may be damaged. The next sound section says where it really ends.
            following = search.next(offset + 1)
            if following < len(data):
                section = Section(section.kind, offset, following - offset, "damaged")
        found.append(section)
        offset += section.length
    if offset < len(data):
        found.append(Section(b"?", offset, len(data) - offset, "unreadable"))
    return found


def examine(filename: str) -> dict[str, Any]:
    """What is known about a file, as in JSON."""
    data = _inputs.read(filename)
    answer = {"file": filename, "bytes": len(data), "sound": True, "format": "unknown", "problem": None, "sections": []}
    header = _file_header(data)
    if header is not None:
        length, state, version = header
        answer["format"] = "hlsnap"
        parts = sections(data, Section(b"header", 0, length, state))
        keys = ("name", "offset", "length", "state", "meaning")
        answer["sections"] = [{key: getattr(part, key) for key in keys} for part in parts]
        if version is not None:
            answer["version"] = "%d.%d" % version
    try:
        capture = _capture.decode(data, filename)
    except heapledger.SnapshotFormatError as error:
        answer |= {"sound": False, "problem": {"offset": error.offset, "reason": error.reason}}
    else:
        if answer["format"] == "unknown":
            answer["format"] = "tracemalloc"
        answer["moments"] = list(capture.moments)
    return answer


def show(answer: dict[str, Any]) -> None:
    state = "sound" if answer["sound"] else "not sound"
    version = f" {answer['version']}" if "version" in answer else ""
    names = {"hlsnap": f".hlsnap{version}", "tracemalloc": "a pickle of tracemalloc", "unknown": "an unknown format"}
    _table.show(
        f"{_text.printable(os.fsdecode(answer['file']))}: {state} "
        f"({names[answer['format']]}, {_text.plural(answer['bytes'], 'byte')})"
    )
    if answer["sections"]:
        columns = [_table.Column("byte"), _table.Column("length"), _table.Column("section", right=False)]
        columns += [_table.Column("state", right=False), _table.Column("", right=False)]
        rows = [
            [
                _text.count(part["offset"]),
                _text.count(part["length"]),
                part["name"],
                (part["state"], "" if part["state"] == "sound" else "bold red"),
                part["meaning"],
            ]
            for part in answer["sections"]
        ]
        _table.show_table(columns, rows)
    if answer["problem"] is not None:
        _table.show(f"byte {answer['problem']['offset']:,}: {answer['problem']['reason']}")


def run(options: Namespace) -> int:
    answers: list[dict[str, Any]] = []
    status = 0
    for filename in options.files:
        try:
            answer = examine(filename)
        except Failure as failure:
            sys.stdout.flush()  # what is said of the files before it comes first
            print(f"heapledger check: {failure}", file=sys.stderr)
            status = 2
            continue
        if not options.json:
            if answers:
                _table.show()
            show(answer)
        answers.append(answer)
        if not answer["sound"]:
            status = max(status, 1)
    if options.json:
        _table.show_json({"files": answers})
    return status
