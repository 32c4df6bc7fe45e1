"""Subtests: pytest reports them while the test runs, and keeps the reports.

So they are not part of the test's memory, and the reports of a repetition must not be passed on.
"""

from __future__ import annotations

import contextlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import pytest

try:
    from _pytest.subtests import failed_subtests_key
except ImportError:  # before pytest 9
    failed_subtests_key = None  # type: ignore[assignment]

_FILE = os.path.join("_pytest", "subtests.py")


def is_reporting(filename: str, function: str | None) -> bool:
    """Whether this frame of pytest reports a subtest, of unittest or of the fixture `subtests`."""
    return function == "addSubTest" or filename.endswith(_FILE)


class _Hooks:
    """The hooks that the test's own code calls. Reports of subtests come through here."""

    def __init__(self, hooks: Any, subtests: Subtests) -> None:
        self._hooks = hooks
        self._subtests = subtests

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hooks, name)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._subtests.have_passed &= not report.failed
        if self._subtests.are_reported:
            self._hooks.pytest_runtest_logreport(report=report)


class Subtests:
    """Those of one run of a test."""

    def __init__(self, are_reported: bool) -> None:
        self.are_reported = are_reported
        self.have_passed = True

    @contextlib.contextmanager
    def watched(self, session: pytest.Session) -> Iterator[None]:
        """While the test runs."""
        hooks_for = session.gethookproxy
        vars(session)["gethookproxy"] = lambda path: _Hooks(hooks_for(path), self)
        failures = {} if failed_subtests_key is None else session.config.stash[failed_subtests_key]
        before = dict(failures)
        try:
            yield
        finally:
            del vars(session)["gethookproxy"]
            if not self.are_reported:
                failures.clear()
                failures.update(before)
