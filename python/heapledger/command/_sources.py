"""The source lines that frames name, if the files are on this machine.

Anybody may have written the names. So only regular files of a sensible size are opened, and only by an absolute path or
a path from the current folder. Source that this process knows without a file, such as the cells of a notebook, is in
linecache.
"""

from __future__ import annotations

import linecache
import os
import stat

from heapledger.command import _text

MOST_BYTES = 16 << 20


def _is_readable(filename: str) -> bool:
    try:
        status = os.stat(filename)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= MOST_BYTES


class Sources:
    """line(filename, number): the text of a line without its indentation, or "". For what others will see, files that
    are not named as Python's are not looked at: a capture could name any file of this machine."""

    def __init__(self, for_others: bool = False) -> None:
        self._readable: dict[str, bool] = {}
        self._for_others = for_others

    def _may_show(self, filename: str) -> bool:
        return filename in linecache.cache or (
            (not self._for_others or filename.endswith(".py")) and _is_readable(filename)
        )

    def line(self, filename: str, number: int) -> str:
        if filename not in self._readable:
            self._readable[filename] = self._may_show(filename)
        if not self._readable[filename] or number < 1:
            return ""
        return _text.printable(linecache.getline(filename, number).strip())
