"""The files that commands write: there as a whole or not at all. The name "-" is stdout.

What cannot be written is a Failure: a sentence with the file's name.
"""

import os
import sys

from heapledger import _files
from heapledger.command import Failure, _inputs, _text


def refuse_terminal(output, what, example):
    if output == "-" and sys.stdout.isatty():
        raise Failure(f"{what} cannot be shown in a terminal; say where to write it: -o {example}")


def refuse_inputs(output, filenames):
    """Other formats are no .hlsnap files: who writes one over a file that is read loses that."""
    if output == "-" or not os.path.isfile(output):
        return
    for filename in filenames:
        if os.path.exists(filename) and os.path.samefile(filename, output):
            raise Failure(f"{_text.printable(output)} is one of the files to read; choose another name with -o")


def write(output, content):
    if output == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        _files.write(content, output)
    except OSError as error:
        raise Failure(f"cannot write {_text.printable(output)}: {_inputs.reason(error)}") from error
