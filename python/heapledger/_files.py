"""Snapshot.dump and Snapshot.load: files of snapshots.

There are two formats. ``hlsnap`` (docs/format.md) keeps everything that a snapshot has. ``tracemalloc`` is a pickle
that the standard library can load without heapledger. It is the default while heapledger is installed in place of
tracemalloc. ``load`` recognises the format by the first byte.

A file appears only when it is complete. It is written without a name or under another name, flushed to the disk, and
then takes the place of the old file. If the target is not a regular file, for example a pipe, it is written to
directly. Some files may be written but not replaced: their folder accepts no new files, or something is mounted on
them. Such a file is overwritten. Its space is reserved before anything is written. But if the process dies in the
meantime, it leaves a mixture of the old and the new file.

Files may come from anybody. A malformed file raises a SnapshotFormatError. Memory is allocated only for bytes that the
file has, not for lengths that it announces.
"""

from __future__ import annotations

import errno
import os
import stat
from _pickle import UnpicklingError
from io import BytesIO

from heapledger import _metadata, _pickles, _plain, _swap, _unpickle
from heapledger._ledger import (
    _file_prepare,
    _file_read,
    _file_rows,
    _file_snapshot,
    _file_totals,
    _file_write,
    _raw_metadata,
    _Traces,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, BinaryIO

    from heapledger._ledger import Snapshot, Trace
    from heapledger._types import File, Metadata, Moment, Row

    _Write = Callable[[BinaryIO], object]
    _Sections = list[tuple[bytes, int, bytes]]

_FORMATS = ("hlsnap", "tracemalloc")
_FIRST_BYTE = 0x89  # of an .hlsnap file
_METADATA, _ATTRIBUTES, _TOTALS = b"META", b"ATTR", b"TOTL"
_NOT_POSSIBLE = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
# The folder accepts no new files, or something is mounted on the file.
_NOT_REPLACEABLE = (errno.EPERM, errno.EACCES, errno.EROFS, errno.EBUSY, errno.EXDEV)


class SnapshotFormatError(ValueError, UnpicklingError):
    """A file that is not a snapshot, or is damaged. It has `filename`, `reason`, and the `offset` of the error."""

    def __init__(self, filename: File, offset: int, reason: str) -> None:
        super().__init__(filename, offset, reason)
        self.filename = filename
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        name = os.fsdecode(self.filename) if isinstance(self.filename, (str, bytes, os.PathLike)) else self.filename
        return f"{name}: byte {self.offset}: {self.reason}"


SnapshotFormatError.__module__ = "heapledger"


# Writing files


def _follow(path: str) -> str | None:
    """Follow symbolic links to a file, which may not exist. Return None if only the kernel can follow the path."""
    for _ in range(40):
        if os.fsencode(path).startswith((b"/proc/", b"/dev/fd/")):
            return None
        try:
            target = os.readlink(path)
        except OSError:
            return path
        path = os.path.join(os.path.dirname(path), target)
    return None


def _find_place(filename: File) -> tuple[str, os.stat_result | None] | None:
    """Return (path, status of the existing file or None), or None if the file can only be written directly."""
    try:
        path = _follow(os.fsdecode(filename))
        if path is None:
            return None
        try:
            there = os.stat(path)
        except FileNotFoundError:
            return path, None
        if not stat.S_ISREG(there.st_mode):
            return None
        # The permissions of the file decide whether it may be written. The folder alone would allow to replace it.
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
        return path, there
    except (OSError, TypeError, ValueError):
        return None  # open() will raise the right error


def _take_rights(descriptor: int, there: os.stat_result) -> None:
    """Give a new file the owner, group and permissions of the old one, as far as possible, and never more rights."""
    mode = there.st_mode & 0o777
    try:
        os.fchown(descriptor, there.st_uid, there.st_gid)
    except OSError:
        try:
            os.fchown(descriptor, -1, there.st_gid)  # the file of another user becomes ours
        except OSError:
            mode &= ~0o070  # our group must not get the rights of the old group
    os.fchmod(descriptor, mode)


def _fill(file: BinaryIO, write: _Write, there: os.stat_result | None) -> None:
    if there is not None:
        _take_rights(file.fileno(), there)
    write(file)
    file.flush()
    os.fsync(file.fileno())


def _fill_nameless(folder: int, other: str, write: _Write, there: os.stat_result | None) -> bool:
    """Write a file without a name, which disappears if this process dies, then name it. False: not possible here."""
    try:
        descriptor = os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=folder)
    except OSError:
        return False
    with open(descriptor, "wb") as file:
        _fill(file, write, there)
        try:
            os.link(f"/proc/self/fd/{descriptor}", other, dst_dir_fd=folder, follow_symlinks=True)
        except OSError:
            return False
    return True


def _replace(folder: int, name: str, there: os.stat_result | None, write: _Write) -> None:
    """Write a file and replace `name` with it."""
    other = f".heapledger-{os.getpid()}-{os.urandom(6).hex()}.tmp"
    try:
        if not _fill_nameless(folder, other, write, there):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with open(os.open(other, flags, 0o666, dir_fd=folder), "wb") as file:
                _fill(file, write, there)
        os.replace(other, name, src_dir_fd=folder, dst_dir_fd=folder)
        try:
            os.fsync(folder)
        except OSError as error:
            if error.errno not in _NOT_POSSIBLE:
                raise
    except BaseException:
        try:
            os.unlink(other, dir_fd=folder)
        except OSError:
            pass  # the file never had this name, or no longer has it
        raise


def _overwrite(path: str, write: _Write) -> None:
    """Write into the existing file. If there is not enough space, the file stays unchanged."""
    buffer = BytesIO()
    write(buffer)
    content = buffer.getbuffer()
    with open(os.open(path, os.O_WRONLY | os.O_CLOEXEC), "wb") as file:
        length = os.fstat(file.fileno()).st_size
        try:
            os.posix_fallocate(file.fileno(), 0, len(content))
        except OSError as error:
            if error.errno not in _NOT_POSSIBLE:
                os.ftruncate(file.fileno(), length)
                raise
        file.write(content)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def _write_file(filename: File, write: _Write) -> None:
    """Call write(file). If possible, the file replaces the old one only when it is complete."""
    place = _find_place(filename)
    if place is not None:
        path, there = place
        try:
            folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            folder = None
        try:
            try:
                if folder is not None:
                    return _replace(folder, os.path.basename(path), there, write)
            except OSError as error:
                if error.errno not in _NOT_REPLACEABLE:
                    raise
            if there is not None:
                return _overwrite(path, write)
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(filename)) from None
        finally:
            if folder is not None:
                os.close(folder)
    with open(filename, "wb") as file:
        write(file)


# Snapshots to bytes


def _encode_attributes(attributes: dict[str, Any]) -> dict[str, bytes]:
    """Return {name: encoded value}. Raise an error for what cannot be saved."""
    encoded = {}
    for name, value in attributes.items():
        if type(name) is not str:
            raise TypeError(f"attribute {_plain.describe(name)}: a name that is not a str can't be saved")
        encoded[name] = _plain.encode(value, f"attribute {_plain.describe(name)}", 1)  # their dict is level 0
    return encoded


def _to_hlsnap(
    snapshot: Snapshot,
    traces: Sequence[Trace],
    limit: Any,
    encoded: dict[str, bytes],
    others: Sequence[Sequence[Trace]] = (),
) -> bytes:
    """Return the bytes of a file with a snapshot, and with traces of other moments that share its names."""
    is_number = type(limit) is int and 0 <= limit < 2**32
    native, native_limit, totals = _file_prepare(traces, limit if is_number else 0)
    if is_number and limit == native_limit:
        del encoded["traceback_limit"]
    sections = []
    metadata = _metadata.section(_raw_metadata(snapshot))
    if metadata is not None:
        sections.append((_METADATA, metadata))
    if encoded:
        sections.append((_ATTRIBUTES, _plain.join(encoded)))
    if totals is not None:
        sections.append((_TOTALS, totals))
    return _file_write((native, *others), tuple(sections))


def _what_to_save(snapshot: Snapshot) -> tuple[Sequence[Trace], dict[str, Any], dict[str, bytes]]:
    """Return (traces, attributes, encoded attributes). Raise an error for what cannot be saved."""
    traces = snapshot.traces
    attributes = {**vars(snapshot), "traceback_limit": snapshot.traceback_limit}
    attributes.pop("traces", None)
    encoded = _encode_attributes(attributes)
    if isinstance(traces, _Traces) and vars(traces):
        raise TypeError("attributes of a snapshot's traces can't be saved")
    return traces, attributes, encoded


def encode_all(snapshots: Sequence[Snapshot]) -> bytes:
    """Return the bytes of one .hlsnap file with snapshots of different moments that share their names."""
    traces, attributes, encoded = _what_to_save(snapshots[0])
    others = []
    for snapshot in snapshots[1:]:
        if set(vars(snapshot)) != {"traces", "traceback_limit"}:
            raise TypeError("only the first snapshot of a file can have attributes of its own")
        others.append(snapshot.traces)
    return _to_hlsnap(snapshots[0], traces, attributes["traceback_limit"], encoded, others)


def write(content: bytes, filename: File) -> None:
    """Write these bytes into a file."""
    _write_file(filename, lambda file: file.write(content))


def dump(snapshot: Snapshot, filename: File, format: str | None) -> None:
    """Write the snapshot into a file. What cannot be saved raises an error before anything is written."""
    if format is None:
        format = "tracemalloc" if _swap.is_installed() else "hlsnap"
    elif format not in _FORMATS:
        raise ValueError(f"unknown format: {format!r}; it is 'hlsnap' or 'tracemalloc'")
    traces, attributes, encoded = _what_to_save(snapshot)
    if format == "hlsnap":
        content = _to_hlsnap(snapshot, traces, attributes["traceback_limit"], encoded)
        _write_file(filename, lambda file: file.write(content))
    else:
        _file_prepare(traces, 0)  # raises an error for what could not be loaded again
        state = {"traces": traces, **attributes}
        _write_file(filename, lambda file: _pickles.write(file, state))


# Snapshots from files of other tools


def from_rows(rows: Iterable[Row], moment: Moment, limit: int, metadata: Metadata) -> Snapshot:
    """Make a Snapshot of rows (frames, size, blocks). Frames are (filename, lineno, function or None), newest first."""
    traces = _file_rows(tuple(rows), _metadata.MOMENTS.index(moment), limit)
    return _file_snapshot(traces, limit, _plain.encode(metadata))


# Bytes to snapshots


def _section(sections: _Sections, kind: bytes) -> tuple[int, bytes] | None:
    """Return (offset, bytes) of a section, or None if there is no such section. It must not occur twice."""
    found = None
    for one, offset, content in sections:
        if one == kind and found is not None:
            raise _plain.Malformed("a section is there twice", offset)
        if one == kind:
            found = offset, content
    return found


def _dict_section(sections: _Sections, kind: bytes, whole: bool) -> tuple[int, dict[Any, Any]] | None:
    """Return (offset, dict) of a section, or None if there is no such section. It must not occur twice."""
    found = _section(sections, kind)
    if found is None:
        return None
    offset, content = found
    try:
        value = _plain.decode(content, whole)
    except _plain.Malformed as error:
        raise _plain.Malformed(error.args[0], offset + error.args[1]) from None
    if type(value) is not dict:
        raise _plain.Malformed("a section is not a dict", offset)
    return offset, value


def _with_totals(traces: _Traces, offset: int, totals: bytes, whole: bool) -> _Traces:
    """Give the traces totals that the stacks of the file do not have."""
    try:
        return _Traces(_file_totals(traces, totals, whole))
    except _plain.Malformed as error:
        raise _plain.Malformed(error.args[0], offset) from None


def _from_hlsnap(data: bytes) -> dict[str, Snapshot]:
    """Return {moment: snapshot}, in the order of the file. If a moment occurs several times, the first counts."""
    # Sections of newer files may be longer than we know. In that case `whole` is false.
    rows, sections, whole = _file_read(data)
    (traces, limit, moment), *others = rows
    metadata = _dict_section(sections, _METADATA, whole)
    attributes = _dict_section(sections, _ATTRIBUTES, whole)
    totals = _section(sections, _TOTALS)
    if totals is not None:
        traces = _with_totals(traces, *totals, whole)
    known = None if metadata is None else metadata[1]
    snapshot = _file_snapshot(traces, limit, _metadata.of_moment(known, None))
    if attributes is not None:
        offset, named = attributes
        for name in named:
            if type(name) is not str or name == "traces":
                raise _plain.Malformed("an attribute has a wrong name", offset)
        vars(snapshot).update(named)
    snapshots: dict[str, Snapshot] = {_metadata.MOMENTS[moment]: snapshot}
    for traces, limit, moment in others:
        name = _metadata.MOMENTS[moment]
        if name not in snapshots:
            snapshots[name] = _file_snapshot(traces, limit, _metadata.of_moment(known, name))
    return snapshots


def _from_pickle(data: bytes) -> dict[str, Snapshot]:
    if not data:
        raise _plain.Malformed("is empty", 0)
    if data[0] != 0x80:
        raise _plain.Malformed("is neither an .hlsnap file nor a pickle of a snapshot", 0)
    traces, attributes = _unpickle.read(data)
    snapshot = _file_snapshot(_Traces(traces), None, None)
    vars(snapshot).update(attributes)
    return {_metadata.MOMENTS[0]: snapshot}


def load_all(filename: File) -> dict[str, Snapshot]:
    """Read the snapshots of a file, written by this package or by the standard library: {moment: snapshot}."""
    with open(filename, "rb") as file:
        return decode_all(file.read(), filename)


def decode_all(data: bytes, filename: File) -> dict[str, Snapshot]:
    """Do the same as load_all for the bytes of a file. The file name is used only in errors."""
    try:
        return _from_hlsnap(data) if data and data[0] == _FIRST_BYTE else _from_pickle(data)
    except _plain.Malformed as error:
        reason, offset = error.args
    raise SnapshotFormatError(filename, offset, reason)


def load(filename: File) -> Snapshot:
    """Read a snapshot from a file. If there are several, read the first."""
    return next(iter(load_all(filename).values()))
