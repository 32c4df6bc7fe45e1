"""Run a program and write what it allocates, in all its processes, to files.

Give the program as you would to python: a script and its arguments, -m MODULE and arguments, or -c CODE and arguments.
It is traced from before the interpreter starts. Everything else is the same as with python: this command becomes that
interpreter, with the interpreter options that you gave to it (python -X dev -m heapledger run ...).

Each process writes a file when it ends: by itself, by sys.exit or os._exit, by an exception, or by a signal (SIGTERM,
SIGINT, SIGHUP, SIGQUIT and others). It cannot write a file when it is killed (SIGKILL), crashes or calls C's _exit. The
first process says where the files are and which lines of the program held most. kill -s RTMIN+7 PID (or the signal of
--on-signal) makes a process write a file at once and continue.

The default of FILE is heapledger-%t-%r.hlsnap. %t is the time of the start, %r the number of the first process, %p the
number of the process that writes, %h the host, and %% is %. Without %p, all processes except the first add their number
to the name.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import signal
import sys
import time

import heapledger
from heapledger.command import Failure, _arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

EXAMPLE = """\
  heapledger run program.py --some option
  heapledger run -n 10 -o traced-%p.hlsnap -m pytest -x
  python -I -m heapledger run -c 'import this'"""

VARIABLE = "HEAPLEDGER_RUN"
DEFAULT_FILE = "heapledger-%t-%r.hlsnap"
# Web frameworks have stacks of 130 to 170 frames. A higher limit would cost much in a recursion of thousands.
DEFAULT_FRAMES = 256
DEFAULT_SIGNAL = "SIGRTMIN+7"  # no server that we know of uses it
MOST_SECONDS = 2**32 // 1000 - 1  # milliseconds are counted in 32 bits
LONG_WITH_VALUE = ("--nframe", "--output", "--every", "--on-signal")


def seconds(text: str) -> float:
    """For --every."""
    return _arguments.number(float, 0.001, MOST_SECONDS, f"a number of seconds from 0.001 to {MOST_SECONDS}")(text)


def signal_number(text: str) -> int:
    """The number of a signal: SIGUSR2, usr2, 12, SIGRTMIN+7, RTMAX-1."""
    real_time = re.fullmatch(r"(?:SIG)?(RTMIN|RTMAX)([+-]\d+)", text.upper())
    if real_time:
        number: int | None = int(getattr(signal, f"SIG{real_time[1]}")) + int(real_time[2])
    else:
        names = {name: int(one) for one in signal.Signals for name in (one.name, one.name.removeprefix("SIG"))}
        number = int(text) if text.isdecimal() else names.get(text.upper())
    if number is None or number not in signal.valid_signals():
        raise argparse.ArgumentTypeError(f"{text} is not a signal")
    if number in (signal.SIGKILL, signal.SIGSTOP):
        raise argparse.ArgumentTypeError(f"{signal.Signals(number).name} cannot be caught")
    return number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "heapledger run [options] (SCRIPT | -m MODULE | -c CODE) ..."
    parser.add_argument(
        "-n",
        "--nframe",
        type=_arguments.frames,
        default=DEFAULT_FRAMES,
        metavar="N",
        help=f"the maximum number of frames in a traceback (default: {DEFAULT_FRAMES})",
    )
    parser.add_argument("--numbers", action="store_true", help="show numbers at their own lines too; takes longer")
    parser.add_argument("-o", "--output", default=DEFAULT_FILE, metavar="FILE", help="where to write")
    parser.add_argument("--peak", action="store_true", help="write only what was alive at the peak (default: both)")
    parser.add_argument("--exit", action="store_true", help="write only what is alive at the end")
    parser.add_argument("--every", type=seconds, default=0, metavar="SECONDS", help="also write a file every SECONDS")
    parser.add_argument(
        "--on-signal",
        type=signal_number,
        default=DEFAULT_SIGNAL,
        metavar="SIGNAL",
        help=f"the signal on which a process writes a file and continues (default: {DEFAULT_SIGNAL})",
    )
    parser.add_argument(
        "--children",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="trace the processes that the program starts (the default)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing at the end")
    # Only for the help: `arrange` leaves neither of these two to argparse.
    parser.add_argument("-m", metavar="MODULE", help="run a module")
    parser.add_argument("-c", metavar="CODE", help="run code")
    parser.add_argument("script", nargs=argparse.REMAINDER, default=[], metavar="SCRIPT", help="run a script")


def arrange(arguments: Sequence[str]) -> list[str]:
    """Put -m and -c, and everything behind them, after a "--". Otherwise argparse would take some of it for its own."""
    words = list(arguments)
    place = 0
    while place < len(words) and words[place].startswith("-") and words[place] not in ("-", "--"):
        word = words[place]
        if word.startswith("--"):
            takes_next = "=" not in word and any(name.startswith(word) for name in LONG_WITH_VALUE)
        else:
            at = next((at for at in range(1, len(word)) if word[at] in "mcno"), len(word) - 1)
            if word[at] in "mc":
                return [*words[:place], *[word[:at]] * (at > 1), "--", f"-{word[at:]}", *words[place + 1 :]]
            takes_next = word[at] in "no" and at + 1 == len(word)
        place += 2 if takes_next else 1
    return words


def program_of(options: argparse.Namespace) -> list[str]:
    """The arguments for python."""
    words: list[str] = options.script[1:] if options.script[:1] == ["--"] else options.script
    if not words:
        raise Failure("no program: give a script, -m MODULE or -c CODE")
    if words in (["-m"], ["-c"]):
        raise Failure(f"argument expected for {words[0]}")
    return words


def own_options() -> list[str]:
    """The interpreter's own options in this process's command line."""
    *before, last = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    if last == "heapledger" and before and re.fullmatch("-[^-]*m", before[-1]):
        last = before.pop() + last
    module = re.fullmatch("(-.*)mheapledger", last)  # None: a script
    return before if module is None or module[1] == "-" else [*before, module[1]]


def file_template(text: str) -> str:
    """The absolute path, in which only %p and %% are left to replace."""
    known = {"%%": "%%", "%h": literally(os.uname().nodename), "%t": time.strftime("%Y%m%d-%H%M%S")}
    known["%r"] = str(os.getpid())
    path = re.sub("%[%hrt]", lambda code: known[code[0]], text)
    if not os.path.isabs(path):
        try:
            path = os.path.join(literally(os.getcwd()), path)
        except FileNotFoundError:
            raise Failure("the current folder no longer exists: give -o an absolute path") from None
    path = os.path.normpath(path)
    folders, name = (part.split("%%") for part in os.path.split(path))
    if any("%p" in piece for piece in folders):
        raise Failure(f"{text}: %p can be in the name of the file, not in the folder's")
    folder = "%".join(folders)
    if not os.path.isdir(folder):
        raise Failure(f"there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise Failure(f"cannot write into {folder}")
    if os.path.isdir(os.path.join(folder, "%".join(name))):
        raise Failure(f"{path} is a folder")
    return path


def literally(text: str) -> str:
    return text.replace("%", "%%")


def preload_library() -> str:
    path = os.path.join(os.path.dirname(os.path.realpath(heapledger.__file__)), "_preload.so")
    if not os.path.isfile(path):
        raise Failure(f"{path} is missing")
    if " " in path or ":" in path:
        raise Failure(f"the dynamic linker cannot load {path}: it has a space or a colon in its name")
    return path


def environment(options: argparse.Namespace) -> dict[str, str]:
    """The environment of the program. Which options there are is said in src/run/run.h."""
    both = options.peak == options.exit
    moments = "l" * (options.exit or both) + "p" * (options.peak or both)
    words = [f"frames={options.nframe}", f"root={os.getpid()}", f"id={os.urandom(8).hex()}", f"moments={moments}"]
    words += [f"every={round(options.every * 1000)}", f"signal={options.on_signal}"]
    words += ["numbers"] * options.numbers + ["quiet"] * options.quiet + ["alone"] * (not options.children)
    words.append(f"file={file_template(options.output)}")
    there = os.environ.get("LD_PRELOAD")
    return {
        **os.environ,
        VARIABLE: ",".join(words),
        "LD_PRELOAD": f"{preload_library()}:{there}" if there else preload_library(),
    }


def is_there(program: list[str]) -> bool:
    """Whether python will find the program: if not, it says so itself, and there is nothing to trace."""
    word = program[0]
    if word.startswith("-m"):
        name = (word[2:] or program[1]).partition(".")[0]
        here = sys.path.copy()
        try:
            sys.path.insert(0, os.getcwd())
            return not name.isidentifier() or importlib.util.find_spec(name) is not None
        except (OSError, ImportError, ValueError):
            return True
        finally:
            sys.path[:] = here
    return word.startswith("-") or os.path.exists(word)


def meant(word: str) -> str | None:
    """What the user may have meant by a script that does not exist, or None."""
    if word.isidentifier() and importlib.util.find_spec(word) is not None:
        return f"-m {word}"
    command = shutil.which(word) if os.path.basename(word) == word else None
    if command is not None:
        with open(command, "rb") as file:
            if re.match(rb"#!.*python", file.readline(1000)):
                return command
    return None


def run(options: argparse.Namespace) -> NoReturn:
    program = program_of(options)
    variables: Mapping[str, str] = environment(options)
    if not is_there(program):
        hint = None if program[0].startswith("-") else meant(program[0])
        if hint is not None:
            raise Failure(f"there is no file {program[0]}: did you mean {hint}?")
        variables = os.environ
    sys.stdout.flush()
    try:
        os.execve(sys.executable, [sys.orig_argv[0], *own_options(), *program], variables)
    except OSError as error:
        raise Failure(f"cannot run {sys.executable}: {error.strerror}") from error
