"""Reads pickles of snapshots, and nothing else.

The standard library's files are pickles, and a pickle is a program. This is an interpreter for the few instructions in
pickles of snapshots: those of protocols 2 to 5 for plain data and for instances of two classes. It makes only plain
data and calls nothing that the file names. It allocates at most a multiple of the file's length. The unpickler of the
standard library has no such limit: a few bytes can announce any place in the memo, or any length of a text, and it
makes room for that.

Most of a file consists of runs of a few instructions, which ``src/binding/unpickle.c`` executes. It leaves all other
instructions, and all errors, to the code here.

The file's ``Snapshot`` and ``_Traces`` become ``_Object``s. ``read`` checks them and takes their values.
"""

from __future__ import annotations

from _struct import Struct
from _struct import error as StructError  # type: ignore[attr-defined] # it is missing in the stubs

from heapledger._ledger import _unpickle_check, _unpickle_run
from heapledger._plain import Malformed, are_unfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from heapledger._types import TraceTuple

_MODULES = ("tracemalloc", "heapledger", "heapledger._ledger")
_SETS = {"set": set, "frozenset": frozenset}
# Limits for each byte of a file. The memo can repeat an object for two bytes, whatever the object's size.
_KEY_PARTS_PER_BYTE = 16
_PARTS_PER_BYTE = 4
_PLAIN_KEYS = frozenset({str, int, float, bool, bytes, type(None)})

_INT16 = Struct("<H").unpack_from
_INT32 = Struct("<i").unpack_from
_UINT32 = Struct("<I").unpack_from
_UINT64 = Struct("<Q").unpack_from
_FLOAT = Struct(">d").unpack_from


class _Class:
    def __init__(self, name: str) -> None:
        self.name = name


class _Object:
    def __init__(self, name: str) -> None:
        self.name = name
        self.state: dict[str, Any] | None = None


class _Budget:
    """How much work is still allowed for a file of this length."""

    def __init__(self, length: int) -> None:
        self.copies = length
        self.key_parts = _KEY_PARTS_PER_BYTE * length
        self.known: dict[int, dict[Any, int]] = {}  # id of a dict or set -> what are_unfit() knows about its keys


def _check_keys(keys: Sequence[Any], container: Collection[Any] | None, budget: _Budget, at: int) -> None:
    """Check keys for a dict or set, or for a new one if `container` is None.

    The keys will be hashed. That takes forever for a tuple that holds a tuple twice, which holds another one twice, ...
    """
    for key in keys:
        waiting = [key]
        while waiting:
            part = waiting.pop()
            kind = type(part)
            is_group = kind is tuple or kind is frozenset
            budget.key_parts -= 1 + (len(part) if is_group else part.bit_length() // 64 if kind is int else 0)
            if not is_group and kind not in _PLAIN_KEYS:
                raise Malformed(f"a {kind.__name__} cannot be a key here", at)
            if budget.key_parts < 0:
                raise Malformed(f"a {kind.__name__} cannot be a key here: all the keys take too long to hash", at)
            if is_group:
                waiting.extend(part)
    known = {} if container is None else budget.known.setdefault(id(container), {})
    unfit = are_unfit(keys, known, 0 if container is None else len(container))
    if unfit is not None:
        raise Malformed(unfit, at)


def _find(module: str, name: str, at: int) -> _Class | type[Any]:
    if module in _MODULES and name in ("Snapshot", "_Traces"):
        return _Class(name)
    if module == "builtins" and name in _SETS:
        return _SETS[name]
    raise Malformed(f"names {module!r:.60}.{name!r:.60}, which a snapshot has no need of", at)


def _pop_mark(stack: list[Any], marks: list[int], at: int) -> list[Any]:
    """Remove and return what was put on the stack since the last mark."""
    if not marks:
        raise Malformed("an instruction lacks its mark", at)
    start = marks.pop()
    items = stack[start:]
    del stack[start:]
    return items


def _length(size: int, data: bytes, after: int, at: int) -> int:
    if size > len(data) - after:
        raise Malformed(f"{size} bytes are announced, {len(data) - after} are left", at)
    return size


def _apply(stack: list[Any], marks: list[int], budget: _Budget, code: int, at: int) -> None:
    """Execute an instruction that takes several objects from the stack."""
    if code == 0x75 or code == 0x73:  # SETITEMS, SETITEM
        pairs = _pop_mark(stack, marks, at) if code == 0x75 else [stack.pop(-2), stack.pop()]
        if type(stack[-1]) is not dict or len(pairs) % 2:
            raise Malformed("items for what is not a dict", at)
        _check_keys(pairs[::2], stack[-1], budget, at)
        stack[-1].update(zip(pairs[::2], pairs[1::2], strict=True))
    elif code == 0x90:  # ADDITEMS
        members = _pop_mark(stack, marks, at)
        if type(stack[-1]) is not set:
            raise Malformed("members for what is not a set", at)
        _check_keys(members, stack[-1], budget, at)
        stack[-1].update(members)
    elif code == 0x91:  # FROZENSET
        members = _pop_mark(stack, marks, at)
        _check_keys(members, None, budget, at)
        stack.append(frozenset(members))
    elif code == 0x93:  # STACK_GLOBAL
        name, module = stack.pop(), stack.pop()
        if type(name) is not str or type(module) is not str:
            raise Malformed("a class is not named by texts", at)
        stack.append(_find(module, name, at))
    elif code == 0x81:  # NEWOBJ
        arguments, made = stack.pop(), stack.pop()
        if type(made) is not _Class or arguments != ():
            raise Malformed("makes an object of what is not a class", at)
        stack.append(_Object(made.name))
    elif code == 0x52:  # REDUCE: until protocol 4 a set is set(list)
        arguments, made = stack.pop(), stack.pop()
        if made not in (set, frozenset) or type(arguments) is not tuple or len(arguments) != 1:
            raise Malformed("calls a function", at)
        if type(arguments[0]) is not list:
            raise Malformed("calls a function", at)
        budget.copies -= len(arguments[0])
        if budget.copies < 0:
            raise Malformed("makes more sets than it has room for", at)
        _check_keys(arguments[0], None, budget, at)
        stack.append(made(arguments[0]))
    else:  # BUILD
        state = stack.pop()
        if type(stack[-1]) is not _Object or type(state) is not dict:
            raise Malformed("gives a state to what is not an object", at)
        stack[-1].state = state


def _run(data: bytes) -> Any:
    """Return the object that the pickle describes. In the memo, `...` marks places that are not filled."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: list[Any] = []
    budget, at, after = _Budget(len(data)), 0, 0
    push = stack.append
    try:
        while True:
            at = _unpickle_run(data, after, stack, marks, memo)
            code = data[at]
            after = at + 1
            if code == 0x4B:  # BININT1
                push(data[after])
                after += 1
            elif code == 0x4D:  # BININT2
                push(_INT16(data, after)[0])
                after += 2
            elif code == 0x94:  # MEMOIZE
                memo.append(stack[-1])
            elif code == 0x71 or code == 0x72:  # BINPUT, LONG_BINPUT
                place, after = (data[after], after + 1) if code == 0x71 else (_UINT32(data, after)[0], after + 4)
                if place > len(data):
                    raise Malformed(f"has no room for {place} things", at)
                memo.extend([...] * (place - len(memo) + 1))
                memo[place] = stack[-1]
            elif code == 0x68 or code == 0x6A:  # BINGET, LONG_BINGET
                place, after = (data[after], after + 1) if code == 0x68 else (_UINT32(data, after)[0], after + 4)
                if memo[place] is ...:
                    raise Malformed("an instruction needs what is not there", at)
                push(memo[place])
            elif code == 0x28:  # MARK
                marks.append(len(stack))
            elif code == 0x74:  # TUPLE
                push(tuple(_pop_mark(stack, marks, at)))
            elif code == 0x85:  # TUPLE1
                stack[-1] = (stack[-1],)
            elif code == 0x86:  # TUPLE2
                stack[-2:] = ((stack[-2], stack[-1]),)
            elif code == 0x8C or code == 0x58 or code == 0x8D or code == 0x43 or code == 0x42 or code == 0x8E:
                if code == 0x8C or code == 0x43:  # SHORT_BINUNICODE, SHORT_BINBYTES
                    size, start = data[after], after + 1
                elif code == 0x58 or code == 0x42:  # BINUNICODE, BINBYTES
                    size, start = _UINT32(data, after)[0], after + 4
                else:  # BINUNICODE8, BINBYTES8
                    size, start = _UINT64(data, after)[0], after + 8
                after = start + _length(size, data, start, at)
                text = data[start:after]
                push(text if code in (0x43, 0x42, 0x8E) else text.decode("utf-8", "surrogatepass"))
            elif code == 0x4A:  # BININT
                push(_INT32(data, after)[0])
                after += 4
            elif code == 0x8A or code == 0x8B:  # LONG1, LONG4
                size, start = (data[after], after + 1) if code == 0x8A else (_UINT32(data, after)[0], after + 4)
                after = start + _length(size, data, start, at)
                push(int.from_bytes(data[start:after], "little", signed=True))
            elif code == 0x4E:  # NONE
                push(None)
            elif code == 0x88 or code == 0x89:  # NEWTRUE, NEWFALSE
                push(code == 0x88)
            elif code == 0x47:  # BINFLOAT
                push(_FLOAT(data, after)[0])
                after += 8
            elif code == 0x87:  # TUPLE3
                stack[-3:] = ((stack[-3], stack[-2], stack[-1]),)
            elif code == 0x29:  # EMPTY_TUPLE
                push(())
            elif code == 0x5D:  # EMPTY_LIST
                push([])
            elif code == 0x7D:  # EMPTY_DICT
                push({})
            elif code == 0x8F:  # EMPTY_SET
                push(set())
            elif code == 0x65 or code == 0x61:  # APPENDS, APPEND
                items = _pop_mark(stack, marks, at) if code == 0x65 else [stack.pop()]
                if type(stack[-1]) is not list:
                    raise Malformed("items for what is not a list", at)
                stack[-1].extend(items)
            elif code == 0x63:  # GLOBAL
                middle = data.index(b"\n", after)
                end = data.index(b"\n", middle + 1)
                push(_find(data[after:middle].decode(), data[middle + 1 : end].decode(), at))
                after = end + 1
            elif code in b"\x75\x73\x90\x91\x93\x81\x52\x62":
                _apply(stack, marks, budget, code, at)
            elif code == 0x80:  # PROTO
                if not 2 <= data[after] <= 5:
                    raise Malformed(f"is a pickle of protocol {data[after]}", at)
                after += 1
            elif code == 0x95:  # FRAME
                after += 8
            elif code == 0x30 or code == 0x31:  # POP, POP_MARK
                if code == 0x31:
                    _pop_mark(stack, marks, at)
                else:
                    stack.pop()
            elif code == 0x2E:  # STOP
                return stack.pop()
            else:
                raise Malformed(f"has the instruction {code}, which a pickle of a snapshot has no need of", at)
    except UnicodeDecodeError:
        raise Malformed("a text is not UTF-8", at) from None
    except (IndexError, KeyError, StructError, ValueError) as error:
        if type(error) is Malformed:
            raise
        if at >= len(data) or (after >= len(data) and code != 0x2E) or type(error) is StructError or code == 0x63:
            raise Malformed("is cut off", min(at, len(data))) from None
        raise Malformed("an instruction needs what is not there", at) from None


def _check_plain(value: Any, most: int, name: str) -> int:
    """Return the number of parts of plain data when written out. Raise an error for other data, or above `most` parts.

    A container that contains itself has too many parts.
    """
    waiting = [value]
    parts = 1
    while waiting:
        part = waiting.pop()
        kind = type(part)
        if kind is dict or kind is list or kind is tuple or kind is set or kind is frozenset:
            parts += 2 * len(part) if kind is dict else len(part)
            if parts > most:
                raise Malformed(f"{name} is too large", 0)
            waiting.extend(part)
            if kind is dict:
                waiting.extend(part.values())
        elif kind not in _PLAIN_KEYS:
            raise Malformed(f"{name} is not plain data", 0)
    return parts


def read(data: bytes) -> tuple[list[TraceTuple], dict[str, Any]]:
    """Return (list of traces, attributes) of the snapshot that the pickle contains."""
    made = _run(data)
    if type(made) is not _Object or made.name != "Snapshot" or made.state is None:
        raise Malformed("is a pickle, but not of a snapshot", 0)
    attributes = made.state
    traces = attributes.pop("traces", None)
    if type(traces) is not _Object or traces.name != "_Traces" or traces.state is None:
        raise Malformed("is a pickle of a snapshot without traces", 0)
    traces = traces.state.pop("_traces", None) if len(traces.state) == 1 else None
    if type(traces) is not list:
        raise Malformed("is a pickle of a snapshot whose traces are no list", 0)
    wrong = _unpickle_check(traces)
    if wrong is not None:
        raise Malformed("trace %d %s" % wrong, 0)
    if "traceback_limit" not in attributes:
        raise Malformed("is a pickle of a snapshot without its frame limit", 0)
    most = _PARTS_PER_BYTE * len(data)
    for name, value in attributes.items():
        if type(name) is not str:
            raise Malformed("has an attribute whose name is no text", 0)
        most -= _check_plain(value, most, f"the attribute {name!r:.60}")
    return traces, attributes
