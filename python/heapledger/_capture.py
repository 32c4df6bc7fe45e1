"""Capture: what the ledger has to say of several moments, at one instant and in one file.

The snapshots of a capture share their names, so together they take little more than one. They can be filtered and
analysed like any other. A capture comes from ``take_capture``, ``Capture.load`` or ``Capture.merge``.
"""

from __future__ import annotations

from heapledger import _files, _metadata
from heapledger._ledger import _make_capture, _merge_captures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heapledger._ledger import Snapshot
    from heapledger._types import File, Metadata, Moment


class Capture:
    """`live`, `peak` and `allocated`: the snapshots of these moments; None where there is none."""

    __slots__ = _metadata.MOMENTS
    allocated: Snapshot | None
    live: Snapshot | None
    peak: Snapshot | None

    def __init__(self) -> None:
        raise TypeError("a Capture comes from take_capture(), Capture.load() or Capture.merge()")

    def __repr__(self) -> str:
        return f"<heapledger.Capture of {', '.join(self.moments)}>"

    @property
    def moments(self) -> tuple[Moment, ...]:
        """The names of the moments that there are, such as ("live", "peak", "allocated")."""
        return tuple(name for name in _metadata.MOMENTS if getattr(self, name) is not None)

    @property
    def metadata(self) -> Metadata:
        """The metadata of its first snapshot."""
        first: Snapshot = getattr(self, self.moments[0])
        return first.metadata

    def dump(self, filename: File) -> None:
        """Write all of it into one .hlsnap file."""
        _files.write(encode(self), filename)

    def select(self, *moments: str) -> Capture:
        """The capture with these moments only."""
        snapshots = {name: getattr(self, name, None) for name in moments}
        for name, snapshot in snapshots.items():
            if name not in _metadata.MOMENTS or snapshot is None:
                raise ValueError(f"there is no moment {name!r}; there are {', '.join(self.moments)}")
        if not snapshots:
            raise ValueError("a capture needs at least one moment")
        return _of(snapshots)

    @staticmethod
    def load(filename: File) -> Capture:
        """Read a file that this package or the standard library has written."""
        return _of(_files.load_all(filename))

    @staticmethod
    def merge(captures: Iterable[Capture]) -> Capture:
        """Add up the captures of many processes, moment by moment; a moment that one of them lacks is left out."""
        if isinstance(captures, (list, tuple)):
            sums = _merge_captures([_snapshots(capture) for capture in captures])
        else:
            sums = _merge_captures(map(_snapshots, captures))
        if sums == (None, None, None):
            raise ValueError("the captures have no moment in common")
        return _make_capture(*sums)


Capture.__module__ = "heapledger"


def encode(capture: Capture) -> bytes:
    """The bytes that Capture.dump writes."""
    return _files.encode_all([getattr(capture, name) for name in capture.moments])


def decode(data: bytes, filename: File) -> Capture:
    """Capture.load for the bytes of a file, whose name is only for the error."""
    return _of(_files.decode_all(data, filename))


def _of(snapshots: Mapping[str, Snapshot | None]) -> Capture:
    """A Capture of {moment: snapshot}."""
    return _make_capture(*[snapshots.get(name) for name in _metadata.MOMENTS])


def _snapshots(capture: Capture) -> tuple[Snapshot | None, Snapshot | None, Snapshot | None]:
    if not isinstance(capture, Capture):
        raise TypeError(f"captures must be Capture objects, not {type(capture).__name__}")
    return tuple([getattr(capture, name) for name in _metadata.MOMENTS])
