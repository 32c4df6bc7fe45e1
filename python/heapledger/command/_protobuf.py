"""The part of the encoding of protocol buffers that a profile needs: numbers, and bytes with their length."""

from __future__ import annotations

from heapledger import _plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def varint(number: int) -> bytes:
    """A number in base 128; a negative one as 64 bits in two's complement."""
    return _plain.base128(number & (1 << 64) - 1)


def field(number: int, value: int) -> bytes:
    """A field with a number."""
    return varint(number << 3) + varint(value)


def chunk(number: int, value: bytes) -> bytes:
    """A field with bytes: a text or another message."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def packed(number: int, values: Iterable[int]) -> bytes:
    """A repeated field of numbers."""
    return chunk(number, b"".join(map(varint, values)))
