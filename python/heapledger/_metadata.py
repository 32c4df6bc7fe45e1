"""Snapshot.metadata: when, where and by what a snapshot was taken.

A snapshot that was taken in this process comes with numbers (``src/binding/metadata.c``). A snapshot from a file comes
with the bytes of the file's META section. The dict is made when the program reads the attribute. Data that take long to
find out are collected when the snapshot is saved. They are under ``process_at_dump``, with their own time. Sizes are in
bytes. Times are in nanoseconds since 1970.
"""

from __future__ import annotations

import os
import sys
from _struct import unpack
from time import time_ns

from heapledger import _plain
from heapledger._ledger import _moments, _process_memory, _version, memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from heapledger._types import Facts, Metadata, Moment

MOMENTS: tuple[Moment, ...] = _moments  # the names of the moments, in the order of their numbers


def _taken_here(raw: bytes | bytearray) -> Metadata:
    """Return the metadata of a snapshot with these numbers. What does not change in a process is looked up now."""
    taken, pid, moment, limit, numbers, current, peak, lost, interruptions, rss, tables = unpack("=11q", raw)
    return {
        "heapledger": _version,
        "time": taken,
        "host": os.uname().nodename,
        "pid": pid,
        "command": list(sys.orig_argv),
        "executable": sys.executable,
        "python": sys.version,
        "implementation": sys.implementation.name,
        "traceback_limit": limit,
        "numbers": bool(numbers),
        "moment": MOMENTS[moment],
        "traced": current,
        "peak": peak,
        "lost_records": lost,
        "interruptions": interruptions,
        "rss": None if rss < 0 else rss,
        "tables": tables,
    }


def _read_rollup() -> dict[str, int] | None:
    """Return what the system reports about the pages of the process: {"Rss": bytes, "Pss": bytes, ...}, or None."""
    try:
        with open("/proc/self/smaps_rollup", "rb", buffering=0) as file:
            lines = file.read(65536).splitlines()
    except OSError:
        return None
    sizes = {}
    for line in lines:
        words = line.split()
        if len(words) == 3 and words[2] == b"kB" and words[1].isdigit():
            sizes[words[0].rstrip(b":").decode("ascii", "replace")] = int(words[1]) * 1024
    return sizes


def _process_now() -> dict[str, Any]:
    arenas, heap = _process_memory()
    return {
        "time": time_ns(),
        "pages": _read_rollup(),
        "pymalloc_arenas": arenas,
        "malloc": None if heap is None else dict(zip(("heap", "mapped", "used", "free"), heap, strict=True)),
        "tables": memory(),
    }


def describe(raw: Facts) -> Metadata:
    """Return the metadata as a new dict."""
    if raw is None:
        return {}
    return _plain.decode(raw) if type(raw) is bytes else _taken_here(raw)


def section(raw: Facts) -> bytes | None:
    """Return the metadata in the form that is saved. None if there are none."""
    if raw is None or type(raw) is bytes:
        return raw
    metadata = _taken_here(raw)
    if metadata["pid"] == os.getpid():
        metadata["process_at_dump"] = _process_now()
    return _plain.encode(metadata)


def of_moment(metadata: Metadata | None, moment: Moment | None) -> bytes | None:
    """Return the raw metadata of a snapshot of a file. The file has the metadata of its first snapshot, or None."""
    if metadata is None:
        return None
    return _plain.encode(metadata if moment is None else {**metadata, "moment": moment})
