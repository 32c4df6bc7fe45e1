"""Finds out whether the interpreter has read heapledger.pth, the file beside the package that starts the tracer."""

from __future__ import annotations

import os
import pathlib
import site
import sys

VARIABLE = "HEAPLEDGER"


def folder() -> pathlib.Path:
    """Return the folder that heapledger was imported from. If heapledger was installed, its .pth file is there."""
    return pathlib.Path(__file__).resolve().parent.parent


def is_site_folder() -> bool:
    """Return whether this interpreter executes the .pth files of the folder when it starts."""
    folders = site.getsitepackages([*site.PREFIXES, sys.prefix])  # PREFIXES lacks it while `site` runs
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return folder() in [pathlib.Path(name).resolve() for name in folders]


def starts_programs() -> bool:
    """Return whether `site` starts the tracer on request: the package's own .pth file is where `site` reads it."""
    return is_site_folder() and (folder() / "heapledger.pth").is_file()


def say_if_ignored() -> None:
    """Print to stderr that the variable has no effect, if it requests tracing and nothing has read it."""
    frames = os.environ.get(VARIABLE, "")
    if not frames.strip("0") or sys.flags.ignore_environment or sys.stderr is None:
        return
    if sys.flags.no_site:
        reason = "the interpreter was started with -S"
    elif not starts_programs():
        reason = f"heapledger.pth is not in a folder where the interpreter reads it: the package is in {folder()}"
    else:
        return
    sys.stderr.write(f"heapledger: {VARIABLE}={frames} has no effect: {reason}. python -m heapledger run works here\n")
