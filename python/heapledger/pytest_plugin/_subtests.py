"""Subtests: pytest reports them while the test runs, and keeps the reports.

So they are not part of the test's memory, and the reports of a repetition must not be passed on.
"""

import contextlib
import os

try:
    from _pytest.subtests import failed_subtests_key
except ImportError:  # before pytest 9
    failed_subtests_key = None

_FILE = os.path.join("_pytest", "subtests.py")


def is_reporting(filename, function):
    """Whether this frame of pytest reports a subtest, of unittest or of the fixture `subtests`."""
    return function == "addSubTest" or filename.endswith(_FILE)


class _Hooks:
    """The hooks that the test's own code calls. Reports of subtests come through here."""

    def __init__(self, hooks, subtests):
        self._hooks = hooks
        self._subtests = subtests

    def __getattr__(self, name):
        return getattr(self._hooks, name)

    def pytest_runtest_logreport(self, report):
        self._subtests.have_passed &= not report.failed
        if self._subtests.are_reported:
            self._hooks.pytest_runtest_logreport(report=report)


class Subtests:
    """Those of one run of a test."""

    def __init__(self, are_reported):
        self.are_reported = are_reported
        self.have_passed = True

    @contextlib.contextmanager
    def watched(self, session):
        """While the test runs."""
        hooks_for = session.gethookproxy
        session.gethookproxy = lambda path: _Hooks(hooks_for(path), self)
        failures = {} if failed_subtests_key is None else session.config.stash[failed_subtests_key]
        before = dict(failures)
        try:
            yield
        finally:
            del session.gethookproxy
            if not self.are_reported:
                failures.clear()
                failures.update(before)
