"""Make tracemalloc mean heapledger in every program that runs in this environment.

From then on, `import tracemalloc`, PYTHONTRACEMALLOC and -X tracemalloc mean heapledger there. No program is changed.
The command writes one file into the site-packages folder where heapledger is installed. `heapledger disable` removes
it. You can use it more than once.
"""

from __future__ import annotations

from heapledger._site import folder
from heapledger.command import _environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLE = """\
  heapledger enable
  PYTHONTRACEMALLOC=25 python program.py    # traced by heapledger
  heapledger disable"""


def add_arguments(parser: ArgumentParser) -> None:
    pass


def run(options: Namespace) -> int:
    _environment.enable()
    print(f"tracemalloc means heapledger in {folder()}")
    return 0
