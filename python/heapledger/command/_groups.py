"""Sums by a key (python/heapledger/command/_names.py), of one snapshot or of two.

Lines, files and tracebacks are grouped as Snapshot.statistics does it, and only the groups to show become objects. For
other keys, this module makes a key for each line and adds up the lines, of which there are few. With `cumulative` a
block counts once for a key, however often the key is on its stack, so no share exceeds 100 %. What is folded
(_folding.py) is a group of its own.
"""

from __future__ import annotations

import heapq

from heapledger._ledger import _sum_by, _top_statistics
from heapledger.command import _names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from heapledger import Snapshot, Traceback
    from heapledger._types import Key, KeyType
    from heapledger.command._folding import Folding

    _Sums = dict[Key, tuple[int, int]]
    _AnyGroup = TypeVar("_AnyGroup", bound="Group")

_NATIVE: dict[str, KeyType] = {"line": "lineno", "file": "filename", "traceback": "traceback"}


class Group:
    __slots__ = ("key", "size", "count")

    def __init__(self, key: Key, size: int, count: int) -> None:
        self.key = key
        self.size = size
        self.count = count


class Difference(Group):
    """size and count are those of the new snapshot."""

    __slots__ = ("size_diff", "count_diff")

    def __init__(self, key: Key, size: int, count: int, size_diff: int, count_diff: int) -> None:
        super().__init__(key, size, count)
        self.size_diff = size_diff
        self.count_diff = count_diff

    @property
    def mark(self) -> str:
        """ "new" or "gone" for what only one of the snapshots has."""
        if self.count == self.count_diff:
            return "new"
        return "" if self.count else "gone"


def _native_key(by: str, traceback: Traceback) -> Key:
    if by == "traceback":
        return tuple((frame.filename, frame.lineno, getattr(frame, "name", None)) for frame in traceback)
    frame = traceback[0]
    return (frame.filename, frame.lineno) if by == "line" else (frame.filename,)


def _by_file(filename: str, line: int, function: str | None) -> Key:
    return (filename,)


def _by_line(filename: str, line: int, function: str | None) -> Key:
    return filename, line


def _by_function(filename: str, line: int, function: str | None) -> Key:
    return filename, function


def _by_package(filename: str, line: int, function: str | None) -> Key:
    return (_names.package_of(filename),)


_KEYS = {"file": _by_file, "line": _by_line, "function": _by_function, "package": _by_package}


def total(snapshot: Snapshot) -> tuple[int, int]:
    """(bytes, blocks)"""
    found = snapshot.statistics("filename")
    return sum(one.size for one in found), sum(one.count for one in found)


def _sums(snapshot: Snapshot, imports: Snapshot | None, by: str, cumulative: bool, folding: Folding) -> _Sums:
    """{key: (bytes, blocks)} of a snapshot without imports; if it is cumulative, what these take counts for the
    program's lines above them."""
    key, hides, kind_of = _KEYS[by], folding.hides, folding.kinds.of

    def shown(filename: str, line: int, function: str | None) -> Key | None:
        return None if hides(filename) else key(filename, line, function)

    def own(filename: str, line: int, function: str | None) -> Key | None:
        return key(filename, line, function) if kind_of(filename) == "own" else None

    found = _sum_by(snapshot, shown, "all" if cumulative else "first" if folding.fold == "libraries" else "newest")
    sums: _Sums = {_names.ELSEWHERE if one is None else one: amounts for one, amounts in found.items()}
    if cumulative and imports is not None:
        for one, (size, count) in _sum_by(imports, own, "all").items():
            if one is not None:
                sums[one] = (sums[one][0] + size, sums[one][1] + count) if one in sums else (size, count)
    return sums


def _is_native(by: str, cumulative: bool, folding: Folding) -> bool:
    return by in _NATIVE and not cumulative and (by == "traceback" or folding.fold != "libraries")


def _with_imports(
    found: list[_AnyGroup],
    number: int,
    imports: _AnyGroup | None,
    limit: int,
    rank: Callable[[_AnyGroup], tuple[int, int]],
) -> tuple[list[_AnyGroup], int]:
    """Groups in the order of their ranks, and the number of them all, with that of imports among them."""
    if imports is None:
        return found, number
    return sorted([*found, imports], key=rank)[:limit], number + 1


def _rank(group: Group) -> tuple[int, int]:
    return -group.size, -group.count


def _rank_of_change(difference: Difference) -> tuple[int, int]:
    return -abs(difference.size_diff), -difference.size


def groups(snapshot: Snapshot, by: str, cumulative: bool, limit: int, folding: Folding) -> tuple[list[Group], int]:
    """([Group, ...], the number of all groups), largest first."""
    rest, imports = folding.parts(snapshot)
    size, count = total(imports) if imports is not None else (0, 0)
    if _is_native(by, cumulative, folding):
        best, number = _top_statistics(rest, None, _NATIVE[by], limit)
        found = [Group(_native_key(by, one.traceback), one.size, one.count) for one in best]
    else:
        sums = _sums(rest, imports, by, cumulative, folding)
        first = heapq.nsmallest(limit, sums.items(), key=lambda item: (-item[1][0], -item[1][1], str(item[0])))
        found, number = [Group(key, *amounts) for key, amounts in first], len(sums)
    return _with_imports(found, number, Group(_names.IMPORTS, size, count) if count else None, limit, _rank)


def _changes(before: _Sums, after: _Sums) -> list[Difference]:
    """A Difference for each key that has changed."""
    found = []
    for key in before.keys() | after.keys():
        (old_size, old_count), (size, count) = before.get(key, (0, 0)), after.get(key, (0, 0))
        if (old_size, old_count) != (size, count):
            found.append(Difference(key, size, count, size - old_size, count - old_count))
    return found


def differences(
    old: Snapshot, new: Snapshot, by: str, cumulative: bool, limit: int, folding: Folding
) -> tuple[list[Difference], int]:
    """([Difference, ...], the number of all differences), largest changes first."""
    parts = [folding.parts(old), folding.parts(new)]
    folded: list[_Sums] = [{_names.IMPORTS: total(imports)} if imports is not None else {} for _, imports in parts]
    if _is_native(by, cumulative, folding):
        best, number = _top_statistics(parts[1][0], parts[0][0], _NATIVE[by], limit)
        found = [
            Difference(_native_key(by, one.traceback), one.size, one.count, one.size_diff, one.count_diff)
            for one in best
        ]
    else:
        changed = _changes(*(_sums(*part, by, cumulative, folding) for part in parts))
        found = heapq.nsmallest(limit, changed, key=lambda one: (*_rank_of_change(one), str(one.key)))
        number = len(changed)
    imported = next(iter(_changes(*folded)), None)
    return _with_imports(found, number, imported, limit, _rank_of_change)
