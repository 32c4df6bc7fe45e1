"""Add up several files, such as those of a program's processes, and write the sum to one file.

Memory that forked processes inherited counts once. If you give one file, the command writes it again as .hlsnap, also
if it is a pickle of the standard library.
"""

from __future__ import annotations

from heapledger import _capture
from heapledger.command import Failure, _inputs, _outputs, _table, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from heapledger import Capture

EXAMPLE = """\
  heapledger merge worker-*.hlsnap -o all.hlsnap"""


def add_output(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="the file to write, replaced if it exists; - is stdout"
    )


def add_arguments(parser: ArgumentParser) -> None:
    _inputs.add_files(parser)
    add_output(parser)


def encode(capture: Capture, output: str) -> bytes:
    """The bytes of an .hlsnap file."""
    try:
        return _capture.encode(capture)
    except TypeError as error:
        # An attribute that somebody gave the snapshot, of a type of their own.
        raise Failure(f"cannot write {_text.printable(output)}: {error}") from error


def run(options: Namespace) -> int:
    _outputs.refuse_terminal(options.output, "an .hlsnap file", "merged.hlsnap")
    _outputs.write(options.output, encode(_inputs.load(options.files), options.output))
    if options.output != "-":
        _table.show(f"{_text.plural(len(options.files), 'file')} merged into {_text.printable(options.output)}")
    return 0
