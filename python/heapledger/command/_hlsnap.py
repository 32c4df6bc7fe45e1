"""Writes an .hlsnap file (docs/format.md) of stacks that come from somewhere else, functions' names included.

What the process itself has traced is written in C; snapshots made of tuples have no functions' names.
"""

import zlib
from struct import pack

from heapledger import _plain
from heapledger.command._protobuf import digits

_HEADER = b"\x89HLS\r\n\x1a\n" + pack("<HH", 1, 0)
_MOMENTS = {"live": 0, "peak": 1, "allocated": 2}
_MOST_FRAMES_A_BYTE = 64  # of the section of stacks


def _signed(value):
    return digits(2 * value if value >= 0 else -2 * value - 1)


def _text(name):
    encoded = name.encode("utf-8", "surrogatepass")
    return digits(len(encoded)) + encoded


def _section(kind, payload):
    content = kind + pack("<Q", len(payload)) + payload
    return content + pack("<I", zlib.crc32(content))


class _Names:
    """Things in the order in which they are first named; name(thing) is how the file names it."""

    def __init__(self):
        self.numbers = {}

    def name(self, thing):
        known = self.numbers.get(thing)
        if known is None:
            self.numbers[thing] = len(self.numbers)
            return digits(0)
        return digits(known + 1)


class Writer:
    """add(frames, size, count): blocks of one stack, which is (file, line, function or None), the oldest first."""

    def __init__(self):
        self._locations = _Names()
        self._nodes = {}  # (parent, location) -> node
        self._stacks = {}  # node -> number
        self._stack_bytes = bytearray()
        self._frames = 0
        self._rows = {}  # (stack, size) -> count

    def add(self, frames, size, count):
        key = self._stack(frames), size
        self._rows[key] = self._rows.get(key, 0) + count

    def _stack(self, frames):
        """The number of a stack, which is written when it comes for the first time."""
        node, shared = 0, 0
        for frame in frames:
            following = self._nodes.get((node, frame))
            if following is None:
                break
            node, shared = following, shared + 1
        if shared == len(frames) and node in self._stacks:
            return self._stacks[node]
        self._stack_bytes += digits(len(self._nodes) + 1 - node if node else 0)
        self._stack_bytes += digits(len(frames) - shared)
        for frame in frames[shared:]:
            self._stack_bytes += self._locations.name(frame)
            number = len(self._nodes) + 1
            self._nodes[node, frame] = number
            node = number
        self._stack_bytes += digits(0)  # nobody knows how many frames there were
        self._frames += len(frames)
        self._stacks[node] = len(self._stacks)
        return self._stacks[node]

    def _names_sections(self):
        files, functions = _Names(), _Names()
        locations, last = bytearray(digits(len(self._locations.numbers))), 0
        for filename, line, function in self._locations.numbers:
            locations += files.name(filename)
            # Here 0 means that there is none, so a name is one more than elsewhere.
            if function is None:
                locations += digits(0)
            else:
                known = functions.numbers.get(function)
                locations += digits(1 if known is None else known + 2)
                functions.name(function)
            locations += _signed(line - last)
            last = line
        names = b"".join(digits(0) + _text(name) for name in files.numbers)
        yield _section(b"FILE", digits(len(files.numbers)) + names)
        names = b"".join(map(_text, functions.numbers))
        yield _section(b"FUNC", digits(len(functions.numbers)) + names)
        yield _section(b"LOCS", bytes(locations))

    def _stacks_section(self):
        payload = digits(len(self._nodes)) + digits(len(self._stacks)) + self._stack_bytes
        missing = -(-self._frames // _MOST_FRAMES_A_BYTE) - len(payload)
        return _section(b"STKS", bytes(payload) + bytes(max(missing, 0)))

    def _rows_section(self, moment, limit):
        payload = bytearray(digits(_MOMENTS[moment]) + digits(limit) + digits(0) + digits(0))
        payload += digits(len(self._rows))
        expected = 0
        for (stack, size), count in self._rows.items():
            difference = stack - expected
            # The number of the stack, and that the domain and the origin are those of the row before: 0.
            payload += digits(2 * (2 * difference if difference >= 0 else -2 * difference - 1))
            payload += digits(size) + digits(count) + _signed(0)
            expected = max(expected, stack + 1)
        return _section(b"ROWS", bytes(payload))

    def encode(self, moment, limit, metadata):
        """The bytes of the file, with one snapshot."""
        return b"".join(
            [
                _HEADER + pack("<I", zlib.crc32(_HEADER)),
                _section(b"META", _plain.encode(metadata)),
                *self._names_sections(),
                self._stacks_section(),
                self._rows_section(moment, limit),
                _section(b"END ", b""),
            ]
        )
