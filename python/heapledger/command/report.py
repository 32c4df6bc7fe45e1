"""Write a page for the browser: a flame graph, a table and, for a series, a timeline.

The page is one file that loads nothing from the network. For two files it shows the difference. For more files it shows
a series if all are from one process, and their sum otherwise.
"""

from __future__ import annotations

import os
import sys

from heapledger.command import _folding, _inputs, _kinds, _outputs, _progress, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from heapledger.report._data import Options
    from heapledger.report._subject import Subject

EXAMPLE = """\
  heapledger report program.hlsnap -o report.html
  heapledger report before.hlsnap after.hlsnap -o growth.html
  heapledger report --series run-*.hlsnap
  heapledger report --confidential program.hlsnap -o to-show-others.html"""

DEFAULT = "report.html"
MANY_BYTES = 32 << 20


def add_way(parser: ArgumentParser) -> None:
    """Add the options that say how to treat several files."""
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--merge", dest="way", action="store_const", const="merge", help="add up the files")
    ways.add_argument(
        "--diff",
        dest="way",
        action="store_const",
        const="difference",
        help="the difference of two files (the default for two)",
    )
    ways.add_argument(
        "--series",
        dest="way",
        action="store_const",
        const="series",
        help="a timeline, in the order of the files' times",
    )
    parser.add_argument(
        "--confidential",
        action="store_true",
        help="replace the names of files and functions; leave out source, command, host, process and version",
    )
    parser.add_argument("--no-source", action="store_true", help="leave out the source of the lines")
    _folding.add_options(parser)


def add_arguments(parser: ArgumentParser) -> None:
    _inputs.add_files(parser)
    parser.add_argument(
        "-o", "--output", metavar="PAGE", default=DEFAULT, help=f"the file to write; - is stdout (default: {DEFAULT})"
    )
    add_way(parser)


def page_options(subject: Subject, options: Namespace) -> Options:
    """What the page shows, from the options of add_way."""
    from heapledger.report import _data

    sources = not (options.no_source or options.confidential)
    return _data.Options(_kinds.Kinds(subject.metadata), options.fold, options.confidential, sources)


def title_of(subject: Subject, confidential: bool) -> str:
    if confidential:
        return "heapledger report"
    names = " and ".join(subject.labels) if subject.mode == "difference" else subject.labels[-1]
    return _text.printable(f"{names} - heapledger")


def run(options: Namespace) -> int:
    from heapledger.report import _data, _page, _subject

    _outputs.refuse_terminal(options.output, "a page", DEFAULT)
    _outputs.refuse_inputs(options.output, options.files)
    subject = _subject.load(options.files, options.way)
    with _progress.show("adding up the stacks", 1, subject.is_long):
        encoded = _data.to_text(_data.encode(subject, page_options(subject, options)))
    page = _page.make(title_of(subject, options.confidential), encoded)
    data = page.encode("utf-8", "replace")
    _outputs.write(options.output, data)
    kinds = {"one": "a page", "difference": "the difference", "series": f"a series of {len(subject.captures)}"}
    name = "stdout" if options.output == "-" else _text.printable(options.output)
    print(f"{name}: {kinds[subject.mode]}, {_text.size(len(data))}", file=sys.stderr)
    if len(data) > MANY_BYTES:
        print("a page of this size takes long to open; heapledger open shows the same in pieces", file=sys.stderr)
    if options.output != "-" and os.path.isfile(options.output):
        print(f"open it in a browser: file://{_text.printable(os.path.abspath(options.output))}", file=sys.stderr)
    return 0
