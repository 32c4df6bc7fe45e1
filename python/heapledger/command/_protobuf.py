"""The part of the encoding of protocol buffers that a profile needs: numbers, and bytes with their length."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def varint(number: int) -> bytes:
    """A number in base 128; a negative one as 64 bits in two's complement."""
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def field(number: int, value: int) -> bytes:
    """A field with a number."""
    return varint(number << 3) + varint(value)


def chunk(number: int, value: bytes) -> bytes:
    """A field with bytes: a text or another message."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def packed(number: int, values: Iterable[int]) -> bytes:
    """A repeated field of numbers."""
    return chunk(number, b"".join(map(varint, values)))
