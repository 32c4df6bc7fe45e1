"""Show the page of heapledger report from a server on this machine, until you press ^C.

This is for files that are too big for one page: the browser asks for what it shows. Only this machine can reach the
server, and only with its address, which contains a random token.
"""

from __future__ import annotations

import sys

from heapledger.command import Failure, _arguments, _inputs, _progress, report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLE = """\
  heapledger open huge.hlsnap
  heapledger open --browser before.hlsnap after.hlsnap"""


def add_arguments(parser: ArgumentParser) -> None:
    _inputs.add_files(parser)
    parser.add_argument("--port", type=_arguments.port, default=0, help="the port (default: any free port)")
    parser.add_argument(
        "--browser", action="store_true", help="start the browser; others may see the address on its command line"
    )
    report.add_way(parser)


def run(options: Namespace) -> int:
    from heapledger.report import _server, _subject

    subject = _subject.load(options.files, options.way)
    with _progress.show("adding up the stacks", 1, subject.is_long):
        title = report.title_of(subject, options.confidential)
        pieces = _server.Pieces(title, subject, report.page_options(subject, options))
    try:
        server = _server.Server(pieces, options.port)
    except OSError as error:
        raise Failure(f"cannot listen on port {options.port}: {_inputs.reason(error)}") from error
    with server:
        print(server.address, flush=True)
        print("press ^C to stop", file=sys.stderr)
        if options.browser:
            import webbrowser

            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)
    return 0
