"""Undo `heapledger enable`: tracemalloc means the standard library's module again.

Nothing of `enable` is left behind. You can use it where nothing is enabled.
"""

from __future__ import annotations

from heapledger._site import folder
from heapledger.command import _environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLE = """\
  heapledger disable"""


def add_arguments(parser: ArgumentParser) -> None:
    pass


def run(options: Namespace) -> int:
    _environment.disable()
    print(f"tracemalloc means the standard library's module in {folder()}")
    return 0
