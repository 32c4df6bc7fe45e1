"""The heapledger command: finds the subcommand, which is a module of this package, and runs it.

The module of a subcommand has a docstring and EXAMPLE, which its --help shows. It has add_arguments(parser) and
run(options), which returns the exit status. It may have arrange(arguments), which returns the words for argparse. Only
the module of the given subcommand is imported.

The exit status of every subcommand: 0 done, 1 the answer is no, 2 a mistake in the command line or something that could
not be done; then stderr says what. 130 and 141: ended by ^C, or because nobody reads the output pipe any more.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from heapledger._ledger import _version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

SUMMARIES = {
    "run": "run a program and write what it allocates, in all its processes, to files",
    "summary": "show totals, the peak, and traced memory compared with the process's memory",
    "top": "show what holds the most memory, by line, file, function, traceback or package",
    "tree": "show the call tree with shares",
    "diff": "show what grew and shrank between two snapshots",
    "show": "show one traceback in full",
    "merge": "add up several files and write the sum to one",
    "export": "write a file for pprof, speedscope, flame graphs or scripts",
    "import": "turn a file of another tool into an .hlsnap file",
    "check": "say whether a file is sound, and if not, what is wrong and where",
    "completion": "write a script that completes commands and options in a shell",
    "report": "write a page for the browser, with a flame graph, a table and a timeline",
    "open": "show the same page from a server on this machine, for files too big for one page",
    "enable": "make tracemalloc mean heapledger in every program of this environment",
    "disable": "undo enable",
    "status": "say what is enabled, where, and what the environment variables do",
}


class Failure(Exception):
    """Something could not be done. The text is a sentence for the user."""


def make_parser() -> argparse.ArgumentParser:
    width = max(map(len, SUMMARIES))
    listing = "\n".join(f"  {name:{width}}  {summary}" for name, summary in SUMMARIES.items())
    parser = argparse.ArgumentParser(
        prog="heapledger",
        usage="heapledger [-h] [--version] COMMAND ...",
        description="Record every memory allocation of a Python program, with the traceback that made it.",
        epilog=f"commands:\n{listing}\n\nheapledger help COMMAND shows the options of a command, with an example.\n\n"
        "exit status: 0 done, 1 the answer is no, 2 could not be done, 130 ended by ^C",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"heapledger {_version}")
    # Not required, so that an unknown option gets a message of its own.
    parser.add_argument("command", metavar="COMMAND", nargs="?", help="one of the commands below")
    return parser


def unknown(name: str) -> str:
    """The message for an unknown command."""
    import difflib

    close = difflib.get_close_matches(name, SUMMARIES, 1)
    hint = f"did you mean {close[0]}?" if close else "heapledger --help lists the commands"
    return f"there is no command {name!r}: {hint}"


def make_command_parser(name: str) -> tuple[ModuleType, argparse.ArgumentParser]:
    """(module, parser) of a subcommand."""
    module = importlib.import_module(f"{__name__}.{name}")
    parser = argparse.ArgumentParser(
        prog=f"heapledger {name}",
        description=module.__doc__,
        epilog=f"example:\n{module.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    return module, parser


def give_up_output() -> None:
    """Throw away further output: the interpreter flushes stdout once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run_command(name: str, arguments: Sequence[str]) -> int:
    module, parser = make_command_parser(name)
    if hasattr(module, "arrange"):
        arguments = module.arrange(arguments)
    options = parser.parse_args(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # show any name in any encoding
    try:
        status: int = module.run(options)
        sys.stdout.flush()  # here, where we notice a pipe that nobody reads
        return status
    except Failure as failure:
        print(f"heapledger {name}: {failure}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        give_up_output()
        return 141
    except OSError as error:
        give_up_output()
        print(f"heapledger {name}: cannot write the output: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def open_closed_outputs() -> None:
    """If stdout or stderr is closed, Python has None for it. Throw away what is written there."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Not inherited: the program that `run` becomes must find the descriptor closed again.
            descriptor = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            setattr(sys, name, open(descriptor, "w", encoding="utf-8", closefd=False))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (default: sys.argv) and return the exit status."""
    open_closed_outputs()
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = make_parser()
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    name = parser.parse_args(arguments[:1]).command
    if name is None:
        parser.print_help(sys.stderr)
        return 2
    if name not in SUMMARIES:
        parser.error(unknown(name))
    return run_command(name, arguments[1:])
