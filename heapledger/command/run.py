"""Run a program and write what it allocates, in every process of it, to files.

The program is given as to python: a script and its arguments, -m MODULE and arguments, or -c CODE and arguments. It
is traced from before the interpreter starts. Everything else is as if python had been called: this command becomes that
interpreter, with the options that it was called with itself (python -X dev -m heapledger run ...).

Each process writes a file when it ends; docs/run.md says when it cannot. FILE is heapledger-%t-%p.hlsnap unless given:
%p is the process, %h the host, %t the time of the start, %% is %. Without %p, processes but the first have their number
added to the name.
"""

import argparse
import os
import pathlib
import signal
import socket
import sys
import time

import heapledger
from heapledger.command import Failure

EXAMPLE = """\
  heapledger run program.py --some option
  heapledger run -n 25 -o traced-%p.hlsnap -m pytest -x
  python -I -m heapledger run -c 'import this'"""

VARIABLE = "HEAPLEDGER_RUN"
DEFAULT_FILE = "heapledger-%t-%p.hlsnap"
MOST_FRAMES = 65535
LONG_WITH_VALUE = ("--nframe", "--output", "--every", "--on-signal")


def frames(text):
    number = int(text)
    if not 1 <= number <= MOST_FRAMES:
        raise argparse.ArgumentTypeError(f"not in range 1 to {MOST_FRAMES}: {number}")
    return number


def milliseconds(text):
    number = float(text) * 1000
    if not 1 <= number < 2**32 - 1:
        raise argparse.ArgumentTypeError(f"not a time that can be waited for: {text}")
    return round(number)


def signal_number(text):
    name = text.upper()
    for one in signal.Signals:
        if name in (one.name, one.name.removeprefix("SIG"), str(int(one))):
            if one in (signal.SIGKILL, signal.SIGSTOP):
                raise argparse.ArgumentTypeError(f"{one.name} cannot be caught")
            return int(one)
    raise argparse.ArgumentTypeError(f"no signal: {text}")


def add_arguments(parser):
    parser.usage = "heapledger run [options] (SCRIPT | -m MODULE | -c CODE) ..."
    parser.add_argument("-n", "--nframe", type=frames, default=1, metavar="N", help="frames of a traceback (default 1)")
    parser.add_argument("-o", "--output", default=DEFAULT_FILE, metavar="FILE", help="where to write")
    parser.add_argument("--peak", action="store_true", help="write what was there at the peak (both by default)")
    parser.add_argument("--exit", action="store_true", help="write what is there at the end")
    parser.add_argument(
        "--every", type=milliseconds, default=0, metavar="SECONDS", help="also write a file every so many seconds"
    )
    parser.add_argument(
        "--on-signal", type=signal_number, default=0, metavar="SIGNAL", help="also write a file on this signal: SIGUSR2"
    )
    parser.add_argument(
        "--children",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="trace the processes that the program starts (the default)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing at the end")
    program = parser.add_mutually_exclusive_group()
    program.add_argument("-m", nargs=argparse.REMAINDER, dest="module", metavar="MODULE", help="run a module")
    program.add_argument("-c", nargs=argparse.REMAINDER, dest="code", metavar="CODE", help="run code")
    parser.add_argument("script", nargs=argparse.REMAINDER, default=[], metavar="SCRIPT", help="run a script")


def arrange(arguments):
    """-mMODULE and -cCODE in one word after a "--": else argparse takes what comes then for options of ours."""
    words = list(arguments)
    place = 0
    while place < len(words) and words[place].startswith("-") and words[place] not in ("-", "--"):
        word = words[place]
        if word.startswith("--"):
            takes_next = "=" not in word and any(name.startswith(word) for name in LONG_WITH_VALUE)
        else:
            at = next((at for at in range(1, len(word)) if word[at] in "mcno"), len(word) - 1)
            if word[at] in "mc" and at + 1 == len(word):
                break
            if word[at] in "mc":
                return [*words[:place], *[word[:at]] * (at > 1), "--", f"-{word[at:]}", *words[place + 1 :]]
            takes_next = word[at] in "no" and at + 1 == len(word)
        place += 2 if takes_next else 1
    return words


def program_of(options):
    """What python is to be called with."""
    for flag, words in (("-m", options.module), ("-c", options.code)):
        if words is not None:
            if not words:
                raise Failure(f"argument expected for {flag}")
            return [flag, *words]
    words = options.script[1:] if options.script[:1] == ["--"] else options.script
    if not words:
        raise Failure("no program: give a script, -m MODULE or -c CODE")
    return words


def own_options():
    """The interpreter's own options in the command line that has led here."""
    before = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    if len(before) >= 2 and before[-1] == "heapledger" and before[-2].startswith("-") and before[-2].endswith("m"):
        flags = before[-2][:-1]
        return before[:-2] + [flags] * (flags != "-")
    return before[:-1]  # a script, or -mheapledger


def file_template(text):
    """The absolute path with only %p and %% left to be replaced."""
    host, moment = socket.gethostname(), time.strftime("%Y%m%d-%H%M%S")
    pieces = os.path.abspath(text).split("%%")
    path = "%%".join(piece.replace("%h", host).replace("%t", moment) for piece in pieces)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise Failure(f"there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise Failure(f"cannot write into {folder}")
    if os.path.isdir(path):
        raise Failure(f"{path} is a folder")
    return path


def preload_library():
    path = str(pathlib.Path(heapledger.__file__).resolve().with_name("_preload.so"))
    if not os.path.isfile(path):
        raise Failure(f"{path} is missing")
    if " " in path or ":" in path:
        raise Failure(f"the dynamic linker cannot load {path}: it has a space or a colon in its name")
    return path


def environment(options):
    """The environment of the program. Which options there are is said in src/cpython/run.h."""
    both = options.peak == options.exit
    moments = "l" * (options.exit or both) + "p" * (options.peak or both)
    words = [f"frames={options.nframe}", f"root={os.getpid()}", f"began={int(time.time())}", f"moments={moments}"]
    words += [f"every={options.every}", f"signal={options.on_signal}"]
    words += ["quiet"] * options.quiet + ["alone"] * (not options.children)
    words.append(f"file={file_template(options.output)}")
    there = os.environ.get("LD_PRELOAD")
    return {
        **os.environ,
        VARIABLE: ",".join(words),
        "LD_PRELOAD": f"{preload_library()}:{there}" if there else preload_library(),
    }


def run(options):
    command = [sys.orig_argv[0], *own_options(), *program_of(options)]
    variables = environment(options)
    sys.stdout.flush()
    try:
        os.execve(sys.executable, command, variables)
    except OSError as error:
        raise Failure(f"cannot run {sys.executable}: {error.strerror}") from error
