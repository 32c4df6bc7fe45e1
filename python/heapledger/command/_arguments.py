"""Numbers on the command line. The message for a wrong number says what is expected."""

import argparse
import sys


def number(kind, least, most, wanted):
    """For add_argument(type=...): read a number of this kind within these bounds. `wanted` describes them in words."""

    def read(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"must be {wanted}, not {text!r}")
        return value

    return read


at_least_one = number(int, 1, sys.maxsize, "a whole number of at least 1")
percentage = number(float, 0, 100, "a percentage from 0 to 100")
frames = number(int, 1, 65535, "a whole number from 1 to 65535")
port = number(int, 0, 65535, "a port from 0 to 65535")
