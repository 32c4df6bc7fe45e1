"""Make tracemalloc mean heapledger in every program that runs in this environment.

From then on, `import tracemalloc`, PYTHONTRACEMALLOC and -X tracemalloc mean heapledger there. No program is changed.
The command writes one file into the site-packages folder where heapledger is installed. `heapledger disable` removes
it. You can use it more than once.
"""

from heapledger.command import _environment

EXAMPLE = """\
  heapledger enable
  PYTHONTRACEMALLOC=25 python program.py    # traced by heapledger
  heapledger disable"""


def add_arguments(parser):
    pass


def run(options):
    _environment.enable()
    print(f"tracemalloc means heapledger in {_environment.folder()}")
    return 0
