"""Write a file for other tools: pprof, speedscope, flame graphs of collapsed stacks, spreadsheets, scripts.

pprof has the sample types inuse_space and inuse_objects (alive), peak_space and peak_objects, alloc_space and
alloc_objects (allocated since tracing began); speedscope has a profile for each, csv and json have columns or members.
Collapsed stacks are of one moment, that of --moment. Moments that the file does not have are left out.
"""

import os
import sys

from heapledger._files import _write_file
from heapledger.command import Failure, _formats, _inputs, _progress, _text
from heapledger.command._tree import CallTree

EXAMPLE = """\
  heapledger export app.hlsnap --format pprof -o app.pb.gz && go tool pprof -http : app.pb.gz
  heapledger export app.hlsnap --format collapsed | flamegraph.pl > app.svg"""

MANY_BYTES = 4 << 20  # of files to read: seconds of work


def add_arguments(parser):
    _inputs.add_files(parser)
    parser.add_argument("--format", choices=list(_formats.FORMATS), required=True, help="what to write")
    parser.add_argument("-o", "--output", metavar="OUT", default="-", help="the file to write (default: stdout)")
    _inputs.add_selection(parser)


def encode(capture, options):
    """The bytes to write."""
    chosen, _ = _inputs.snapshot_at(capture, options.moment)
    snapshots = {name: _inputs.filtered(getattr(capture, name), options) for name in capture.moments}
    title = os.path.basename(os.fsdecode(options.files[0]))
    write = _formats.FORMATS[options.format]
    return write(
        _formats.Exported(CallTree(list(snapshots.values())), list(snapshots), chosen, capture.metadata, title)
    )


def run(options):
    if options.output == "-" and options.format == "pprof" and sys.stdout.isatty():
        raise Failure("a pprof file is nothing for a terminal; say where to write it: -o app.pb.gz")
    capture = _inputs.load(options.files)
    is_long = sum(map(_inputs.size_of, options.files)) > MANY_BYTES
    with _progress.show("exporting", None, is_long):
        content = encode(capture, options)
    if options.output == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return 0
    try:
        _write_file(options.output, lambda file: file.write(content))
    except OSError as error:
        raise Failure(f"cannot write {_text.printable(options.output)}: {_inputs.reason(error)}") from error
    return 0
