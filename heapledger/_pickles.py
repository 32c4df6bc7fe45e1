"""Snapshot.dump and Snapshot.load: pickles that the standard library reads and writes too.

A dump names its classes ``tracemalloc.Snapshot`` and ``tracemalloc._Traces``, so that it loads on a machine without
heapledger. pickle refuses to save a class under a foreign name; the stream is therefore put together from pieces that
one pickler makes, whose memo lives across them, and a few opcodes between them.
"""

from heapledger._ledger import Snapshot, _OwnWork, _Traces

_CLASSES = {"Snapshot": Snapshot, "_Traces": _Traces}
_MODULES = ("tracemalloc", "heapledger")


def dump(snapshot, filename):
    """Write the snapshot into a file."""
    import io
    import pickle

    buffer = io.BytesIO()
    # Protocol 3: every later one cuts the stream into frames, which pieces do not survive.
    pickler = pickle.Pickler(buffer, 3)

    def write(value):
        buffer.seek(0)
        buffer.truncate()
        pickler.dump(value)
        # Without the protocol's header and the stop at the end.
        file.write(buffer.getbuffer()[2:-1])

    def write_object(name, state):
        file.write(pickle.GLOBAL + b"tracemalloc\n" + name + b"\n")
        file.write(pickle.EMPTY_TUPLE + pickle.NEWOBJ + pickle.EMPTY_DICT + pickle.MARK)
        for key, value in state.items():
            write(key)
            if isinstance(value, _Traces):
                write_object(b"_Traces", value.__getstate__())
            else:
                write(value)
        file.write(pickle.SETITEMS + pickle.BUILD)

    with _OwnWork(), open(filename, "wb") as file:
        file.write(pickle.PROTO + b"\x03")
        write_object(b"Snapshot", vars(snapshot))
        file.write(pickle.STOP)


def load(filename):
    """Read a snapshot from a file, written by this package or by the standard library."""
    import pickle

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            if module in _MODULES and name in _CLASSES:
                return _CLASSES[name]
            raise pickle.UnpicklingError(f"a snapshot's file may not name {module}.{name}")

    with _OwnWork(), open(filename, "rb") as file:
        return Unpickler(file).load()
