"""What allocations are grouped by, and what the groups are called.

A key is a tuple: (file, line), (file,), (file, function), (package,), or for tracebacks a tuple of (file, line,
function), oldest frame first. An unknown function is None. IMPORTS and ELSEWHERE are keys of any kind.
"""

from __future__ import annotations

from heapledger.command import _kinds, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from heapledger._types import FrameTuple, Key, Location
    from heapledger.command._tree import CallTree

KEYS = ("line", "file", "function", "traceback", "package")
IMPORTS = ("[imports]",)
ELSEWHERE = ("[no line of your code]",)

_ID_DIGITS = 10
_MOST_OF_A_FUNCTION = 60  # characters
_MODULUS = (1 << 61) - 1
_BASE = 0x1B5A_95C6_2F0D_3E17 % _MODULUS


def package_of(filename: str) -> str:
    """The package that a file belongs to: for libraries and the standard library the one that is imported by name, for
    all other files their folder, as nothing tells where their packages begin."""
    found = _kinds.LIBRARY.search(filename) or _kinds.STDLIB.search(filename) or _kinds.FROZEN.match(filename)
    if found is not None:
        name = found.group(1)
        return name.split(".", 1)[0] if name.endswith((".py", ".pyc", ".so")) else name
    folder, slash, _ = filename.rpartition("/")
    if not slash or filename.startswith("<"):
        return filename
    return folder or "/"


class Ids:
    """Short names of tracebacks, which are the same in every file that has the traceback. Functions' names play no
    part: the standard library's snapshots have none."""

    def __init__(self) -> None:
        self._frames: dict[FrameTuple, int] = {}

    def _frame(self, filename: str, line: int) -> int:
        number = self._frames.get((filename, line))
        if number is None:
            import hashlib  # with the library behind it, it takes longer than a small command

            text = f"{line}:{filename}".encode("utf-8", "surrogatepass")
            number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") % _MODULUS + 1
            self._frames[filename, line] = number
        return number

    def of(self, frames: Iterable[Location]) -> str:
        """Of a traceback, the oldest frame first."""
        number = 0
        for filename, line, *_ in frames:
            number = (number * _BASE + self._frame(filename, line)) % _MODULUS
        return self.text(number)

    def of_tree(self, tree: CallTree) -> list[int]:
        """By node of a call tree: a number, which text() makes an id of."""
        frames = [0, *[self._frame(filename, line) for filename, line, _ in tree.locations]]
        numbers: list[int] = []
        for node, (location, parent) in enumerate(zip(tree.nodes, tree.parents, strict=True)):
            numbers.append((numbers[parent] * _BASE + frames[location]) % _MODULUS if node else 0)
        return numbers

    @staticmethod
    def text(number: int) -> str:
        return f"{number:016x}"[-_ID_DIGITS:]


def is_folded(key: Key) -> bool:
    """Whether the key is that of a folded group."""
    return key in (IMPORTS, ELSEWHERE)


def label(by: str, key: Key) -> str:
    """A key in one line of text; of a traceback, the newest frame."""
    if is_folded(key):
        return str(key[0])
    if by == "traceback":
        return frame_label(key[-1])
    if by == "line":
        return place_label(*key)
    if by == "function":
        return f"{function_label(key[1])}  {_text.printable(key[0])}"
    return _text.printable(key[0])


def place_label(filename: str, line: int) -> str:
    return f"{_text.printable(filename)}:{line}" if line else _text.printable(filename)


def frame_label(frame: Location) -> str:
    filename, line, function = frame
    where = place_label(filename, line)
    return f"{where} in {function_label(function)}" if function else where


def function_label(function: str | None) -> str:
    """A function's name, which is what the place is for and so must not push it off the screen."""
    return _text.shorten(_text.printable(function or "<unknown>"), _MOST_OF_A_FUNCTION)


def as_json(by: str, key: Key) -> dict[str, object]:
    """The members of a JSON object that say what a group is."""
    if is_folded(key):
        return {"folded": "imports" if key == IMPORTS else "elsewhere"}
    if by == "traceback":
        return {"id": Ids().of(key), "frames": [frame_as_json(frame) for frame in key]}
    if by == "line":
        return {"file": key[0], "line": key[1]}
    if by == "function":
        return {"file": key[0], "function": key[1]}
    return {by: key[0]}


def frame_as_json(frame: Location) -> dict[str, object]:
    filename, line, function = frame
    return {"file": filename, "line": line, "function": function}
