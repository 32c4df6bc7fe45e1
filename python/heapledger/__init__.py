"""heapledger: the API of tracemalloc on a ledger kept in C.

A program only has to change its import: ``import heapledger as tracemalloc``. Names, arguments, results and errors are
those of the standard library's module. These names are additions: ``take_peak_snapshot``, ``take_allocation_snapshot``,
``take_capture``, ``Capture``, ``trace``, ``track_leaks``, ``allocated``, ``install``, ``uninstall``, ``memory``,
``lost_records``, ``SnapshotFormatError`` and ``get_include``.

``Filter(False, heapledger.__file__)`` must hide everything that this package allocates. So what our functions allocate
does not count. Functions in C mark their work themselves. Functions in Python are recognised by their folder
(``docs/design.md``, "Our own work"). This module imports the other files of the package before anything can be traced.
If tracing began with the process, importing this package counts like any other import.

PYTEST_DONT_REWRITE: in an enabled environment, importing tracemalloc imports this package, too. If that happens before
pytest starts, pytest would warn that it can no longer rewrite the assertions here.
"""

from __future__ import annotations

import linecache  # noqa: F401 - part of the interface: tests replace tracemalloc.linecache.getline
import os as _os
import os.path as _path
import sys as _sys
from _collections_abc import Sequence as _Sequence

try:
    from heapledger import _ledger  # noqa: F401 - the package lacks this name if the module was loaded before it
except ImportError as _error:
    from heapledger._unbuilt import explain as _explain

    raise ImportError(_explain(_path.dirname(__file__), _error), name="heapledger._ledger") from None
from heapledger._ledger import (
    BaseFilter,
    DomainFilter,
    Filter,
    Frame,
    Snapshot,
    Statistic,
    StatisticDiff,
    Trace,
    Traceback,
    _format_size,  # noqa: F401
    _get_object_traceback,  # noqa: F401
    _get_traces,  # noqa: F401
    _Traces,
    _validate,  # noqa: F401
    allocated,
    clear_traces,
    get_object_traceback,
    get_traceback_limit,
    get_traced_memory,
    get_tracemalloc_memory,
    is_tracing,
    lost_records,
    memory,
    reset_peak,
    start,
    stop,
    take_allocation_snapshot,
    take_capture,
    take_peak_snapshot,
    take_snapshot,
)

# The folder as code objects name it. __file__ may name it differently.
_ledger._add_own_folder(_sys._getframe().f_code.co_filename.rpartition("__init__")[0])

_Sequence.register(Traceback)
_Sequence.register(_Traces)

from heapledger._capture import Capture  # noqa: E402
from heapledger._files import SnapshotFormatError  # noqa: E402
from heapledger._swap import install, uninstall  # noqa: E402
from heapledger._tracing import Leaks, trace, track_leaks  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

if "HEAPLEDGER" in _os.environ and not is_tracing():
    from heapledger import _site

    _site.say_if_ignored()


def get_include() -> str:
    """Return the folder of heapledger.h, for C extensions that report their own memory."""
    return _path.join(_path.dirname(__file__), "include")


def load_ipython_extension(ipython: Any) -> None:
    """%load_ext heapledger"""
    from heapledger import _notebook

    _notebook.load(ipython)


__all__ = [
    "BaseFilter",
    "Capture",
    "DomainFilter",
    "Filter",
    "Frame",
    "Leaks",
    "Snapshot",
    "SnapshotFormatError",
    "Statistic",
    "StatisticDiff",
    "Trace",
    "Traceback",
    "allocated",
    "clear_traces",
    "get_include",
    "get_object_traceback",
    "get_traceback_limit",
    "get_traced_memory",
    "get_tracemalloc_memory",
    "install",
    "is_tracing",
    "lost_records",
    "memory",
    "reset_peak",
    "start",
    "stop",
    "take_allocation_snapshot",
    "take_capture",
    "take_peak_snapshot",
    "take_snapshot",
    "trace",
    "track_leaks",
    "uninstall",
]
