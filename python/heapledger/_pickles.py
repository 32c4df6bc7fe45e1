"""Writes pickles of snapshots that the standard library can load. python/heapledger/_unpickle.py reads such pickles.

The classes in a pickle are named ``tracemalloc.Snapshot`` and ``tracemalloc._Traces``. So it loads on a machine without
heapledger. The module pickle refuses to save a class under a foreign name. So the stream is composed of pieces from one
pickler, which keeps its memo from piece to piece, and of a few opcodes between them.

This module imports the C module behind pickle. Importing pickle itself takes longer than importing this whole package.
"""

from __future__ import annotations

from _pickle import Pickler
from io import BytesIO

from heapledger._ledger import _Traces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

# Protocol 3, because every later one divides the stream into frames, and pieces of frames cannot be joined.
_PROTOCOL = 3
_HEADER = b"\x80\x03"
_STOP = b"."
# GLOBAL, then an object of it without arguments, then an empty dict for its state, and a MARK before the items.
_OPEN = b"ctracemalloc\n%s\n)\x81}("
# SETITEMS and BUILD: the items go into the dict, and the dict goes into the object.
_CLOSE = b"ub"


class _Pieces:
    """Writes values into a file, as parts of one pickle."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._buffer = BytesIO()
        self._pickler = Pickler(self._buffer, _PROTOCOL)

    def write(self, value: object) -> None:
        self._buffer.seek(0)
        self._buffer.truncate()
        self._pickler.dump(value)
        self._file.write(self._buffer.getbuffer()[len(_HEADER) : -len(_STOP)])

    def write_object(self, name: bytes, state: dict[str, Any]) -> None:
        self._file.write(_OPEN % name)
        for key, value in state.items():
            self.write(key)
            if isinstance(value, _Traces):
                self.write_object(b"_Traces", value.__getstate__())
            else:
                self.write(value)
        self._file.write(_CLOSE)


def write(file: BinaryIO, state: dict[str, Any]) -> None:
    """Write a snapshot with this state: its traces and other attributes."""
    file.write(_HEADER)
    _Pieces(file).write_object(b"Snapshot", state)
    file.write(_STOP)
