"""Say whether tracemalloc means heapledger in this environment, and what the environment's variables do.

The exit status is 0 if it is enabled, and 1 if not.
"""

import os
import platform
import sys

from heapledger.command import _environment

EXAMPLE = """\
  heapledger status || heapledger enable"""


def add_arguments(parser):
    pass


def describe(tracer, value):
    """What a variable that holds a number of frames does to a program that starts now."""
    import _heapledger_start

    if not value:
        return "not set" if value is None else "empty: no effect"
    try:
        frames = _heapledger_start.parse_frames(value)
    except ValueError as error:
        return f"{value}: no program starts: {error}"
    return f"{value}: {tracer} starts with {frames} frame{'s' * (frames != 1)}" if frames else f"{value}: no effect"


def run(options):
    enabled = _environment.is_enabled()
    print(f"tracemalloc means {'heapledger' if enabled else 'the standard library' + chr(39) + 's module'}")
    print(f"  folder             {_environment.folder()}")
    print(f"  interpreter        {sys.executable} ({platform.python_implementation()} {platform.python_version()})")
    if _environment.starts_programs():
        print(f"  HEAPLEDGER         {describe('heapledger', os.environ.get('HEAPLEDGER'))}")
    else:
        print("  HEAPLEDGER         no effect: heapledger.pth is not in a folder that the interpreter reads")
    tracer = "heapledger" if enabled else "the standard library's tracemalloc"
    print(f"  PYTHONTRACEMALLOC  {describe(tracer, os.environ.get('PYTHONTRACEMALLOC'))}")
    return 0 if enabled else 1
