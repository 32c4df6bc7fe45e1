"""The memory that the system counts for a process (RSS), and what it consists of, from the metadata of a capture.

heapledger collects some facts only when a snapshot is saved, because they take long. That may be long after the
snapshot was taken. This module compares traced memory only with facts of the same moment. So it knows less about a
snapshot that was saved later.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from heapledger._types import Metadata, Resident

SAME_MOMENT = 10**9  # nanoseconds


def number(value: object) -> int | None:
    """The value if it is a size, else None. Anybody may have written the file."""
    return value if type(value) is int and 0 <= value < 2**63 else None


def part(mapping: object, key: str) -> object:
    return mapping.get(key) if isinstance(mapping, dict) else None


def _process_then(metadata: Metadata) -> object:
    """The facts about the process when the snapshot was taken; None if it was saved later."""
    process = part(metadata, "process_at_dump")
    taken, saved = number(part(metadata, "time")), number(part(process, "time"))
    return None if taken is not None and saved is not None and saved - taken > SAME_MOMENT else process


def resident(metadata: Metadata) -> Resident | None:
    """{"rss": ..., "parts": {name: bytes}} of one process; None if the file does not say it."""
    process = _process_then(metadata)
    pages = part(process, "pages")
    rss = number(part(pages, "Rss"))
    at_dump = rss is not None
    if not at_dump:
        rss = number(part(metadata, "rss"))
    traced = number(part(metadata, "traced"))
    if rss is None or traced is None:
        return None
    tables = number(part(part(process, "tables"), "total")) if at_dump else None
    if tables is None:
        tables = number(part(metadata, "tables")) or 0
    parts = {"traced": traced, "tables": tables}
    anonymous = number(part(pages, "Anonymous"))
    if at_dump and anonymous is not None:
        parts["files"] = max(rss - anonymous, 0)
    heap, arenas = part(process, "malloc"), number(part(process, "pymalloc_arenas"))
    used, mapped, free = (number(part(heap, key)) for key in ("used", "mapped", "free"))
    if at_dump and used is not None and mapped is not None and free is not None:
        parts["untraced"] = (arenas or 0) + used + mapped - traced
        parts["free"] = free
    _add_rest(rss, parts)
    return {"rss": rss, "parts": parts}


EXPLANATIONS = {
    "traced": ("traced", "blocks in the ledger when the snapshot was taken"),
    "tables": ("heapledger", "its own tables, which go away when tracing stops"),
    "files": ("mapped files", "code and data of the interpreter and its libraries"),
    "untraced": (
        "not traced",
        "in the interpreter's arenas and the C heap: allocated before tracing or by native code, and gaps",
    ),
    "free": ("free in the C heap", "kept by malloc for later"),
    "other": ("other", "stacks of threads, memory mapped by libraries; negative if obtained but never touched"),
    "rest": ("the rest", "the interpreter, native code, free memory: the file does not distinguish them here"),
}


def _add_rest(rss: int, parts: dict[str, int]) -> None:
    parts["other" if "untraced" in parts else "rest"] = rss - sum(parts.values())


def add_residents(found: Sequence[Resident | None]) -> Resident | None:
    """The sum of several processes; None if one of them is unknown."""
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    names = [name for name in EXPLANATIONS if all(name in one["parts"] for one in known)]
    rss = sum(one["rss"] for one in known)
    parts = {name: sum(one["parts"][name] for one in known) for name in names if name not in ("other", "rest")}
    _add_rest(rss, parts)
    return {"rss": rss, "parts": parts}
