"""What kind of code a file holds. This is the one place that defines what a program's own code is. docs/commands.md
describes it in words. The closing lines of `heapledger run`, which are written in C, follow the same rule.

The capture may come from another machine, so only names can tell: the names of the files, and that of the interpreter
in the capture's metadata.
"""

from __future__ import annotations

import os.path
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from heapledger._types import Metadata

# In the order in which the page lists them.
KINDS = ("own", "site-packages", "stdlib", "importlib", "other", "cut")
CUT = "<cut>"  # the file of joints: src/core/tree.h

LIBRARY = re.compile(r"/(?:site|dist)-packages/([^/]+)")
STDLIB = re.compile(r"/lib(?:64)?/python\d+(?:\.\d+)?t?(?:/lib-dynload)?/([^/]+)")
FROZEN = re.compile(r"<frozen ([^.>]+)")
_IMPORTS = re.compile(r"<frozen (?:importlib|zipimport)\b|/importlib/[^/]+\.pyc?$|/zipimport\.pyc?$")
_VERSION = re.compile(r"(\d+)\.(\d+)")


def _standard_libraries(metadata: Sequence[Metadata]) -> re.Pattern[str]:
    """A pattern for files of the standard library of the interpreters that captures with these metadata come from."""
    said = [one["python"] for one in metadata if isinstance(one.get("python"), str)]
    versions = [version for version in map(_VERSION.match, said) if version is not None]
    if not versions or len(versions) < len(metadata):
        return re.compile(rf"{STDLIB.pattern}|/python\d+\.zip/")
    named = [f"/lib(?:64)?/python{major}\\.{minor}t?/|/python{major}{minor}\\.zip/" for major, minor in
             sorted({version.groups() for version in versions})]  # fmt: skip
    # An interpreter that runs where it was built has its library beside it.
    built = [f"^{re.escape(folder)}/Lib/" for folder in sorted(_folders(metadata))]
    return re.compile("|".join(named + built))


def _folders(metadata: Sequence[Metadata]) -> set[str]:
    """Where the interpreters are, with the commands that were installed for them."""
    executables = [one.get("executable") for one in metadata]
    return {os.path.dirname(one) for one in executables if isinstance(one, str) and one.startswith("/")}


class Kinds:
    """of(filename): one of KINDS, in captures with these metadata. `known` has the kinds of files whose names do not
    say it, such as the cells of a notebook."""

    def __init__(self, metadata: Iterable[Metadata], known: Mapping[str, str] | None = None) -> None:
        metadata = list(metadata)
        self._library = _standard_libraries(metadata)
        self._folders = _folders(metadata)
        self._known = dict(known or {})

    def of(self, filename: str) -> str:
        kind = self._known.get(filename)
        if kind is None:
            kind = self._known[filename] = self._find(filename)
        return kind

    def _find(self, filename: str) -> str:
        if filename == CUT:
            return "cut"
        if LIBRARY.search(filename):
            return "site-packages"
        if FROZEN.match(filename) or self._library.search(filename):
            return "importlib" if _IMPORTS.search(filename) else "stdlib"
        if filename.startswith("<") and filename.endswith(">"):
            return "other"
        folder, name = os.path.split(filename)
        # A command such as bin/uvicorn is part of a package, although it is not in a folder of packages.
        return "site-packages" if folder in self._folders and not name.endswith(".py") else "own"
