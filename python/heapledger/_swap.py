"""install and uninstall: heapledger in the place of the standard library's tracemalloc, for the whole interpreter.

``sys.modules["tracemalloc"]`` becomes heapledger for later imports. Modules that imported the standard library's module
before hold that module object, and some hold ``_tracemalloc``: the names in both are rebound to ours.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ABSENT = object()

# What the C module has in the standard library; Python code that imports it directly follows too.
_ENGINE_NAMES = (
    "_get_object_traceback",
    "_get_traces",
    "clear_traces",
    "get_traceback_limit",
    "get_traced_memory",
    "get_tracemalloc_memory",
    "is_tracing",
    "reset_peak",
    "start",
    "stop",
)
_PRIVATE_NAMES = ("_Traces", "_format_size", "_get_object_traceback", "_get_traces")

# While installed: what to put back, as (namespace, name, value).
_replaced: list[tuple[dict[str, Any], str, Any]] = []
_took_over = False


def install() -> None:
    """Make ``import tracemalloc`` mean heapledger, also for modules that have imported it already.

    If the standard library is tracing, its traces are dropped and heapledger starts with the same frame limit.
    Calling it again does nothing.
    """
    global _took_over
    if _replaced:
        return
    import heapledger

    was_imported = sys.modules.get("tracemalloc", _ABSENT)
    import _tracemalloc
    import tracemalloc

    # The engine is asked, since `tracemalloc` may be an alias of ours by now.
    _took_over = _tracemalloc.is_tracing()
    limit = _tracemalloc.get_traceback_limit()
    if _took_over:
        _tracemalloc.stop()
    _replaced.append((sys.modules, "tracemalloc", was_imported))
    sys.modules["tracemalloc"] = heapledger
    public = (*heapledger.__all__, *_PRIVATE_NAMES)
    for module, names in ((tracemalloc, public), (_tracemalloc, _ENGINE_NAMES)):
        namespace = vars(module)
        for name in names:
            _replaced.append((namespace, name, namespace.get(name, _ABSENT)))
            namespace[name] = getattr(heapledger, name)
    if _took_over:
        heapledger.start(limit)


def is_installed() -> bool:
    return bool(_replaced)


def uninstall() -> None:
    """Undo install(): every name is again what it was. Calling it again does nothing.

    If install() took over from the standard library and heapledger is tracing now, the standard library starts again
    with heapledger's frame limit, and heapledger stops.
    """
    global _took_over
    if not _replaced:
        return
    import heapledger

    while _replaced:
        namespace, name, value = _replaced.pop()
        if value is _ABSENT:
            namespace.pop(name, None)
        else:
            namespace[name] = value
    if _took_over and heapledger.is_tracing():
        import _tracemalloc

        limit = heapledger.get_traceback_limit()
        heapledger.stop()
        _tracemalloc.start(limit)
    _took_over = False
