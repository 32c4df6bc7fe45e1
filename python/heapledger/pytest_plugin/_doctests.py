"""Doctests: their examples are compiled unseen, and they can be run again.

doctest compiles each example when it runs it, so this falls into the measurement. It is not the example's memory, and
not the same in every process: the compiler makes ints of addresses, which take a digit more above 2**30, and where a
process's heap begins is a matter of chance.
"""

import builtins
import contextlib
import doctest


@contextlib.contextmanager
def compiled_unseen():
    """Inside, doctest finds a function `compile` in its own module, before the builtin one."""

    def compile(*args, **kwargs):
        return builtins.compile(*args, **kwargs)  # in a frame of ours

    doctest.compile = compile
    try:
        yield
    finally:
        del doctest.compile


def keep_globals(item):
    """A function that gives a doctest the names back that it began with: doctest takes them away when it is over."""
    test = getattr(item, "dtest", None)
    names = {} if test is None else dict(test.globs)

    def give_back():
        if test is not None:
            test.globs.update(names)

    return give_back
