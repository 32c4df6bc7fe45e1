"""Numbers on the command line. What is said of a wrong one names what is wanted, not a function of ours."""

import argparse
import sys


def number(kind, least, most, wanted):
    """For add_argument(type=...): reads a number of this kind within these bounds, which `wanted` puts into words."""

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
