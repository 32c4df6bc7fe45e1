"""Turn a file of another tool into an .hlsnap file.

A pickle of tracemalloc's Snapshot.dump: the command reads it without running anything that it names. The pickle has no
function names and no peak, so the new file has none either. It has all sizes, tracebacks and domains.

A table of `memray transform csv`: the memory at the peak. If you used memray's --leaks, the table has what was never
freed: say --moment live here. The bytes and the number of allocations of each stack are exact. The sizes of single
allocations are averages. Allocators and threads are added up.
"""

from __future__ import annotations

from heapledger.command import _inputs, _memray, _outputs, _table, _text, merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLE = """\
  heapledger import snapshot.pickle -o snapshot.hlsnap
  memray transform csv memray.bin -o table.csv && heapledger import table.csv -o snapshot.hlsnap"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the pickle or the table")
    merge.add_output(parser)
    parser.add_argument(
        "--moment", choices=("live", "peak"), default="peak", help="the moment of memray's table (default: peak)"
    )


def convert(data: bytes, options: Namespace) -> bytes:
    """The bytes of an .hlsnap file."""
    if _memray.is_table(data):
        return _memray.convert(data, options.file, options.moment)
    return merge.encode(_inputs.decode(data, options.file), options.output)


def run(options: Namespace) -> int:
    _outputs.refuse_terminal(options.output, "an .hlsnap file", "imported.hlsnap")
    _outputs.write(options.output, convert(_inputs.read(options.file), options))
    if options.output != "-":
        _table.show(f"{_text.printable(options.file)} imported into {_text.printable(options.output)}")
    return 0
