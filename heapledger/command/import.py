"""Make an .hlsnap file of a pickle that tracemalloc's Snapshot.dump wrote.

The pickle is read without running anything that it names. It has no functions' names and no peak, so neither has the
file; sizes, tracebacks and domains are all there.
"""

from heapledger.command import Failure, _inputs, _table, _text, merge

EXAMPLE = """\
  heapledger import snapshot.pickle -o snapshot.hlsnap"""


def add_arguments(parser):
    parser.add_argument("file", metavar="FILE", help="the pickle")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write; replaced if it exists")


def run(options):
    capture = _inputs.load_one(options.file)
    try:
        merge.write(capture, options.output)
    except TypeError as error:
        # An attribute that somebody gave the snapshot, of a type of their own.
        raise Failure(f"cannot write {_text.printable(options.output)}: {error}") from error
    _table.show(f"{_text.printable(options.file)} imported into {_text.printable(options.output)}")
    return 0
