"""The files that commands write. A file appears whole or not at all. The name "-" is stdout.

If a file cannot be written, a Failure says why, with the name of the file.
"""

from __future__ import annotations

import os
import sys

from heapledger import _files
from heapledger.command import Failure, _inputs, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def refuse_terminal(output: str, what: str, example: str) -> None:
    if output == "-" and sys.stdout.isatty():
        raise Failure(f"{what} cannot be shown in a terminal; say where to write it: -o {example}")


def refuse_inputs(output: str, filenames: Iterable[str]) -> None:
    """Refuse to overwrite an input with another format: the .hlsnap file would be lost."""
    if output == "-" or not os.path.isfile(output):
        return
    for filename in filenames:
        if os.path.exists(filename) and os.path.samefile(filename, output):
            raise Failure(f"{_text.printable(output)} is one of the files to read; choose another name with -o")


def write(output: str, content: bytes) -> None:
    if output == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        _files.write(content, output)
    except OSError as error:
        raise Failure(f"cannot write {_text.printable(output)}: {_inputs.reason(error)}") from error
