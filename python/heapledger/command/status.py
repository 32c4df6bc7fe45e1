"""Say whether tracemalloc means heapledger in this environment, and what the environment variables do.

The exit status is 0 if it is enabled, and 1 if not.
"""

import os
import platform
import sys

from heapledger.command import Failure, _environment

EXAMPLE = """\
  heapledger status || heapledger enable"""


def add_arguments(parser):
    pass


def describe(tracer, value, parse):
    """What a variable that holds a number of frames does to a program that starts now."""
    if not value:
        return "not set" if value is None else "empty: no effect"
    try:
        frames, numbers = parse(value)
    except ValueError as error:
        return f"{value}: no program starts: {error}"
    if not frames:
        return f"{value}: no effect"
    return f"{value}: {tracer} starts with {frames} frame{'s' * (frames != 1)}{', and for numbers' * numbers}"


def run(options):
    try:
        import _heapledger_start as start
    except ModuleNotFoundError:
        reason = "HEAPLEDGER has no effect, and no program can be enabled"
        raise Failure(f"{_environment.folder()} has the package without _heapledger_start.py: {reason}") from None
    enabled = _environment.is_enabled()
    print(f"tracemalloc means {'heapledger' if enabled else 'the standard library' + chr(39) + 's module'}")
    print(f"  folder             {_environment.folder()}")
    print(f"  interpreter        {sys.executable} ({platform.python_implementation()} {platform.python_version()})")
    if _environment.starts_programs():
        print(f"  HEAPLEDGER         {describe('heapledger', os.environ.get('HEAPLEDGER'), start.parse)}")
    else:
        print("  HEAPLEDGER         no effect: heapledger.pth is not in a folder that the interpreter reads")
    tracer = "heapledger" if enabled else "the standard library's tracemalloc"
    theirs = describe(tracer, os.environ.get("PYTHONTRACEMALLOC"), lambda text: (start.parse_frames(text), False))
    print(f"  PYTHONTRACEMALLOC  {theirs}")
    return 0 if enabled else 1
