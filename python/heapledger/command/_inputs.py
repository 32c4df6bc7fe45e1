"""The files that commands read, and the options that select what to look at. Several files are merged to one capture.

If a file cannot be read, a Failure says why, with the name of the file.
"""

from __future__ import annotations

import os
import sys

import heapledger
from heapledger import _capture
from heapledger._ledger import _file_snapshot, _lacks_frames, _raw_metadata, _Traces
from heapledger._metadata import MOMENTS
from heapledger.command import Failure, _folding, _progress, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from heapledger import BaseFilter, Capture, Snapshot
    from heapledger._types import Moment
    from heapledger.command._folding import Folding

NO_FRAMES = (("<no frames>", 0),)
MANY_BYTES = 16 << 20  # less than a second
MANY_FILES = 100
NO_MEMORY = "there is not enough memory"


def size_of(filename: str) -> int:
    """Bytes, for the progress bar. If the file cannot be read, the reader notices soon."""
    try:
        return os.stat(filename).st_size
    except OSError:
        return 0


def reason(error: OSError) -> str:
    """What an OSError says, without the name of the file."""
    return error.strerror or str(error)


def _unreadable(filename: str, why: str) -> Failure:
    return Failure(f"cannot read {_text.printable(os.fsdecode(filename))}: {why}")


def read(filename: str) -> bytes:
    """The bytes of a file. A pipe can be read once, so keep the bytes to look at them twice."""
    try:
        with open(filename, "rb") as file:
            return file.read()
    except OSError as error:
        raise _unreadable(filename, reason(error)) from error
    except MemoryError as error:
        raise _unreadable(filename, NO_MEMORY) from error


def decode(data: bytes, filename: str) -> Capture:
    """The capture in the bytes of a file: an .hlsnap file, or a pickle that the standard library wrote."""
    try:
        return _capture.decode(data, filename)
    except heapledger.SnapshotFormatError as error:
        hint = "; heapledger check says which parts are sound" if error.offset else ""
        raise _unreadable(filename, f"{error.reason} (byte {error.offset}){hint}") from error
    except MemoryError as error:
        raise _unreadable(filename, NO_MEMORY) from error


def _with_frames(snapshot: Snapshot) -> Snapshot:
    """The snapshot, in which every traceback has a frame: snapshots that people make need not, and cannot be shown."""
    if not _lacks_frames(snapshot.traces):
        return snapshot
    traces = [(one.domain, one.size, one._trace[2] or NO_FRAMES, *one._trace[3:]) for one in snapshot.traces]
    return _file_snapshot(_Traces(traces), snapshot.traceback_limit, _raw_metadata(snapshot))


def _load_one(filename: str) -> Capture:
    capture = decode(read(filename), filename)
    for name in capture.moments:
        setattr(capture, name, _with_frames(getattr(capture, name)))
    return capture


def load_all(filenames: Sequence[str], is_long: bool | None = None) -> list[Capture]:
    """The captures in these files, for analyses. A bar shows the progress if this takes long."""
    sizes = [size_of(filename) for filename in filenames]
    if is_long is None:
        is_long = sum(sizes) > MANY_BYTES or len(filenames) > MANY_FILES
    captures = []
    with _progress.show("reading", sum(sizes), is_long) as progress:
        for filename, size in zip(filenames, sizes, strict=True):
            captures.append(_load_one(filename))
            progress.advance(size)
    return captures


def process_of(capture: Capture) -> tuple[str, int, str] | None:
    """What identifies the process of a capture; None if the file does not say it."""
    metadata = capture.metadata
    host, number = metadata.get("host"), metadata.get("pid")
    return (host, number, repr(metadata.get("command"))) if isinstance(host, str) and isinstance(number, int) else None


def _warn_of_sums(captures: Sequence[Capture], filenames: Sequence[str], moments: Sequence[Moment]) -> None:
    """Warn on stderr if the sum of these captures lacks moments, or is not the memory of any process."""
    lost = [name for name in MOMENTS if name not in moments and any(name in one.moments for one in captures)]
    if lost:
        print(f"heapledger: left out because not all files have it: {', '.join(lost)}", file=sys.stderr)
    processes: dict[tuple[str, int, str] | None, list[str]] = {}
    for capture, filename in zip(captures, filenames, strict=True):
        processes.setdefault(process_of(capture), []).append(_text.printable(os.fsdecode(filename)))
    processes.pop(None, None)
    first, *others = max(processes.values(), key=len, default=[None])
    if others:
        print(
            f"heapledger: {first} and {others[0] if len(others) == 1 else f'{len(others)} more'} are from one process:"
            " their sum is not the memory of any process; diff and report show how it changed",
            file=sys.stderr,
        )


def merged(captures: Sequence[Capture], filenames: Sequence[str]) -> Capture:
    """The sum of the captures in these files. A single capture stays as it is."""
    if len(captures) == 1:
        return captures[0]
    with _progress.show("merging", None, len(captures) > MANY_FILES):
        try:
            whole = heapledger.Capture.merge(captures)
        except (ValueError, OverflowError) as error:
            raise Failure(f"cannot merge these files: {error}") from error
        except MemoryError as error:
            raise Failure(f"cannot merge these files: {NO_MEMORY}") from error
    _warn_of_sums(captures, filenames, whole.moments)
    return whole


def load(filenames: Sequence[str]) -> Capture:
    """The capture in these files; several are merged."""
    return merged(load_all(filenames), filenames)


def load_folded(filenames: Sequence[str], options: Namespace) -> tuple[Capture, Folding]:
    """(capture, folding) of these files, with the options of _folding.add_options."""
    warn_of_exclusion(options)
    captures = load_all(filenames)
    return merged(captures, filenames), _folding.of_captures(options.fold, captures)


def snapshot_at(capture: Capture, moment: Moment | None = None) -> tuple[Moment, Snapshot]:
    """(moment, snapshot) of the given moment, or of the first moment that the capture has."""
    for name in MOMENTS if moment is None else (moment,):
        snapshot = getattr(capture, name)
        if snapshot is not None:
            return name, snapshot
    raise Failure(f"there is no snapshot of the moment '{moment}', only of: {', '.join(capture.moments)}")


def add_files(parser: ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="an .hlsnap file, or a pickle of tracemalloc")


def add_selection(parser: ArgumentParser) -> None:
    """Add the options that select blocks. select() applies them."""
    group = parser.add_argument_group("which blocks")
    group.add_argument(
        "--moment",
        choices=MOMENTS,
        help="alive when the snapshot was taken, alive at the peak, or allocated since tracing began, freed or not"
        " (default: the first of these that the file has)",
    )
    group.add_argument("--peak", dest="moment", action="store_const", const="peak", help="the same as --moment peak")
    group.add_argument(
        "--include",
        metavar="GLOB",
        action="append",
        default=[],
        help="only blocks allocated by files with this path, such as '*/myapp/*'; can be repeated",
    )
    group.add_argument(
        "--exclude", metavar="GLOB", action="append", default=[], help="no blocks allocated by files with this path"
    )
    group.add_argument(
        "--all-frames", action="store_true", help="--include and --exclude also look at the files of the callers"
    )
    group.add_argument(
        "--domain", metavar="NUMBER", type=int, action="append", default=[], help="only blocks of this domain"
    )


def warn_of_exclusion(options: Namespace) -> None:
    """Users who exclude libraries mostly want to see their own code, and would lose what libraries allocated for it."""
    if any("-packages" in pattern for pattern in options.exclude) and options.fold != "libraries":
        print("heapledger: --exclude drops what libraries allocate; --mine charges it to your lines", file=sys.stderr)


def make_filters(options: Namespace) -> list[BaseFilter]:
    filters: list[BaseFilter] = [
        heapledger.Filter(True, pattern, all_frames=options.all_frames) for pattern in options.include
    ]
    filters += [heapledger.Filter(False, pattern, all_frames=options.all_frames) for pattern in options.exclude]
    return filters


def filtered(snapshot: Snapshot, options: Namespace) -> Snapshot:
    """The part of a snapshot that the options select."""
    # Each kind separately: inclusive filters are alternatives, but a domain is not an alternative to a file.
    if options.domain:
        snapshot = snapshot.filter_traces([heapledger.DomainFilter(True, domain) for domain in options.domain])
    filters = make_filters(options)
    return snapshot.filter_traces(filters) if filters else snapshot


def nothing(options: Namespace) -> str:
    """The message if there is no block to show."""
    names = [f"--{name}" for name in ("include", "exclude", "domain") if getattr(options, name)]
    if not names:
        return "there are no blocks"
    # Names in a capture are whole paths, or are in angle brackets like <string>.
    relative = [pattern for pattern in options.include if pattern[:1] not in ("/", "*", "?", "[", "<")]
    hint = f"; names are whole paths, try '*/{_text.printable(relative[0])}'" if relative else ""
    return f"no block is left by {' and '.join(names)}{hint}"


def select(capture: Capture, options: Namespace) -> tuple[Moment, Snapshot]:
    """(moment, snapshot) that the options of add_selection select."""
    moment, snapshot = snapshot_at(capture, options.moment)
    return moment, filtered(snapshot, options)
