"""Plain data as bytes: the form of a snapshot's metadata and of users' attributes in a file.

``docs/format.md``, section "Plain data", specifies the encoding. Plain data are None, bool, int, float, str, bytes, and
lists, tuples, dicts, sets and frozensets of plain data. Subclasses of these types are not plain data. Plain data are
nested at most ``MOST_LEVELS`` deep and have no cycles.

The data to decode may come from anybody. Every length is compared with the number of remaining bytes before anything is
made of them. So the allocated memory is bounded by a multiple of the input's length.
"""

from __future__ import annotations

from _struct import Struct

from heapledger._ledger import _Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any, NoReturn

    _Path = str | tuple["_Path", str, object]

Malformed = _Malformed

MOST_LEVELS = 32
MOST_INT_BYTES = 4096
MOST_ALIKE = 100
MOST_SCATTERED = 16384

_FLOAT = Struct("<d")
_CONSTANTS = {78: None, 84: True, 70: False}  # N, T, F
_CONTAINERS = {108: list, 116: tuple, 100: dict, 115: set, 122: frozenset}  # l, t, d, s, z
_TAGS: dict[type[Any], bytes] = {list: b"l", tuple: b"t", dict: b"d", set: b"s", frozenset: b"z"}


def base128(value: int) -> bytes:
    """Encode an unsigned number in base 128, low digits first. All digits but the last have the high bit set."""
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def _scalar(value: Any) -> bytes | None:
    """Encode anything but a container. Return None for what is not plain."""
    kind = type(value)
    if value is None:
        return b"N"
    if kind is bool:
        return b"T" if value else b"F"
    if kind is int:
        raw: bytes = value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "little", signed=True)
        return None if len(raw) > MOST_INT_BYTES else b"i" + base128(len(raw)) + raw
    if kind is float:
        return b"f" + _FLOAT.pack(value)
    if kind is str:
        raw = value.encode("utf-8", "surrogatepass")
        return b"u" + base128(len(raw)) + raw
    if kind is bytes:
        raw = value
        return b"b" + base128(len(raw)) + raw
    return None


def describe(value: Any) -> str:
    """Return a short text for any key or name. repr() may take forever or fail."""
    kind = type(value)
    if kind is str or kind is bytes:
        return repr(value[:60])[:60]
    if value is None or kind is bool or kind is float or kind is int and value.bit_length() < 200:
        return repr(value)
    return f"<{kind.__name__}>"


def _name(path: _Path) -> str:
    """Return a path as text. A path is a str or (outer path, text with a place for the key, key)."""
    steps = []
    while isinstance(path, tuple):
        path, text, key = path
        steps.append(text % describe(key))
    return path + "".join(reversed(steps))


def _refuse(value: object, path: _Path) -> NoReturn:
    if type(value) is int:
        raise ValueError(f"{_name(path)}: an int of more than {MOST_INT_BYTES} bytes can't be saved")
    name = type(value).__name__
    article = "an" if name[:1].lower() in "aeiou" else "a"
    raise TypeError(
        f"{_name(path)}: {article} {name} can't be saved; only None, bool, int, float, str, bytes, and lists, "
        "tuples, dicts, sets and frozensets of them can"
    )


def encode(value: Any, path: _Path = "value", level: int = 0) -> bytes:
    """Return the bytes of plain data. `path` names the value in errors.

    Raises a TypeError for what is not plain, and a ValueError for what is nested too deep. A cycle is nested too deep.
    """
    raw = _scalar(value)
    if raw is not None:
        return raw
    kind = type(value)
    if kind not in _TAGS:
        _refuse(value, path)
    if level == MOST_LEVELS:
        raise ValueError(f"{_name(path)}: nested more than {MOST_LEVELS} levels deep, or in itself: can't be saved")
    unfit = are_unfit(value, {}) if kind is not list and kind is not tuple else None
    if unfit is not None:
        raise ValueError(f"{_name(path)}: {unfit}: can't be saved")
    parts = []
    if kind is dict:
        for key, item in value.items():
            parts.append(encode(key, (path, ", key %s", key), level + 1))
            parts.append(encode(item, (path, "[%s]", key), level + 1))
    elif kind is list or kind is tuple:
        for index, item in enumerate(value):
            parts.append(encode(item, (path, "[%s]", index), level + 1))
    else:
        for item in value:
            parts.append(encode(item, (path, ", member %s", item), level + 1))
        parts.sort()
    # The value may have changed in the meantime. So this counts what has been encoded.
    return b"".join((_TAGS[kind], base128(len(parts) // 2 if kind is dict else len(parts)), *parts))


def join(encoded: Mapping[str, bytes]) -> bytes:
    """Return the bytes of a dict, given {key: the bytes of its value}."""
    parts = [_TAGS[dict], base128(len(encoded))]
    for key, raw in encoded.items():
        parts.append(encode(key))
        parts.append(raw)
    return b"".join(parts)


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    for offset in range(at, at + 9):
        if offset >= len(data):
            raise Malformed("the data end within a number", offset)
        digit = data[offset]
        number |= (digit & 127) << shift
        if digit < 128:
            if digit == 0 and shift:
                raise Malformed("a number is longer than need be", offset)
            return number, offset + 1
        shift += 7
    raise Malformed("a number is too long", at)


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    """Read the bytes of a value. Their length is before them."""
    length, start = _read_number(data, at)
    if length > len(data) - start:
        raise Malformed(f"{length} bytes are announced, {len(data) - start} are left", at)
    return data[start : start + length], start + length


def _row(keys: Collection[Any], first: int, there: int) -> range:
    """Return a range of ints from `first` on that do not collide in a dict or set. The container has `there` keys
    already and gets these keys.

    A container has at least three places for two keys, and consecutive ints take consecutive places.
    """
    if there:
        return range(first, first + there * 3 // 2 + 1500)  # pickles add keys in portions of 1,000
    different = bytearray(2 * len(keys))
    for key in keys:
        if type(key) is int and 0 <= key - first < len(different):
            different[key - first] = 1
    return range(first, first + different.count(1) * 3 // 2)


def are_unfit(keys: Collection[Any], known: dict[Any, int], there: int = 0) -> str | None:
    """Return why these keys may not be put into a dict or a set, or None. `known` is {} for the first keys, and the
    same dict for all later keys. `there` is the number of keys that the container has already.

    Keys with the same hash are each compared with all others. Keys with different hashes may be chosen so that each one
    tries the places of all others. A file with many of either would take forever to load. Nobody can predict the hashes
    of texts and bytes.
    """
    if "first" not in known:
        known["first"] = min((key for key in keys if type(key) is int), default=0)
    row = _row(keys, known["first"], there)
    scattered = known.get("scattered", 0)
    for key in keys:
        kind = type(key)
        is_short = kind is int and -(2**60) < key < 2**60
        if kind is str or kind is bytes or is_short and key in row:
            continue
        scattered += 1
        if scattered > MOST_SCATTERED:
            return f"more than {MOST_SCATTERED} keys are numbers, or tuples of numbers, that are not in a row"
        if is_short:
            continue
        code = hash(key)
        known[code] = known.get(code, 0) + 1
        if known[code] > MOST_ALIKE:
            return f"more than {MOST_ALIKE} keys have the same hash"
    known["scattered"] = scattered
    return None


def _read_container(data: bytes, at: int, kind: type[Any], level: int) -> tuple[Any, int]:
    if level == MOST_LEVELS:
        raise Malformed(f"nested more than {MOST_LEVELS} levels deep", at)
    count, after = _read_number(data, at + 1)
    if count * (2 if kind is dict else 1) > len(data) - after:
        raise Malformed(f"{count} items are announced, {len(data) - after} bytes are left", at)
    keys, items, last = [], [], b""
    for _ in range(count):
        start = after
        item, after = _read(data, after, level + 1)
        if kind is set or kind is frozenset:
            if data[start:after] < last:
                raise Malformed("the members of a set are not in order", start)
            last = data[start:after]
        if kind is dict:
            keys.append(item)
            item, after = _read(data, after, level + 1)
        items.append(item)
    try:
        unfit = are_unfit(keys if kind is dict else () if kind in (list, tuple) else items, {})
        if unfit is not None:
            raise Malformed(f"a {kind.__name__}: {unfit}", at)
        made = dict(zip(keys, items, strict=True)) if kind is dict else kind(items)
    except TypeError:
        raise Malformed(f"what cannot be in a {kind.__name__} is in one", at) from None
    if len(made) != count:
        raise Malformed(f"a {kind.__name__} has the same {'key' if kind is dict else 'member'} twice", at)
    return made, after


def _read(data: bytes, at: int, level: int) -> tuple[Any, int]:
    if at >= len(data):
        raise Malformed("the data end where a value is expected", at)
    tag = data[at]
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at + 1
    if tag in _CONTAINERS:
        return _read_container(data, at, _CONTAINERS[tag], level)
    if tag == 102:  # f
        if len(data) - at < 9:
            raise Malformed("the data end within a float", at)
        return _FLOAT.unpack_from(data, at + 1)[0], at + 9
    if tag not in b"iub":
        raise Malformed(f"no value begins with the byte {tag}", at)
    raw, after = _read_bytes(data, at + 1)
    if tag == 98:  # b
        return raw, after
    if tag == 117:  # u
        try:
            return raw.decode("utf-8", "surrogatepass"), after
        except UnicodeDecodeError as error:
            raise Malformed("a text is not UTF-8", after - len(raw) + error.start) from None
    if not 0 < len(raw) <= MOST_INT_BYTES:
        raise Malformed(f"an int of {len(raw)} bytes", at)
    if len(raw) > 1 and raw[-1] == (255 if raw[-2] & 128 else 0):
        raise Malformed("an int is longer than need be", at)
    return int.from_bytes(raw, "little", signed=True), after


def decode(data: bytes, whole: bool = True) -> Any:
    """Decode one value. Unless `whole`, more bytes may follow it. Raise Malformed for anything else."""
    value, after = _read(data, 0, 0)
    if whole and after != len(data):
        raise Malformed(f"{len(data) - after} bytes too many", after)
    return value
