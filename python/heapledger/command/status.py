"""Say whether tracemalloc means heapledger in this environment, and what the environment variables do.

The exit status is 0 if it is enabled, and 1 if not.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys

from heapledger._site import folder, starts_programs
from heapledger.command import Failure, _environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

EXAMPLE = """\
  heapledger status || heapledger enable"""


def add_arguments(parser: ArgumentParser) -> None:
    pass


def describe(tracer: str, value: str | None, parse: Callable[[str], tuple[int, bool]]) -> str:
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


def run(options: Namespace) -> int:
    try:
        start = importlib.import_module("_heapledger_start")  # beside the package, not in it
    except ModuleNotFoundError:
        reason = "HEAPLEDGER has no effect, and no program can be enabled"
        raise Failure(f"{folder()} has the package without _heapledger_start.py: {reason}") from None
    enabled = _environment.is_enabled()
    print(f"tracemalloc means {'heapledger' if enabled else 'the standard library' + chr(39) + 's module'}")
    print(f"  folder             {folder()}")
    print(f"  interpreter        {sys.executable} ({platform.python_implementation()} {platform.python_version()})")
    if starts_programs():
        print(f"  HEAPLEDGER         {describe('heapledger', os.environ.get('HEAPLEDGER'), start.parse)}")
    else:
        print("  HEAPLEDGER         no effect: heapledger.pth is not in a folder that the interpreter reads")
    tracer = "heapledger" if enabled else "the standard library's tracemalloc"
    theirs = describe(tracer, os.environ.get("PYTHONTRACEMALLOC"), lambda text: (start.parse_frames(text), False))
    print(f"  PYTHONTRACEMALLOC  {theirs}")
    return 0 if enabled else 1
