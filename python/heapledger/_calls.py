"""Calls of the program's functions: what they allocate is the program's, not our own work.

A function that is written in C has no frame. What it allocates is entered under the line that calls it, so that line
must not be one of ours: functions of this file are not taken for ours (``src/cpython/own_code.h``).
"""

from __future__ import annotations

import gc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    _Result = TypeVar("_Result")


def call(function: Callable[..., _Result], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> _Result:
    """function(*args, **kwargs), for which the interpreter makes another dict only if there are keywords."""
    return function(*args, **kwargs) if kwargs else function(*args)


def call_and_collect(function: Callable[[], object]) -> None:
    """Call it, drop what it returns, and collect the garbage."""
    function()
    gc.collect()
