"""Profiles for pprof: profile.proto of github.com/google/pprof, compressed by gzip.

A sample is a stack, newest frame first, with a value for each sample type. The sample types have the names of Go's heap
profiles, so that pprof's own options for them work. The names for the peak are ours. Moments that a capture lacks are
left out. A line of Python is a location with one line in it. Where its function starts is unknown: line 0.
"""

from __future__ import annotations

import gzip

from heapledger.command._protobuf import chunk, field, packed, varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from heapledger._types import Location, Metadata, Moment
    from heapledger.command._tree import CallTree

# Fields of Profile.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING, _TIME, _DEFAULT = 1, 2, 3, 4, 5, 6, 9, 14
_TYPES = {"allocated": "alloc", "live": "inuse", "peak": "peak"}


class Strings:
    """The table of strings; number 0 is the empty one."""

    def __init__(self) -> None:
        self._numbers = {"": 0}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def encode(self) -> bytes:
        # A lone surrogate stands for a byte of a file name that is not UTF-8. pprof refuses what is not UTF-8.
        return b"".join(chunk(_STRING, text.encode("utf-8", "backslashreplace")) for text in self._numbers)


def _sample_types(strings: Strings, moments: Iterable[Moment]) -> Iterator[bytes]:
    for moment in moments:
        for what, unit in (("objects", "count"), ("space", "bytes")):
            name = strings.number(f"{_TYPES[moment]}_{what}")
            yield chunk(_SAMPLE_TYPE, field(1, name) + field(2, strings.number(unit)))


def _locations(strings: Strings, locations: Iterable[Location]) -> Iterator[bytes]:
    """One location for each (file, line, function), one function for each (file, function)."""
    functions: dict[tuple[str, str | None], int] = {}
    for number, (filename, line, function) in enumerate(locations, 1):
        known = functions.setdefault((filename, function), len(functions) + 1)
        yield chunk(_LOCATION, field(1, number) + field(2, 1) + chunk(4, field(1, known) + field(2, line)))
    for (filename, function), number in functions.items():
        # If the function is unknown, use the file, or pprof would add up all files.
        name = strings.number(function or filename)
        names = field(2, name) + field(3, name) + field(4, strings.number(filename))
        yield chunk(_FUNCTION, field(1, number) + names)


def _mapping(strings: Strings, title: str) -> bytes:
    """The one program that all locations are in, with all their names known: pprof need not look for them."""
    return chunk(_MAPPING, field(1, 1) + field(5, strings.number(title)) + field(7, 1) + field(8, 1) + field(9, 1))


def _samples(tree: CallTree) -> Iterator[bytes]:
    values = [pair for sums in zip(tree.own_counts, tree.own_sizes, strict=True) for pair in sums]
    encoded = [varint(number) for number in range(len(tree.locations) + 1)]
    stacks = [b""]  # by node: numbers of locations, the newest first
    for node, (location, parent, *numbers) in enumerate(zip(tree.nodes, tree.parents, *values, strict=True)):
        if node:
            stacks.append(encoded[location] + stacks[parent])
        if any(numbers):
            yield chunk(_SAMPLE, chunk(1, stacks[node]) + packed(2, numbers))


def encode(tree: CallTree, moments: Sequence[Moment], metadata: Metadata, chosen: Moment, title: str) -> bytes:
    """The bytes of a profile of the tree, whose snapshots are of these moments; pprof shows `chosen` unless asked."""
    strings = Strings()
    parts = [*_sample_types(strings, moments), *_samples(tree), _mapping(strings, title)]
    parts += _locations(strings, tree.locations)
    taken = metadata.get("time")
    if type(taken) is int and 0 <= taken < 2**63:
        parts.append(field(_TIME, taken))
    parts.append(field(_DEFAULT, strings.number(f"{_TYPES[chosen]}_space")))
    parts.append(strings.encode())
    # The same capture makes the same bytes.
    return gzip.compress(b"".join(parts), compresslevel=6, mtime=0)
