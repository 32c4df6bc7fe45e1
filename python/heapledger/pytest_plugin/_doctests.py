"""Doctests: their examples are compiled unseen, and they can be run again.

doctest compiles each example when it runs it, so the compilation is part of the measurement. Its memory does not belong
to the example, and differs between processes: the compiler makes ints of addresses, which take one more digit above
2**30, and the heap of a process begins at a random address.
"""

from __future__ import annotations

import builtins
import contextlib
import doctest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    import pytest


@contextlib.contextmanager
def compiled_unseen() -> Iterator[None]:
    """In the block, doctest finds a function `compile` in its own module, before the builtin one."""

    def compile(*args: Any, **kwargs: Any) -> Any:
        return builtins.compile(*args, **kwargs)  # in a frame of ours

    vars(doctest)["compile"] = compile
    try:
        yield
    finally:
        del vars(doctest)["compile"]


def keep_globals(item: pytest.Item) -> Callable[[], None]:
    """A function that restores the names a doctest began with. doctest removes them at the end."""
    test = getattr(item, "dtest", None)
    names = {} if test is None else dict(test.globs)

    def give_back() -> None:
        if test is not None:
            test.globs.update(names)

    return give_back
