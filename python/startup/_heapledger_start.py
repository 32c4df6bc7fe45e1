"""What runs while the interpreter starts, called by lines in .pth files that `site` executes.

``start`` is called by heapledger.pth, which comes with the package, if HEAPLEDGER or ``-X heapledger`` is given.
``stand_in`` is called by heapledger-enabled.pth, which ``heapledger enable`` writes.

This module is not part of the package, because importing anything of the package loads all of it, and an interpreter
that does not trace should not pay for that. For the same reason it imports only what `site` has imported before. A
program that is traced need not use the package either: only the extension module is loaded for it.

An exception here would only be printed by `site`, and the program would go on untraced: what must not go on, ends here.
Sub-interpreters run `site` too; the tracers are the process's, so only the main interpreter starts one.

PYTEST_DONT_REWRITE: pytest rewrites the assertions of all modules that are installed with one of its plugins, and warns
of those that are imported already, as this one is. With -W error that would end the run.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader as AnyLoader
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

VARIABLE = "HEAPLEDGER"
OPTION = "heapledger"
NUMBERS = "numbers"
EXTENSION = "heapledger._ledger"
MOST_FRAMES = 65535
# Whichever of them is imported first, heapledger takes its place then. It imports _tracemalloc itself, so it is one of
# them: otherwise it would have to do that while it is only half there.
NAMES = ("tracemalloc", "_tracemalloc", "heapledger")

# Up to 3.14, `site` reads the .pth files of a virtual environment twice.
standing_in = False


def parse_frames(text: str) -> int:
    """The number of frames that a text stands for, read as the C library would. ValueError if it stands for none."""
    digits = text.lstrip(" \t\n\v\f\r")
    negative = digits[:1] == "-"
    digits = digits[digits[:1] in ("+", "-") :]
    if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > 10:
        raise ValueError("invalid number of frames")
    frames = int(digits)
    if frames > 2**31 - 1 or (negative and frames):
        raise ValueError("invalid number of frames")
    if frames > MOST_FRAMES:
        raise ValueError(f"the number of frames must be in range [1; {MOST_FRAMES}]")
    return frames


def parse(text: str) -> tuple[int, bool]:
    """The number of frames, and whether numbers are asked for: "25" or "25,numbers"."""
    frames, comma, word = text.partition(",")
    if comma and word != NUMBERS:
        raise ValueError(f"{word!r} is not {NUMBERS!r}")
    return parse_frames(frames), bool(comma)


def asked_for(variable: str | None, option: str | bool | None) -> tuple[int, bool]:
    """What the variable's and the option's value ask for: a number of frames, or 0 for not to trace; and numbers.

    The option counts, but a bad value of the variable is not overlooked either. None is one that is not given, True an
    option without a value.
    """
    asked = 0, False
    if variable:
        try:
            asked = parse(variable)
        except ValueError as error:
            raise ValueError(f"{VARIABLE}={variable}: {error}") from None
    if option is not None:
        try:
            asked = (1, False) if option is True else parse(option or "0")
        except ValueError as error:
            raise ValueError(f"-X {OPTION}={option}: {error}") from None
    return asked


def ledger() -> "ModuleType":
    """The extension module. It is loaded without the package, if it is not there yet, and the package will find it.

    Not in an enabled environment: it imports one of NAMES, and the package could not be imported then.
    """
    if EXTENSION in sys.modules:
        return sys.modules[EXTENSION]
    package = EXTENSION.rpartition(".")[0]
    if not standing_in and package not in sys.modules:
        import _frozen_importlib
        import _frozen_importlib_external

        find = _frozen_importlib_external.PathFinder.find_spec
        found = find(package)
        spec = found and find(EXTENSION, found.submodule_search_locations)
        if spec is not None:
            return _frozen_importlib._load(spec)  # type: ignore[attr-defined, no-any-return]
    from heapledger import _ledger  # by whatever else it takes to find it

    return _ledger


def start() -> None:
    """Start heapledger's tracer if the variable or the option asks for it."""
    variable = None if sys.flags.ignore_environment else os.environ.get(VARIABLE)
    option = sys._xoptions.get(OPTION)
    try:
        frames, numbers = asked_for(variable, option)
        problem = None
    except ValueError as error:
        frames, numbers = 0, False
        problem = str(error)
    if option is not None and problem is None:
        # Children inherit the variable; the option gets as far as to those of multiprocessing from 3.14 on.
        os.environ[VARIABLE] = f"{frames},{NUMBERS}" if numbers else str(frames)
    if problem is None and not frames:
        return
    try:
        tracer = ledger()
        if not tracer._in_main_interpreter():
            return
        if problem is None:
            tracer.start(frames, numbers=numbers)
    except Exception as error:
        problem = f"cannot start: {type(error).__name__}: {error}"
    if problem is not None:
        # The status that the interpreter ends with when it cannot start the standard library's tracer.
        try:
            os.write(2, f"heapledger: {problem}\n".encode("utf-8", "backslashreplace"))
        except OSError:
            pass
        os._exit(1)


class Loader:
    """Loads a module by its own loader, and then lets heapledger take tracemalloc's place."""

    def __init__(self, loader: "AnyLoader") -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._loader, name)

    def create_module(self, spec: "ModuleSpec") -> "ModuleType | None":
        return self._loader.create_module(spec)

    def exec_module(self, module: "ModuleType") -> None:
        sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder) is not Finder]
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        install()


class Finder:
    """Finds what everybody else would find, and for some modules hands out another loader."""

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name not in NAMES:
            return None
        for finder in sys.meta_path:
            spec = None if type(finder) is Finder else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = Loader(spec.loader)  # type: ignore[assignment] # importlib.abc takes long to import
                return spec
        return None


def install() -> None:
    """heapledger.install(); where that is not possible, the program goes on with the standard library's module."""
    try:
        import _tracemalloc  # noqa: F401
    except ImportError:  # an interpreter with its own GIL has none
        return
    try:
        import heapledger

        heapledger.install()
    except Exception as error:
        if sys.stderr is not None:
            problem = f"{type(error).__name__}: {error}"
            sys.stderr.write(f"heapledger: cannot take the place of tracemalloc: {problem}\n")


def interpreter_is_tracing() -> bool:
    """Whether the standard library's tracer runs already. The module is not left imported: it is one of NAMES."""
    if "tracemalloc" not in sys._xoptions and "PYTHONTRACEMALLOC" not in os.environ:
        return False
    try:
        from _tracemalloc import is_tracing
    except ImportError:
        return False
    del sys.modules["_tracemalloc"]
    return is_tracing()


def stand_in() -> None:
    """From now on tracemalloc means heapledger: at once if there is tracing already, else when it is imported."""
    global standing_in
    if standing_in:
        return
    standing_in = True
    if any(name in sys.modules for name in NAMES) or interpreter_is_tracing():
        install()
    else:
        sys.meta_path.insert(0, Finder())
