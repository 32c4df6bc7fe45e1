"""The file of budgets: what each test needed when the file was written.

JSON, sorted, one line for each test, so that a change shows in a diff:

    {"heapledger baseline": 1, "cpython-3.13": {"tests/test_a.py::test_b": {"peak": 5, ...}, ...}, ...}

Numbers differ between versions of the interpreter, so each version has its own section.
"""

from __future__ import annotations

import json
import math
import sys

import pytest
from heapledger import _files
from heapledger.command._text import plural
from heapledger.pytest_plugin._lines import line_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    from heapledger import Statistic, StatisticDiff
    from heapledger.pytest_plugin._measure import Measurement
    from heapledger.pytest_plugin._repeats import Runs

    _Numbers = dict[str, int]
    _Statistics = Sequence[Statistic | StatisticDiff]

NUMBERS = ("peak", "allocated", "blocks", "leaked", "leaked_blocks")
_NAMES = {
    "peak": "peak above the start, in bytes",
    "allocated": "bytes allocated",
    "blocks": "blocks allocated",
    "leaked": "bytes left behind",
    "leaked_blocks": "blocks left behind",
}
# How much more an unchanged test may need in another process: percent, plus a number.
# docs/pytest.md says why.
_SLACK = {"peak": (5, 4096), "allocated": (5, 4096), "blocks": (5, 32), "leaked": (5, 4096), "leaked_blocks": (0, 0)}
_RUNS_OF_NEW = 3  # of a test that has no budget yet
_PATIENCE = 3  # tests that fail although we waited for other threads: then the program has changed
_LEFT_BEHIND = ("leaked_blocks", "leaked")
_MOST_TELLING_FIRST = ("leaked_blocks", "leaked", "peak", "blocks", "allocated")
_OTHER_THREADS = "other threads"  # in an entry if there were some: then only what is left behind is compared
_MARK = "heapledger baseline"
_INTERPRETER = "%s-%d.%d" % (sys.implementation.name, *sys.version_info[:2])


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and all(type(entry.get(name)) is int for name in NUMBERS)


def _lines(measurement: Measurement, runs: Runs, exceeded: dict[str, str]) -> _Statistics:
    """The statistics that explain most. Those of what is left behind come first, because they are fewest."""
    if exceeded.keys() & set(_LEFT_BEHIND):
        return [one for one in measurement.leaked(own=True)[-1] if line_of(one) in runs.left]
    if exceeded.keys() & {"allocated", "blocks"}:
        return measurement.allocated(own=True)
    return measurement.growth_at_peak(own=True)


class Baseline:
    """The budgets of this interpreter's version."""

    def __init__(self, path: Path, tolerance: float | None, update: bool) -> None:
        """`tolerance`: allowed excess in percent, instead of the default; None: the default."""
        self._path = path
        self._slack = _SLACK if tolerance is None else dict.fromkeys(NUMBERS, (tolerance, 0))
        self._update = update
        self._file = self._read()
        self._budgets = self._file.setdefault(_INTERPRETER, {})
        self._measured: dict[str, _Numbers] = {}  # of tests that have passed
        self._compared: set[str] = set()  # with their budgets, whether they have passed or not
        self._unrepeatable: list[str] = []
        self._patience = _PATIENCE

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if not self._path.parent.is_dir():
                raise pytest.UsageError(f"--heapledger-baseline: there is no folder {self._path.parent}") from None
            return {_MARK: 1}
        except (OSError, ValueError) as error:
            raise pytest.UsageError(f"{self._path}: {error}") from None
        if not isinstance(content, dict) or content.get(_MARK) != 1:
            raise pytest.UsageError(f"{self._path}: is not a baseline of this version of heapledger")
        for budgets in (budgets for name, budgets in content.items() if name != _MARK):
            if not isinstance(budgets, dict) or not all(map(_is_entry, budgets.values())):
                raise pytest.UsageError(f"{self._path}: is damaged")
        return content

    def _budget(self, nodeid: str) -> _Numbers | None:
        """What the test is compared with, or None."""
        return None if self._update else self._budgets.get(nodeid)

    def _allowed(self, name: str, budget: int) -> float:
        percent, more = self._slack[name]
        return budget * (1 + percent / 100) + more

    def doubtful(self, nodeid: str, runs: Runs) -> float:
        """What a run may leave behind without a closer look. Later runs always get one."""
        if not runs.is_first or runs.is_last:
            return 0
        budget = self._budget(nodeid)
        return math.inf if budget is None else budget["leaked"]

    def _exceeded(self, budget: _Numbers, runs: Runs) -> dict[str, str]:
        """{name: sentence}, the most telling number first."""
        least = runs.least
        beside_threads = runs.had_other_threads or _OTHER_THREADS in budget
        return {
            name: f"{_NAMES[name]}: {least[name]:,}, {budget[name]:,} in the baseline ({least[name] - budget[name]:+,})"
            for name in (_LEFT_BEHIND if beside_threads else _MOST_TELLING_FIRST)
            if least[name] > self._allowed(name, budget[name])
        }

    def _wait(self, budget: _Numbers, runs: Runs, measurement: Measurement) -> dict[str, str]:
        """What is still exceeded after other threads had time to finish their work for the test."""
        exceeded = self._exceeded(budget, runs)
        if self._patience == 0 or len(sys._current_frames()) == 1 or exceeded.keys() - set(_LEFT_BEHIND):
            return exceeded
        while exceeded and runs.wait(measurement):
            exceeded = self._exceeded(budget, runs)
        self._patience -= bool(exceeded)
        return exceeded

    def offences(self, nodeid: str, runs: Runs, measurement: Measurement) -> list[tuple[str, _Statistics]]:
        """[(sentence, statistics)]: at most one, and only if no further run could show that the test needs less."""
        budget = self._budget(nodeid)
        if budget is None:
            if runs.number < _RUNS_OF_NEW:
                runs.want_more()
            return []
        if not self._exceeded(budget, runs) or runs.want_more():
            return []
        exceeded = self._wait(budget, runs, measurement)
        if not exceeded:
            return []
        runs.exceeds = True
        return [("\n  ".join(exceeded.values()), _lines(measurement, runs, exceeded))]

    def note(self, nodeid: str, runs: dict[str, Any], passed: bool) -> None:
        """Take the numbers of a test that was measured here or in a worker, from Runs.as_dict."""
        if not runs["is repeatable"]:
            self._unrepeatable.append(nodeid)
            return
        if self._budget(nodeid) is not None:
            self._compared.add(nodeid)
        if passed and runs["subtests passed"]:
            threads = {_OTHER_THREADS: True} if runs["had other threads"] else {}
            self._measured[nodeid] = {**runs["numbers"], **threads}

    def _changes(self) -> dict[str, _Numbers]:
        return {
            nodeid: numbers
            for nodeid, numbers in self._measured.items()
            if self._update or nodeid not in self._budgets
            if self._budgets.get(nodeid) != numbers
        }

    def write(self) -> bool:
        """False: the file could not be written, and the summary says why."""
        changes = self._changes()
        self._summary = self._summarize(changes)
        if not changes:
            return True
        budgets = {**self._budgets, **changes}
        self._file[_INTERPRETER] = budgets
        try:
            _files.write(self._format().encode(), self._path)
        except OSError as error:
            self._summary = [f"{self._path} was not written: {error.strerror}"]
            return False
        return True

    def _format(self) -> str:
        """Like json.dumps, but with each test on one line."""
        sections = [f"{json.dumps(_MARK)}: 1"]
        for name in sorted(set(self._file) - {_MARK}):
            tests = sorted(self._file[name].items())
            lines = ",\n".join(f"    {json.dumps(test)}: {json.dumps(numbers)}" for test, numbers in tests)
            sections.append(f"{json.dumps(name)}: {{\n{lines}\n  }}")
        return "{\n  " + ",\n  ".join(sections) + "\n}\n"

    def _summarize(self, changes: dict[str, _Numbers]) -> list[str]:
        added = sum(nodeid not in self._budgets for nodeid in changes)
        lower = sum(
            nodeid in self._budgets
            and any(self._allowed(name, numbers[name]) < self._budgets[nodeid][name] for name in NUMBERS)
            for nodeid, numbers in self._measured.items()
        )
        compared = plural(len(self._compared), "test")
        texts = [f"{self._path}: {compared} compared, {added} added, {len(changes) - added} updated"]
        if lower and not self._update:
            need = plural(lower, "test") + (" needs" if lower == 1 else " need")
            texts.append(f"{need} less than the baseline says: --heapledger-update makes it the new one")
        if self._unrepeatable:
            texts.append("not compared, and not added, because they fail when they are repeated:")
            texts += [f"  {nodeid}" for nodeid in self._unrepeatable]
        return texts

    def summary(self) -> list[str]:
        return self._summary
