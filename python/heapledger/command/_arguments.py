"""Numbers on the command line. The message for a wrong number says what is expected."""

from __future__ import annotations

import argparse
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _Number = TypeVar("_Number", int, float)


def number(kind: type[_Number], least: float, most: float, wanted: str) -> Callable[[str], _Number]:
    """For add_argument(type=...): read a number of this kind within these bounds. `wanted` describes them in words."""

    def read(text: str) -> _Number:
        try:
            value = kind(text)
            if least <= value <= most:
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"must be {wanted}, not {text!r}")

    return read


at_least_one = number(int, 1, sys.maxsize, "a whole number of at least 1")
percentage = number(float, 0, 100, "a percentage from 0 to 100")
frames = number(int, 1, 65535, "a whole number from 1 to 65535")
port = number(int, 0, 65535, "a port from 0 to 65535")
