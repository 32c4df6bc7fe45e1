"""install and uninstall: put heapledger in place of the standard library's tracemalloc, for the whole interpreter.

``sys.modules["tracemalloc"]`` becomes heapledger for later imports. Modules that imported the standard library's module
before still have that module object, and some have ``_tracemalloc``. So the names in both modules are rebound to ours.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ABSENT = object()

# The names of the C module in the standard library. Python code that imports this module directly gets ours, too.
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

# While installed: what to restore, as (namespace, name, value).
_replaced: list[tuple[dict[str, Any], str, Any]] = []
_took_over = False


def install() -> None:
    """Make ``import tracemalloc`` mean heapledger, also for modules that have already imported it.

    If the standard library is tracing, its traces are dropped and heapledger starts with the same frame limit. Another
    call does nothing.
    """
    global _took_over
    if _replaced:
        return
    import heapledger

    was_imported = sys.modules.get("tracemalloc", _ABSENT)
    import _tracemalloc
    import tracemalloc

    # Ask the engine, because `tracemalloc` may already be an alias of heapledger.
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
    """Undo install(): restore every name. Another call does nothing.

    If install() took over from the standard library and heapledger is tracing now, heapledger stops. The standard
    library starts again with heapledger's frame limit.
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
