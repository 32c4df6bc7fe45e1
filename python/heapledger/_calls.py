"""Calls functions of the program, so that what they allocate counts for the program and not as our own work.

A function written in C has no frame. What it allocates is entered under the line that calls it. So that line must not
be ours: the tracer does not count functions of this file as ours (``src/cpython/own_code.h``).
"""

from __future__ import annotations

import gc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    _Result = TypeVar("_Result")


def call(function: Callable[..., _Result], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> _Result:
    """Call function(*args, **kwargs). The interpreter makes another dict only if there are keywords."""
    return function(*args, **kwargs) if kwargs else function(*args)


def call_and_collect(function: Callable[[], object]) -> None:
    """Call the function, drop what it returns, and collect the garbage."""
    function()
    gc.collect()
