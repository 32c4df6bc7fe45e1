"""Sums by a key (heapledger/command/_names.py), of one snapshot or of two.

Lines, files and tracebacks are added up in C, and only those that are shown are looked at. Functions, and
sums that count what a frame's callees allocated, are added up here from the call tree: there a block counts once for
a key, however often that is on its stack, so that no share exceeds 100 %.
"""

import heapq

from heapledger.command import _names
from heapledger.command._tree import CallTree

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


def key_of(by, location):
    """The key of a frame (file, line, function)."""
    filename, line, function = location
    if by == "line":
        return filename, line
    if by == "file":
        return (filename,)
    return (filename, function) if by == "function" else (_names.package_of(filename),)


def _add_up(tree, by, cumulative, number):
    """{key: (size, count)} of the tree's snapshot of that number."""
    ids = {}
    keys = [-1, *[ids.setdefault(key_of(by, location), len(ids)) for location in tree.locations]]  # -1: the root's
    sizes, counts = [0] * len(ids), [0] * len(ids)
    if cumulative:
        until = [0] * len(ids)  # everything before this node has been counted for the key
        rows = zip(tree.nodes, tree.ends, tree.sizes[number], tree.counts[number], strict=True)
        for node, (location, end, size, count) in enumerate(rows):
            key = keys[location]
            if location and node >= until[key]:
                until[key] = end
                sizes[key] += size
                counts[key] += count
    else:
        for location, size, count in zip(tree.nodes, tree.own_sizes[number], tree.own_counts[number], strict=True):
            if count and location:
                key = keys[location]
                sizes[key] += size
                counts[key] += count
    return {key: (sizes[place], counts[place]) for key, place in ids.items() if counts[place]}


def _packages(snapshot):
    """The same by package of what each file's own lines allocated: there are few files."""
    sums = {}
    for one in snapshot.statistics("filename"):
        key = (_names.package_of(one.traceback[0].filename),)
        size, count = sums.get(key, (0, 0))
        sums[key] = size + one.size, count + one.count
    return sums


def total(snapshot):
    """(bytes, blocks)"""
    found = snapshot.statistics("filename")
    return sum(one.size for one in found), sum(one.count for one in found)


def groups(snapshot, by, cumulative, limit):
    """([Group, ...], how many there are): the greatest come first."""
    if by in _NATIVE and not cumulative:
        found = snapshot.statistics(_NATIVE[by])
        shown = [Group(_native_key(by, one.traceback), one.size, one.count) for one in found[:limit]]
        return shown, len(found)
    if by == "package" and not cumulative:
        sums = _packages(snapshot)
    else:
        sums = _add_up(CallTree([snapshot]), by, cumulative, 0)
    best = heapq.nsmallest(limit, sums.items(), key=lambda item: (-item[1][0], -item[1][1], str(item[0])))
    return [Group(key, *sum) for key, sum in best], len(sums)


def differences(old, new, by, cumulative, limit):
    """([Difference, ...], how many there are): what has changed, the greatest changes first."""
    if by in _NATIVE and not cumulative:
        found = [one for one in new.compare_to(old, _NATIVE[by]) if one.size_diff or one.count_diff]
        shown = [
            Difference(_native_key(by, one.traceback), one.size, one.count, one.size_diff, one.count_diff)
            for one in found[:limit]
        ]
        return shown, len(found)
    if by == "package" and not cumulative:
        before, after = _packages(old), _packages(new)
    else:
        tree = CallTree([old, new])
        before, after = (_add_up(tree, by, cumulative, number) for number in (0, 1))
    found = []
    for key in before.keys() | after.keys():
        (old_size, old_count), (size, count) = before.get(key, (0, 0)), after.get(key, (0, 0))
        if (old_size, old_count) != (size, count):
            found.append(Difference(key, size, count, size - old_size, count - old_count))
    best = heapq.nsmallest(limit, found, key=lambda one: (-abs(one.size_diff), -one.size, str(one.key)))
    return best, len(found)
