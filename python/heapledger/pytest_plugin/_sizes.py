"""Sizes as people write them: "24 MB" is 24,000,000 bytes, "24 MiB" is 25,165,824."""

from __future__ import annotations

import re

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", 1):
    _UNITS[f"{_letter}B"] = 1000**_power
    _UNITS[f"{_letter}IB"] = 1024**_power
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*")


def parse_size(size: object) -> int:
    """The bytes. ValueError if it is not a size."""
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if found is None or found[2].upper() not in _UNITS:
        raise ValueError(f"{size!r} is not a size; write '24 MB', '1.5 GiB', '100 B' or a number of bytes")
    return int(float(found[1]) * _UNITS[found[2].upper()])
