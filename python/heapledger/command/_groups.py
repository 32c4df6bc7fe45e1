"""Sums by a key (python/heapledger/command/_names.py), of one snapshot or of two.

Lines, files and tracebacks are grouped as Snapshot.statistics does it, and only the groups to show become objects. For
other keys, this module makes a key for each line and adds up the lines, of which there are few. With `cumulative` a
block counts once for a key, however often the key is on its stack, so no share exceeds 100 %. What is folded
(_folding.py) is a group of its own.
"""

import heapq

from heapledger._ledger import _greatest, _sum_by
from heapledger.command import _names

_NATIVE = {"line": "lineno", "file": "filename", "traceback": "traceback"}


class Group:
    __slots__ = ("key", "size", "count")

    def __init__(self, key, size, count):
        self.key = key
        self.size = size
        self.count = count


class Difference(Group):
    """size and count are those of the new snapshot."""

    __slots__ = ("size_diff", "count_diff")

    def __init__(self, key, size, count, size_diff, count_diff):
        super().__init__(key, size, count)
        self.size_diff = size_diff
        self.count_diff = count_diff

    @property
    def mark(self):
        """ "new" or "gone" for what only one of the snapshots has."""
        if self.count == self.count_diff:
            return "new"
        return "" if self.count else "gone"


def _native_key(by, traceback):
    if by == "traceback":
        return tuple((frame.filename, frame.lineno, getattr(frame, "name", None)) for frame in traceback)
    frame = traceback[0]
    return (frame.filename, frame.lineno) if by == "line" else (frame.filename,)


def _by_file(filename, line, function):
    return (filename,)


def _by_line(filename, line, function):
    return filename, line


def _by_function(filename, line, function):
    return filename, function


def _by_package(filename, line, function):
    return (_names.package_of(filename),)


_KEYS = {"file": _by_file, "line": _by_line, "function": _by_function, "package": _by_package}


def total(snapshot):
    """(bytes, blocks)"""
    found = snapshot.statistics("filename")
    return sum(one.size for one in found), sum(one.count for one in found)


def _sums(snapshot, imports, by, cumulative, folding):
    """{key: (bytes, blocks)} of a snapshot without imports; if it is cumulative, what these take counts for the
    program's lines above them."""
    key, hides, kind_of = _KEYS[by], folding.hides, folding.kinds.of

    def shown(filename, line, function):
        return None if hides(filename) else key(filename, line, function)

    def own(filename, line, function):
        return key(filename, line, function) if kind_of(filename) == "own" else None

    sums = _sum_by(snapshot, shown, "all" if cumulative else "first" if folding.fold == "libraries" else "newest")
    if None in sums:
        sums[_names.ELSEWHERE] = sums.pop(None)
    if cumulative and imports is not None:
        above = _sum_by(imports, own, "all")
        above.pop(None, None)
        for one, (size, count) in above.items():
            sums[one] = (sums[one][0] + size, sums[one][1] + count) if one in sums else (size, count)
    return sums


def _is_native(by, cumulative, folding):
    return by in _NATIVE and not cumulative and (by == "traceback" or folding.fold != "libraries")


def _with_imports(found, number, imports, limit, rank):
    """Groups in the order of their ranks, and the number of them all, with that of imports among them."""
    if imports is None:
        return found, number
    return sorted([*found, imports], key=rank)[:limit], number + 1


def _rank(group):
    return -group.size, -group.count


def _rank_of_change(difference):
    return -abs(difference.size_diff), -difference.size


def groups(snapshot, by, cumulative, limit, folding):
    """([Group, ...], the number of all groups), largest first."""
    rest, imports = folding.parts(snapshot)
    size, count = total(imports) if imports is not None else (0, 0)
    if _is_native(by, cumulative, folding):
        best, number = _greatest(rest, None, _NATIVE[by], limit)
        found = [Group(_native_key(by, one.traceback), one.size, one.count) for one in best]
    else:
        sums = _sums(rest, imports, by, cumulative, folding)
        best = heapq.nsmallest(limit, sums.items(), key=lambda item: (-item[1][0], -item[1][1], str(item[0])))
        found, number = [Group(key, *sum) for key, sum in best], len(sums)
    return _with_imports(found, number, Group(_names.IMPORTS, size, count) if count else None, limit, _rank)


def _changes(before, after):
    """A Difference for each key that has changed."""
    found = []
    for key in before.keys() | after.keys():
        (old_size, old_count), (size, count) = before.get(key, (0, 0)), after.get(key, (0, 0))
        if (old_size, old_count) != (size, count):
            found.append(Difference(key, size, count, size - old_size, count - old_count))
    return found


def differences(old, new, by, cumulative, limit, folding):
    """([Difference, ...], the number of all differences), largest changes first."""
    parts = [folding.parts(old), folding.parts(new)]
    folded = [{_names.IMPORTS: total(imports)} if imports is not None else {} for _, imports in parts]
    if _is_native(by, cumulative, folding):
        best, number = _greatest(parts[1][0], parts[0][0], _NATIVE[by], limit)
        found = [
            Difference(_native_key(by, one.traceback), one.size, one.count, one.size_diff, one.count_diff)
            for one in best
        ]
    else:
        changed = _changes(*(_sums(*part, by, cumulative, folding) for part in parts))
        found = heapq.nsmallest(limit, changed, key=lambda one: (*_rank_of_change(one), str(one.key)))
        number = len(changed)
    (imported,) = _changes(*folded) or [None]
    return _with_imports(found, number, imported, limit, _rank_of_change)
