"""Where to begin: the lines of the program's own code that hold most, including what their callees allocated.

Imports are left out. For a program without code of its own, such as one started by -m, these are the lines that
allocated.
"""

from __future__ import annotations

import shlex

from heapledger.command import _folding, _groups, _names, _sources, _table, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from heapledger import Snapshot
    from heapledger._types import Moment
    from heapledger.command._groups import Group
    from heapledger.command._kinds import Kinds

LINES = 5
_TITLES = {
    "live": "Lines of {whose} code that hold most",
    "peak": "Lines of {whose} code that held most at the peak",
    "allocated": "Lines of {whose} code that have allocated most",
}


class Fix:
    def __init__(self, moment: Moment, size: int, lines: list[Group], folded: list[Group], is_own: bool) -> None:
        self.moment = moment
        self._size = size  # of the whole snapshot
        self._lines = lines
        self._folded = folded  # imports, and what no line of the program's has called
        self._is_own = is_own
        self._sources = _sources.Sources()

    def as_json(self) -> dict[str, object]:
        lines = [
            {**_names.as_json("line", one.key), "source": self._sources.line(*one.key)} | _amounts(one)
            for one in self._lines
        ]
        folded = {str(_names.as_json("line", one.key)["folded"]): _amounts(one) for one in self._folded}
        return {"own": self._is_own, "lines": lines, **folded}

    def _row(self, one: Group) -> list[str]:
        lines = [_names.label("line", one.key), self._sources.line(*one.key)]
        lines.append(f"{_text.plural(one.count, 'block')}, {_text.size(round(one.size / one.count))} on average")
        text = "\n  ".join(line for line in lines if line)
        return [_text.size(one.size), _text.share(one.size, self._size), text]

    def show(self, filenames: list[str]) -> None:
        """Show the table, and the command that shows more."""
        if not self._lines:
            return
        _table.show(_TITLES[self.moment].format(whose="your" if self._is_own else "any"))
        columns = [_table.Column("size", "bold"), _table.Column("share"), _table.Column("line", right=False)]
        _table.show_table(columns, [self._row(one) for one in self._lines])
        for one in self._folded:
            _table.show(f"{one.key[0]}: {_text.size(one.size)}, {_text.share(one.size, self._size)}")
        files = " ".join(_text.printable(shlex.quote(name)) for name in filenames)
        moment = "" if self.moment == "live" else f" --moment {self.moment}"
        _table.show(f"more: heapledger tree{' --mine' * self._is_own}{moment} {files}")


def _amounts(group: Group) -> dict[str, int]:
    return {"size": group.size, "count": group.count}


def find(moment: Moment, snapshot: Snapshot, kinds: Kinds) -> Fix:
    """The Fix for a snapshot of this moment."""
    size, _ = _groups.total(snapshot)
    for fold in ("libraries", "imports"):
        folding = _folding.Folding(fold, kinds)
        found, _ = _groups.groups(snapshot, "line", False, LINES + 2, folding)
        lines = [one for one in found if not _names.is_folded(one.key)][:LINES]
        if lines:
            break
    folded = [one for one in found if _names.is_folded(one.key)]
    return Fix(moment, size, lines, folded, fold == "libraries")
