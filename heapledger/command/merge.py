"""Write the sum of several files into one, such as those of a program's processes.

Memory that forked processes inherited counts once. With one file this writes it anew, so a pickle of the standard
library's becomes an .hlsnap file.
"""

from heapledger.command import Failure, _inputs, _table, _text

EXAMPLE = """\
  heapledger merge worker-*.hlsnap -o all.hlsnap"""


def add_arguments(parser):
    _inputs.add_files(parser)
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write; replaced if it exists")


def write(capture, filename):
    try:
        capture.dump(filename)
    except OSError as error:
        raise Failure(f"cannot write {_text.printable(filename)}: {_inputs.reason(error)}") from error


def run(options):
    capture = _inputs.load(options.files)
    write(capture, options.output)
    _table.show(f"{_text.plural(len(options.files), 'file')} merged into {_text.printable(options.output)}")
    return 0
