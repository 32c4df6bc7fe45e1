"""Running a test again, because its first run in a process also does what is done once: imports, caches, warming up.

Only the least of what the runs need is the test's own. The whole test is run again, with its fixtures, as
pytest-rerunfailures does it, and only the reports of one run are handed on: those of the first, or those of the last if
that is the one that fails for its memory.
"""

import pytest
from _pytest.runner import CallInfo, runtestprotocol
from heapledger.pytest_plugin._doctests import keep_globals

_RUNS = pytest.StashKey()


class Runs:
    """The runs of one test so far."""

    def __init__(self, most):
        self._most = most
        self.number = 0
        self.least = None  # of each number
        self.had_other_threads = False  # in any run
        self.is_repeatable = True
        self.wants_more = False
        self.exceeds = False

    @property
    def is_first(self):
        return self.number == 0

    @property
    def is_last(self):
        return self.number == self._most - 1

    def add(self, numbers, had_other_threads):
        self.number += 1
        self.wants_more = False
        self.had_other_threads |= had_other_threads
        if self.least is None:
            self.least = numbers
        else:
            self.least = {name: min(number, numbers[name]) for name, number in self.least.items()}

    def want_more(self):
        """Ask for another run; False if there have been enough."""
        self.wants_more = self.number < self._most
        return self.wants_more

    def as_dict(self):
        """What the baseline is to know, as pytest-xdist can carry it."""
        return {
            "numbers": self.least,
            "had other threads": self.had_other_threads,
            "is repeatable": self.is_repeatable,
        }


def runs_of(item):
    """None: the test has no budget."""
    return item.stash.get(_RUNS, None)


def _is_run_once(item):
    """pytest-rerunfailures repeats failing tests in its own way; a debugger is not to be entered by a repetition."""
    config = item.config
    if config.getoption("usepdb", False):
        return True
    if not config.pluginmanager.hasplugin("rerunfailures"):
        return False
    return bool(config.getoption("reruns", None) or item.get_closest_marker("flaky"))


def _passed(reports):
    return all(report.passed for report in reports)


def run(item, nextitem, most):
    """For pytest_runtest_protocol: run the test as often as its Runs want, but `most` times at the most."""
    if most == 1 or _is_run_once(item):
        item.stash[_RUNS] = Runs(1)
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runs = item.stash[_RUNS] = Runs(most)
    give_globals_back = keep_globals(item)
    # What belongs to the class or the module stays until the last run is over, as it does between two tests.
    reports = runtestprotocol(item, nextitem=item.parent, log=False)
    while runs.wants_more and runs.is_repeatable and _passed(reports):
        give_globals_back()
        again = runtestprotocol(item, nextitem=item.parent, log=False)
        if runs.exceeds:
            reports = again
        else:
            runs.is_repeatable = _passed(again)
    call = CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), "teardown")
    if call.excinfo is not None:
        reports[-1] = item.ihook.pytest_runtest_makereport(item=item, call=call)
    for report in reports:
        if report.when == "call" and runs.least is not None:
            report.heapledger_runs = runs.as_dict()
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
