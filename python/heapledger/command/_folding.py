"""Folding: charge memory to the program's own code.

    nothing     show everything as it is
    imports     show the memory of imports as one group; hide the frames of the import system
    libraries   the same, and show only the program's own lines, including what their callees allocated

A block belongs to imports if the import system is nearer to it on its stack than any line of the program's own code. So
the top-level code of the program's modules is its own. What a library does when it is imported is not.
"""

from __future__ import annotations

from heapledger._ledger import _split
from heapledger.command._kinds import Kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterable

    from heapledger import Capture, Snapshot

FOLDS = ("nothing", "imports", "libraries")


def add_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("your code")
    group.add_argument(
        "--fold",
        choices=FOLDS,
        default="imports",
        help="imports: show the memory of imports as one line (the default); libraries: also charge what installed"
        " packages and the standard library allocate to the line of your code that called them",
    )
    group.add_argument(
        "--mine", dest="fold", action="store_const", const="libraries", help="the same as --fold libraries"
    )


class Folding:
    def __init__(self, fold: str, kinds: Kinds) -> None:
        self.fold = fold
        self.kinds = kinds

    def _is_import(self, filename: str, line: int, function: str | None) -> bool | None:
        return {"importlib": True, "own": False}.get(self.kinds.of(filename))

    def parts(self, snapshot: Snapshot) -> tuple[Snapshot, Snapshot | None]:
        """(the snapshot without imports, the snapshot of imports)"""
        return (snapshot, None) if self.fold == "nothing" else _split(snapshot, self._is_import)

    def hides(self, filename: str) -> bool:
        """Whether frames in this file are hidden. What they allocated belongs to their callers."""
        if self.fold == "nothing":
            return False
        kind = self.kinds.of(filename)
        return kind == "importlib" if self.fold == "imports" else kind not in ("own", "cut")


def of_captures(fold: str, captures: Iterable[Capture]) -> Folding:
    return Folding(fold, Kinds([capture.metadata for capture in captures]))
