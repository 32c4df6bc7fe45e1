"""Write a file for other tools: pprof, speedscope, flame graphs (collapsed stacks), spreadsheets, scripts.

pprof has the sample types inuse_space and inuse_objects (alive), peak_space and peak_objects, alloc_space and
alloc_objects (allocated since tracing began). speedscope has a profile for each. csv has columns and json has members
for each. Collapsed stacks are for one moment, that of --moment. Moments that the file does not have are left out.

In pprof, speedscope and collapsed, a stack that was cut at the frame limit begins with the frames that most likely
called it, followed by a frame [cut stacks, joined by a guess]. csv and json have such stacks as they are.
"""

from __future__ import annotations

import os

from heapledger.command import _formats, _inputs, _outputs, _progress
from heapledger.command._tree import CallTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from heapledger import Capture

EXAMPLE = """\
  heapledger export app.hlsnap --format pprof -o app.pb.gz && go tool pprof -http : app.pb.gz
  heapledger export app.hlsnap --format collapsed | flamegraph.pl > app.svg"""

MANY_BYTES = 4 << 20  # of files to read: seconds of work


def add_arguments(parser: ArgumentParser) -> None:
    _inputs.add_files(parser)
    parser.add_argument("--format", choices=list(_formats.FORMATS), required=True, help="what to write")
    parser.add_argument("-o", "--output", metavar="OUT", default="-", help="the file to write (default: -, stdout)")
    _inputs.add_selection(parser)


def encode(capture: Capture, options: Namespace) -> bytes:
    """The bytes to write."""
    chosen, _ = _inputs.snapshot_at(capture, options.moment)
    snapshots = {name: _inputs.filtered(getattr(capture, name), options) for name in capture.moments}
    title = os.path.basename(os.fsdecode(options.files[0]))
    write = _formats.FORMATS[options.format]
    tree = CallTree(list(snapshots.values()), joined=options.format in _formats.JOINED)
    return write(_formats.Exported(tree, list(snapshots), chosen, capture.metadata, title))


def run(options: Namespace) -> int:
    if options.format == "pprof":
        _outputs.refuse_terminal(options.output, "a pprof file", "app.pb.gz")
    _outputs.refuse_inputs(options.output, options.files)
    capture = _inputs.load(options.files)
    is_long = sum(map(_inputs.size_of, options.files)) > MANY_BYTES
    with _progress.show("exporting", None, is_long):
        content = encode(capture, options)
    _outputs.write(options.output, content)
    return 0
