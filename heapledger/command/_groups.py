"""Sums by a key (heapledger/command/_names.py), of one snapshot or of two.

Lines, files and tracebacks are grouped as Snapshot.statistics does, and only those that are shown are made objects. The
others are added up by keys that are made here for each line, of which there are few. With `cumulative` a block counts
once for a key, however often that is on its stack, so that no share exceeds 100 %.
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
    """size and count are the new snapshot's."""

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


def groups(snapshot, by, cumulative, limit):
    """([Group, ...], how many there are): the greatest come first."""
    if by in _NATIVE and not cumulative:
        found, number = _greatest(snapshot, None, _NATIVE[by], limit)
        return [Group(_native_key(by, one.traceback), one.size, one.count) for one in found], number
    sums = _sum_by(snapshot, _KEYS[by], cumulative)
    best = heapq.nsmallest(limit, sums.items(), key=lambda item: (-item[1][0], -item[1][1], str(item[0])))
    return [Group(key, *sum) for key, sum in best], len(sums)


def differences(old, new, by, cumulative, limit):
    """([Difference, ...], how many there are): what has changed, the greatest changes first."""
    if by in _NATIVE and not cumulative:
        found, number = _greatest(new, old, _NATIVE[by], limit)
        shown = [
            Difference(_native_key(by, one.traceback), one.size, one.count, one.size_diff, one.count_diff)
            for one in found
        ]
        return shown, number
    before, after = (_sum_by(snapshot, _KEYS[by], cumulative) for snapshot in (old, new))
    found = []
    for key in before.keys() | after.keys():
        (old_size, old_count), (size, count) = before.get(key, (0, 0)), after.get(key, (0, 0))
        if (old_size, old_count) != (size, count):
            found.append(Difference(key, size, count, size - old_size, count - old_count))
    best = heapq.nsmallest(limit, found, key=lambda one: (-abs(one.size_diff), -one.size, str(one.key)))
    return best, len(found)
