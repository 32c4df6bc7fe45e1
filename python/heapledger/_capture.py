"""Capture: snapshots of several moments, taken at one instant and saved in one file.

The snapshots of a capture share their names, so together they take little more memory than one. You can filter and
analyse them like other snapshots. A capture comes from ``take_capture``, ``Capture.load`` or ``Capture.merge``.
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
    """`live`, `peak` and `allocated` are the snapshots of these moments. A missing snapshot is None."""

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
        """The names of the moments in the capture, such as ("live", "peak", "allocated")."""
        return tuple(name for name in _metadata.MOMENTS if getattr(self, name) is not None)

    @property
    def metadata(self) -> Metadata:
        """The metadata of the first snapshot."""
        first: Snapshot = getattr(self, self.moments[0])
        return first.metadata

    def dump(self, filename: File) -> None:
        """Write the whole capture into one .hlsnap file."""
        _files.write(encode(self), filename)

    def select(self, *moments: str) -> Capture:
        """Return a capture with only these moments."""
        snapshots = {name: getattr(self, name, None) for name in moments}
        for name, snapshot in snapshots.items():
            if name not in _metadata.MOMENTS or snapshot is None:
                raise ValueError(f"there is no moment {name!r}; there are {', '.join(self.moments)}")
        if not snapshots:
            raise ValueError("a capture needs at least one moment")
        return _of(snapshots)

    @staticmethod
    def load(filename: File) -> Capture:
        """Read a file that was written by this package or by the standard library."""
        return _of(_files.load_all(filename))

    @staticmethod
    def merge(captures: Iterable[Capture]) -> Capture:
        """Add up the captures of many processes, moment by moment. The result has the moments that all of them have."""
        if isinstance(captures, (list, tuple)):
            sums = _merge_captures([_snapshots(capture) for capture in captures])
        else:
            sums = _merge_captures(map(_snapshots, captures))
        if sums == (None, None, None):
            raise ValueError("the captures have no moment in common")
        return _make_capture(*sums)


Capture.__module__ = "heapledger"


def encode(capture: Capture) -> bytes:
    """Return the bytes that Capture.dump writes."""
    return _files.encode_all([getattr(capture, name) for name in capture.moments])


def decode(data: bytes, filename: File) -> Capture:
    """Do the same as Capture.load for the bytes of a file. The file name is used only in errors."""
    return _of(_files.decode_all(data, filename))


def _of(snapshots: Mapping[str, Snapshot | None]) -> Capture:
    """Make a Capture of {moment: snapshot}."""
    return _make_capture(*[snapshots.get(name) for name in _metadata.MOMENTS])


def _snapshots(capture: Capture) -> tuple[Snapshot | None, Snapshot | None, Snapshot | None]:
    if not isinstance(capture, Capture):
        raise TypeError(f"captures must be Capture objects, not {type(capture).__name__}")
    return tuple([getattr(capture, name) for name in _metadata.MOMENTS])
