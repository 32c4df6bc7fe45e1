"""Every size from nothing to some thousands, small and large blocks, in all domains."""

import ctypes
import struct


class Structure(ctypes.Structure):
    _fields_ = [("first", ctypes.c_int), ("text", ctypes.c_char * 33)]


def main():
    blocks = [bytes(size) for size in range(3000)]
    blocks += [bytearray(size) for size in range(0, 3000, 7)]
    blocks += [bytes(1 << shift) for shift in range(3, 21)]
    blocks += [(None,) * size for size in range(100)] + [[None] * size for size in range(100)]
    blocks += ["a" * size for size in range(200)] + ["\u20ac" * size for size in range(200)]
    blocks += [1 << shift for shift in range(0, 4000, 13)] + [
        ctypes.create_string_buffer(size) for size in range(1, 90)
    ]
    blocks += [Structure(size, b"x") for size in range(20)] + [struct.Struct("i" * size) for size in range(30)]
    blocks += [type(f"Slotted{size}", (), {"__slots__": [f"s{n}" for n in range(size)]})() for size in range(20)]
    del blocks[::5]
    return blocks
