"""Undo `heapledger enable`: tracemalloc means the standard library's module again.

Nothing of `enable` is left behind. You can use it where nothing is enabled.
"""

from heapledger.command import _environment

EXAMPLE = """\
  heapledger disable"""


def add_arguments(parser):
    pass


def run(options):
    _environment.disable()
    print(f"tracemalloc means the standard library's module in {_environment.folder()}")
    return 0
