"""A progress bar on stderr for long work. It appears only on a terminal, and disappears at the end."""

from __future__ import annotations

import contextlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID


class _Silent:
    """Shows nothing: the work is short, or nobody watches."""

    def advance(self, amount: int) -> None:
        pass


class _Shown:
    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar = bar
        self._task = task

    def advance(self, amount: int) -> None:
        self._bar.advance(self._task, amount)


@contextlib.contextmanager
def show(what: str, total: int | None, is_long: bool) -> Iterator[_Silent | _Shown]:
    """In the block: an object with advance(amount), up to `total`. `total` is None if it is unknown."""
    if not is_long or sys.stderr is None or not sys.stderr.isatty():
        yield _Silent()
        return
    # Only now: importing rich takes longer than most commands.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Shown(bar, bar.add_task(what, total=total))
