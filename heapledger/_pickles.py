"""Snapshot.dump and Snapshot.load: pickles that the standard library reads and writes too.

A dump names its classes ``tracemalloc.Snapshot`` and ``tracemalloc._Traces``, so that it loads on a machine without
heapledger. pickle refuses to save a class under a foreign name; the stream is therefore put together from pieces that
one pickler makes, whose memo lives across them, and a few opcodes between them.

The C module behind pickle is imported directly: pickle itself takes longer to import than all of this package.
"""

from _pickle import Pickler, Unpickler, UnpicklingError
from io import BytesIO

from heapledger._ledger import Snapshot, _OwnWork, _Traces

_CLASSES = {"Snapshot": Snapshot, "_Traces": _Traces}
_MODULES = ("tracemalloc", "heapledger")

# Protocol 3: every later one cuts the stream into frames, which pieces do not survive.
_PROTOCOL = 3
_HEADER = b"\x80\x03"
_STOP = b"."
# GLOBAL, then an object of it without arguments, then an empty dict for its state and a MARK before the items.
_OPEN = b"ctracemalloc\n%s\n)\x81}("
# SETITEMS and BUILD: the items go into the dict, the dict into the object.
_CLOSE = b"ub"


class _Pieces:
    """Writes values into a file, as parts of one pickle."""

    def __init__(self, file):
        self._file = file
        self._buffer = BytesIO()
        self._pickler = Pickler(self._buffer, _PROTOCOL)

    def write(self, value):
        with _OwnWork():
            self._buffer.seek(0)
            self._buffer.truncate()
            self._pickler.dump(value)
            self._file.write(self._buffer.getbuffer()[len(_HEADER) : -len(_STOP)])

    def write_object(self, name, state):
        with _OwnWork():
            self._file.write(_OPEN % name)
            for key, value in state.items():
                self.write(key)
                if isinstance(value, _Traces):
                    self.write_object(b"_Traces", value.__getstate__())
                else:
                    self.write(value)
            self._file.write(_CLOSE)


class _SnapshotUnpickler(Unpickler):
    def find_class(self, module, name):
        if module in _MODULES and name in _CLASSES:
            return _CLASSES[name]
        raise UnpicklingError(f"a snapshot's file may not name {module}.{name}")


def dump(snapshot, filename):
    """Write the snapshot into a file."""
    with _OwnWork(), open(filename, "wb") as file:
        file.write(_HEADER)
        _Pieces(file).write_object(b"Snapshot", vars(snapshot))
        file.write(_STOP)


def load(filename):
    """Read a snapshot from a file, written by this package or by the standard library."""
    with _OwnWork(), open(filename, "rb") as file:
        return _SnapshotUnpickler(file).load()
