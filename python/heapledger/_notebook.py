"""IPython and Jupyter: %%heapledger on a cell, and %heapledger_diff. Loaded by `%load_ext heapledger`.

IPython runs the cell as usual, in a trace. IPython allocates too, before, after and around the cell's code. So only
blocks with a line of the cell in their traceback count for the cell.
"""

from __future__ import annotations

import html
import linecache
import sys

from heapledger import is_tracing, start, stop, take_snapshot, trace
from heapledger._ledger import _make_capture
from heapledger._metadata import MOMENTS
from heapledger.command import _text
from heapledger.command._arguments import at_least_one, frames
from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any, NoReturn

    from heapledger import Snapshot, Statistic, StatisticDiff, Traceback
    from heapledger._types import FrameTuple
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

NFRAME = 25


class Line:
    """The memory of one line, in a cell or anywhere else."""

    def __init__(self, place: FrameTuple) -> None:
        self.place = place  # (file, line)
        self.peak = self.allocated = self.leaked = self.blocks = 0

    @property
    def source(self) -> str:
        return linecache.getline(*self.place).rstrip("\n")


def _line_of_cell(traceback: Traceback, name: str) -> FrameTuple | None:
    """Return the newest frame in the cell, or None."""
    for frame in reversed(traceback):
        if frame.filename == name:
            return name, frame.lineno
    return None


def lines_of_cell(t: trace, name: str) -> list[Line]:
    """Return a Line for each line of the cell that held or allocated memory, the largest at the peak first."""
    lines: dict[FrameTuple, Line] = {}
    sums: list[tuple[str, Statistic | StatisticDiff, int]] = [
        ("peak", difference, difference.size_diff) for difference in t.peak.compare_to(t.start, "traceback")
    ]
    sums += [("allocated", statistic, statistic.size) for statistic in t.allocated.statistics("traceback")]
    sums += [("leaked", statistic, statistic.size) for statistic in t.leaked.statistics("traceback")]
    for what, group, size in sums:
        place = _line_of_cell(group.traceback, name)
        if place is None or size <= 0:
            continue
        line = lines.setdefault(place, Line(place))
        setattr(line, what, getattr(line, what) + size)
        if what == "allocated":
            line.blocks += group.count
    return sorted(lines.values(), key=lambda line: (-line.peak, -line.allocated, line.place))


class Table:
    """The same rows as text and as HTML."""

    def __init__(
        self, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], graph: str | None = None
    ) -> None:
        self._title = title
        self._heads = heads
        self._rows = rows  # numbers as text, then the line and its source
        self._graph = graph  # a page, or None

    def __repr__(self) -> str:
        rows = ["".join(f"{cell:>12}" for cell in row[:-2]) + f"  {row[-2]}  {row[-1]}" for row in self._rows]
        return "\n".join([self._title, "".join(f"{head:>12}" for head in self._heads) + "  line", *rows])

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{html.escape(head)}</th>" for head in (*self._heads, "line", ""))
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[:-1])
            + f"<td style='text-align: left'><code>{html.escape(row[-1])}</code></td></tr>"
            for row in self._rows
        )
        text = f"<p>{html.escape(self._title)}</p><table><tr>{heads}</tr>{rows}</table>"
        if self._graph is not None:
            # The page has its own origin, and no rights in the notebook.
            page = html.escape(self._graph, quote=True)
            style = "width: 100%; height: 600px; border: 0"
            text += f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'
        return text


def _blocks(count: int, sign: str = "") -> str:
    return f"{count:{sign}} {'block' if abs(count) == 1 else 'blocks'}"


def _cell_table(t: trace, name: str, most: int, graph: str | None) -> Table:
    lines = lines_of_cell(t, name)
    total = Line(("", 0))
    for line in lines:
        for what in ("peak", "allocated", "leaked", "blocks"):
            setattr(total, what, getattr(total, what) + getattr(line, what))
    title = (
        f"peak +{_text.size(total.peak)}, allocated {_text.size(total.allocated)}"
        f" in {_blocks(total.blocks)}, left behind {_text.size(total.leaked)}"
    )
    rows = [
        (
            _text.size(line.peak),
            _text.size(line.allocated),
            str(line.blocks),
            _text.size(line.leaked),
            str(line.place[1]),
            line.source,
        )
        for line in lines[:most]
    ]
    return Table(title, ("peak", "allocated", "blocks", "left behind"), rows, graph)


def _file_of_magic() -> str | None:
    """Return the file of the cell that called a magic. IPython's work for the magic does not count for the cell."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else None


def _graph_of(t: trace, name: str) -> str:
    """Return the interactive report of a trace of the cell in the file `name`, as a page."""
    from heapledger.command._kinds import Kinds
    from heapledger.report import _data, _page, _subject

    capture = _make_capture(t.leaked, t.peak, t.allocated)
    metadata = [capture.metadata]
    subject = _subject.Subject("one", [capture], ["cell"], MOMENTS, is_long=False, metadata=metadata)
    # What IPython allocates around the cell is folded, like all libraries.
    kinds = Kinds(metadata, {_file_of_magic() or "": "other", name: "own"})
    options = _data.Options(kinds, fold="libraries")
    return _page.make("cell - heapledger", _data.to_text(_data.encode(subject, options)))


def _kinds_of_cells() -> dict[str, str]:
    """Outside Jupyter, the names of cells are not names of files."""
    return {name: "own" for name in linecache.cache if name.startswith("<ipython-input-")}


def _growth_table(now: Snapshot, before: Snapshot, most: int) -> Table:
    from heapledger.command import _folding, _groups, _names
    from heapledger.command._kinds import Kinds

    folding = _folding.Folding("libraries", Kinds([now.metadata], _kinds_of_cells()))
    grown, _ = _groups.differences(before, now, "line", False, sys.maxsize, folding)
    grown.sort(key=lambda one: _names.is_folded(one.key))  # the memory of IPython and of imports comes last
    size = sum(difference.size_diff for difference in grown)
    count = sum(difference.count_diff for difference in grown)
    rows = [
        (
            _text.size(difference.size_diff, sign=True),
            f"{difference.count_diff:+}",
            _names.label("line", difference.key),
            "" if _names.is_folded(difference.key) else linecache.getline(*difference.key).strip(),
        )
        for difference in grown[:most]
    ]
    title = f"since the last time: {_text.size(size, sign=True)}, {_blocks(count, '+')}"
    return Table(title, ("size", "blocks"), rows)


def _raise_shown(shell: InteractiveShell, result: ExecutionResult) -> NoReturn:
    """Raise the error that IPython has shown for a cell, so that the outer cell fails too, without showing it again."""
    error = result.error_before_exec or result.error_in_exec
    show = shell.showtraceback

    def show_others(*args: Any, **kwargs: Any) -> None:
        if sys.exc_info()[1] is not error:
            show(*args, **kwargs)

    def restore(*_: object) -> None:
        shell.showtraceback = show  # type: ignore[method-assign]
        shell.events.unregister("post_run_cell", restore)

    shell.showtraceback = show_others  # type: ignore[method-assign]
    shell.events.register("post_run_cell", restore)
    assert error is not None
    raise error


@magics_class
class HeapledgerMagics(Magics):
    """%%heapledger and %heapledger_diff."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._before: Snapshot | None = None  # the snapshot of the last %heapledger_diff
        self._started = False

    @magic_arguments()
    @argument("-n", "--nframe", type=frames, default=NFRAME, help=f"how many frames of a traceback to keep ({NFRAME})")
    @argument("-t", "--top", type=at_least_one, default=10, help="lines to list (10)")
    @argument("--no-graph", action="store_true", help="leave out the graph")
    @cell_magic
    def heapledger(self, line: str, cell: str) -> None:
        """Run the cell and show what its lines held at the peak, what they allocated, and what they left behind."""
        options = parse_argstring(self.heapledger, line)
        shell = self.shell
        assert shell is not None
        transformed = shell.transform_cell(cell)
        if shell.should_run_async(cell, transformed_cell=transformed):
            raise UsageError("a magic cannot await; put `with heapledger.trace() as t:` around it instead")
        name = shell.compile.get_code_name(cell, transformed, shell.execution_count)
        with trace(options.nframe) as t:
            result = shell.run_cell(cell, store_history=False)
        is_known = t._leaked is not None
        if is_known and result.error_before_exec is None:
            graph = None if options.no_graph or not result.success else _graph_of(t, name)
            display(_cell_table(t, name, options.top, graph))
        if not result.success:
            _raise_shown(shell, result)
        if not is_known:
            raise UsageError("the memory of this cell is unknown because the cell stopped the tracer")

    @magic_arguments()
    @argument("what", nargs="?", choices=("stop",), help="forget the last comparison and stop tracing")
    @argument("-t", "--top", type=at_least_one, default=10, help="lines to list (10)")
    @line_magic
    def heapledger_diff(self, line: str) -> None:
        """Show what has grown and shrunk since the last %heapledger_diff. The first one starts tracing."""
        options = parse_argstring(self.heapledger_diff, line)
        if options.what == "stop":
            if self._started:
                stop()
            self._before, self._started = None, False
            return
        if not is_tracing():
            start(NFRAME)
            self._before, self._started = None, True
        now = take_snapshot()
        if self._before is not None:
            display(_growth_table(now, self._before, options.top))
        else:
            print("tracing is on; the next %heapledger_diff shows what has changed since now")
        self._before = now


def load(shell: InteractiveShell) -> None:
    shell.register_magics(HeapledgerMagics)
