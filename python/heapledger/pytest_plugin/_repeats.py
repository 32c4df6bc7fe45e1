"""Running a test again. Its first run in a process also does what happens only once: imports, caches, warming up.

Only the smallest need of all runs belongs to the test itself. What is left behind is compared line by line: a leak
leaves something behind in every run, and this is still there after later runs.

The whole test runs again, with its fixtures, as with pytest-rerunfailures. Only the reports of one run are passed on:
those of the first run, or those of the last run if that one fails because of its memory.
"""

from __future__ import annotations

import time

import pytest
from _pytest.runner import CallInfo, runtestprotocol
from heapledger import trace
from heapledger.pytest_plugin._doctests import keep_globals
from heapledger.pytest_plugin._subtests import Subtests
from heapledger.pytest_plugin._threads import WHOLE_STACKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from heapledger._types import FrameTuple
    from heapledger.pytest_plugin._measure import Measurement

    _Amounts = tuple[int, int]
    _ByLine = dict[FrameTuple, _Amounts]

_RUNS = pytest.StashKey["Runs"]()
_WAITS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # seconds; servers keep a connection for 5 after the last request


class Runs:
    """The runs of one test so far."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.number = 0
        self.least: dict[str, int] = {}  # of each number
        self.left: _ByLine = {}  # the least that a run has left, for lines that left some in every run
        self._measurements: list[Measurement] = []
        self._waits = iter(_WAITS)
        self.had_other_threads = False  # in any run
        self.subtests_passed = True  # in the first run
        self.is_repeatable = True
        self.wants_more = False
        self.exceeds = False

    @property
    def is_first(self) -> bool:
        return self.number == 0

    @property
    def is_last(self) -> bool:
        return self.number == self._most - 1

    def add(self, measurement: Measurement) -> None:
        self.number += 1
        self.wants_more = False
        self.had_other_threads |= measurement.had_other_threads()
        numbers, left = measurement.numbers(own=True), measurement.left_by_line()
        if self.number == 1:
            self.least, self.left = numbers, left
        else:
            self.least = {name: min(number, numbers[name]) for name, number in self.least.items()}
            self._lower(left)
            if self.left:  # seldom
                self._lower_by_growth(measurement.alive_at_end)
        if self.number < self._most:
            self._measurements.append(measurement)

    def wait(self, measurement: Measurement) -> bool:
        """Other threads may still work for the test. Wait for them, longer each time; False if that was enough."""
        seconds = next(self._waits, None)
        if self.number == 1 or seconds is None:
            return False
        time.sleep(seconds)
        self._lower_by_growth(measurement.alive_now())
        return True

    def _lower(self, left: _ByLine) -> None:
        """Lines that are not in `left` have left nothing behind."""
        least = {}
        for line, (size, count) in self.left.items():
            other = left.get(line, (0, 0))
            least[line] = min(size, other[0]), min(count, other[1])
        self.left = {line: sums for line, sums in least.items() if any(sums)}
        for i, name in enumerate(("leaked", "leaked_blocks")):
            self.least[name] = sum(sums[i] for sums in self.left.values())

    def _lower_by_growth(self, alive: _ByLine) -> None:
        """What is alive has grown with every run, compared with any of the earlier runs."""
        for number, earlier in enumerate(self._measurements[: self.number - 1], 1):
            before, runs_since = earlier.alive_at_end, self.number - number
            self._lower({line: _growth(before.get(line), sums, runs_since) for line, sums in alive.items()})

    def want_more(self) -> bool:
        """Ask for another run; False if there have been enough."""
        self.wants_more = self.number < self._most
        return self.wants_more

    def as_dict(self) -> dict[str, Any]:
        """What the baseline must know, in a form that pytest-xdist can carry."""
        return {
            "numbers": self.least,
            "had other threads": self.had_other_threads,
            "subtests passed": self.subtests_passed,
            "is repeatable": self.is_repeatable,
        }


def _growth(before: _Amounts | None, now: _Amounts, runs: int) -> _Amounts:
    """(bytes, blocks) that each of the runs has added."""
    size, count = before or (0, 0)
    return max(0, now[0] - size) // runs, max(0, now[1] - count) // runs


def runs_of(item: pytest.Item) -> Runs | None:
    """None: the test has no budget."""
    return item.stash.get(_RUNS, None)


def _is_run_once(item: pytest.Item) -> bool:
    """pytest-rerunfailures repeats failing tests in its own way. A repetition must not enter a debugger."""
    config = item.config
    if config.getoption("usepdb", False):
        return True
    if not config.pluginmanager.hasplugin("rerunfailures"):
        return False
    return bool(config.getoption("reruns", None) or item.get_closest_marker("flaky"))


def _run_once(item: pytest.Item, is_first: bool) -> tuple[list[pytest.TestReport], bool, bool]:
    """(reports, whether its subtests have passed, whether everything has)"""
    subtests = Subtests(are_reported=is_first)
    with subtests.watched(item.session):
        # Fixtures of the class or the module stay until the last run is over, as between two tests.
        reports = runtestprotocol(item, nextitem=item.parent, log=False)  # type: ignore[arg-type]
    return reports, subtests.have_passed, subtests.have_passed and all(report.passed for report in reports)


def _run_all(item: pytest.Item, runs: Runs) -> list[pytest.TestReport]:
    """The reports to pass on."""
    give_globals_back = keep_globals(item)
    reports, runs.subtests_passed, passed = _run_once(item, is_first=True)
    while passed and runs.wants_more and runs.is_repeatable:
        give_globals_back()
        again, _, passed_again = _run_once(item, is_first=False)
        if runs.exceeds:
            reports = again
        else:
            runs.is_repeatable = passed_again
        del again  # or the next run would find it alive
    return reports


def run(item: pytest.Item, nextitem: pytest.Item | None, most: int) -> bool | None:
    """For pytest_runtest_protocol: run the test as often as its Runs want, but at most `most` times."""
    if most == 1 or _is_run_once(item):
        item.stash[_RUNS] = Runs(1)
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runs = item.stash[_RUNS] = Runs(most)
    with trace(WHOLE_STACKS):  # the same ledger for all runs: one run may free what an earlier one has left
        reports = _run_all(item, runs)
    call = CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), "teardown")
    if call.excinfo is not None:
        reports[-1] = item.ihook.pytest_runtest_makereport(item=item, call=call)
    for report in reports:
        if report.when == "call" and runs.least:
            vars(report)["heapledger_runs"] = runs.as_dict()
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    del item.stash[_RUNS]  # an item lives as long as the session, and snapshots are large
    return True
