"""Snapshot.metadata: when, where and by what a snapshot was taken.

A snapshot that was taken in this process comes with numbers (``src/binding/metadata.c``), one from a file with the
bytes of its META section; the dict is made when somebody asks. What takes long to find out about the process is found
out when the snapshot is saved, and stands under ``process_at_dump`` with a time of its own. Sizes are in bytes, times
in nanoseconds since 1970.
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

MOMENTS: tuple[Moment, ...] = _moments  # their names, in the order of their numbers


def _taken_here(raw: bytes | bytearray) -> Metadata:
    """The metadata of a snapshot with these numbers. What does not change in a process is looked up now."""
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
    """What the system says of the process's pages: {"Rss": bytes, "Pss": bytes, ...}, or None."""
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
    """The metadata as a new dict."""
    if raw is None:
        return {}
    return _plain.decode(raw) if type(raw) is bytes else _taken_here(raw)


def section(raw: Facts) -> bytes | None:
    """The metadata as they are saved; None if there are none."""
    if raw is None or type(raw) is bytes:
        return raw
    metadata = _taken_here(raw)
    if metadata["pid"] == os.getpid():
        metadata["process_at_dump"] = _process_now()
    return _plain.encode(metadata)


def of_moment(metadata: Metadata | None, moment: Moment | None) -> bytes | None:
    """Facts of a snapshot from a file with these metadata, which are the first snapshot's; None if there are none."""
    if metadata is None:
        return None
    return _plain.encode(metadata if moment is None else {**metadata, "moment": moment})
