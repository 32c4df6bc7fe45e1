"""Names of types, for annotations.

Only type checkers import this module, because importing `typing` takes longer than importing this whole package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeAlias, TypedDict, TypeVar

if TYPE_CHECKING:
    from heapledger._tracing import trace

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result", covariant=True)

File: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]
FrameTuple: TypeAlias = tuple[str, int]
TraceTuple: TypeAlias = tuple[int, int, Sequence[FrameTuple], int | None] | tuple[int, int, Sequence[FrameTuple]]
# Not Literal["filename", ...], because stubtest does not recognise that as equal to the type at run time.
KeyType: TypeAlias = Literal["filename"] | Literal["lineno"] | Literal["traceback"]
Moment: TypeAlias = Literal["live"] | Literal["peak"] | Literal["allocated"]
Metadata: TypeAlias = dict[str, Any]  # plain data; files may contain any
# What metadata are made of: the bytes of a file's META section, or the numbers of a snapshot that was taken here.
Facts: TypeAlias = bytes | bytearray | None
# A frame with its function: (filename, lineno, function or None).
Location: TypeAlias = tuple[str, int, str | None]
# Blocks of one stack: (frames, newest first; size of each block; number of blocks).
Row: TypeAlias = tuple[tuple[Location, ...], int, int]
# What a group of allocations has in common. python/heapledger/command/_names.py describes it.
Key: TypeAlias = tuple[Any, ...]
# A cell of a table: text, or (text, style).
Cell: TypeAlias = str | tuple[str, str | None]


class Traced(Protocol[_Parameters, _Result]):
    """A function that `trace` has decorated."""

    last: trace | None

    def __call__(self, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result: ...

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., _Result]: ...


class Resident(TypedDict):
    """The memory that the system counts for a process. See python/heapledger/command/_resident.py."""

    rss: int
    parts: dict[str, int]
