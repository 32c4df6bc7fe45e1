"""Make an .hlsnap file of what another tool has written.

A pickle of tracemalloc's Snapshot.dump: it is read without running anything that it names. It has no functions' names
and no peak, so neither has the file; sizes, tracebacks and domains are all there.

A table of `memray transform csv`: memory at the peak, or with memray's --leaks what was never freed; then say --moment
live here. Bytes and numbers of allocations of each stack are exact, the sizes of single allocations are averages.
Allocators and threads are added up.
"""

from heapledger._files import _write_file
from heapledger.command import Failure, _inputs, _memray, _table, _text, merge

EXAMPLE = """\
  heapledger import snapshot.pickle -o snapshot.hlsnap
  memray transform csv memray.bin -o table.csv && heapledger import table.csv -o snapshot.hlsnap"""


def add_arguments(parser):
    parser.add_argument("file", metavar="FILE", help="the pickle or the table")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write; replaced if it exists")
    parser.add_argument(
        "--moment", choices=("live", "peak"), default="peak", help="what memray's table is of (default: peak)"
    )


def run(options):
    output = _text.printable(options.output)
    data = _inputs.read(options.file)
    try:
        if _memray.is_table(data):
            content = _memray.convert(data, options.file, options.moment)
            _write_file(options.output, lambda file: file.write(content))
        else:
            merge.write(_inputs.decode(data, options.file), options.output)
    except OSError as error:
        raise Failure(f"cannot write {output}: {_inputs.reason(error)}") from error
    except TypeError as error:
        # An attribute that somebody gave the snapshot, of a type of their own.
        raise Failure(f"cannot write {output}: {error}") from error
    _table.show(f"{_text.printable(options.file)} imported into {output}")
    return 0
