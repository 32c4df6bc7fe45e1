"""The environment that heapledger is installed in, and the file there that makes tracemalloc mean heapledger."""

from __future__ import annotations

import os
import pathlib

from heapledger._site import folder, is_site_folder
from heapledger.command import Failure

# One line that `site` executes. If the package is removed without `heapledger disable`, it stays and does nothing.
ENABLING_LINE = (
    r'import sys; exec("try:\n import _heapledger_start\nexcept ImportError:\n pass\n'
    r'else:\n _heapledger_start.stand_in()")'
    "\n"
)


def enabling_file() -> pathlib.Path:
    return folder() / "heapledger-enabled.pth"


def is_enabled() -> bool:
    return enabling_file().is_file()


def enable() -> None:
    """Write the file. Readers find the whole file or no file."""
    if not is_site_folder():
        raise Failure(f"heapledger was imported from {folder()}, not from a site-packages folder of this interpreter")
    path = enabling_file()
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        try:
            temporary.write_text(ENABLING_LINE, encoding="utf-8")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from error


def disable() -> None:
    try:
        enabling_file().unlink(missing_ok=True)
    except OSError as error:
        raise Failure(f"cannot remove {enabling_file()}: {error.strerror}") from error
