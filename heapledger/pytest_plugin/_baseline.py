"""The file of budgets: what each test needed when the file was written.

JSON, sorted, one line for each test, so that a change shows in a diff:

    {"heapledger baseline": 1, "cpython-3.13": {"tests/test_a.py::test_b": {"peak": 5, ...}, ...}, ...}

Numbers differ between versions of the interpreter, so each has its own.
"""

import json
import sys

import pytest
from heapledger import _files
from heapledger.command._text import plural

NUMBERS = ("peak", "allocated", "blocks", "leaked", "leaked_blocks")
_NAMES = {
    "peak": "peak above the start, in bytes",
    "allocated": "bytes allocated",
    "blocks": "blocks allocated",
    "leaked": "bytes left behind",
    "leaked_blocks": "blocks left behind",
}
# Names that C code looks up are freed when the interpreter's cache of lookups needs their place: which place, and so
# whether they are alive at the peak, depends on addresses. 59 bytes in one of 150 processes, where a file is opened.
_CHANCE = {"peak": 512}
_MARK = "heapledger baseline"
_INTERPRETER = "%s-%d.%d" % (sys.implementation.name, *sys.version_info[:2])


def _is_entry(entry):
    return isinstance(entry, dict) and all(type(entry.get(name)) is int for name in NUMBERS)


class Baseline:
    """The budgets of this interpreter's version."""

    def __init__(self, path, tolerance, update):
        self._path = path
        self._tolerance = tolerance
        self._update = update
        self._file = self._read()
        self._budgets = self._file.setdefault(_INTERPRETER, {})
        self._measured = {}  # of tests that have passed
        self._compared = set()  # with their budgets, whether they have passed or not

    def _read(self):
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if not self._path.parent.is_dir():
                raise pytest.UsageError(f"--heapledger-baseline: there is no folder {self._path.parent}") from None
            return {_MARK: 1}
        except (OSError, ValueError) as error:
            raise pytest.UsageError(f"{self._path}: {error}") from None
        if not isinstance(content, dict) or content.get(_MARK) != 1:
            raise pytest.UsageError(f"{self._path}: is no baseline of this version of heapledger")
        for budgets in (budgets for name, budgets in content.items() if name != _MARK):
            if not isinstance(budgets, dict) or not all(map(_is_entry, budgets.values())):
                raise pytest.UsageError(f"{self._path}: is damaged")
        return content

    def _budget(self, nodeid):
        """What the test is compared with, or None."""
        return None if self._update else self._budgets.get(nodeid)

    def offences(self, nodeid, numbers, measurement):
        """[(sentence, statistics)]: one at the most."""
        budget = self._budget(nodeid)
        if budget is None:
            return []
        exceeded = [
            f"{_NAMES[name]}: {numbers[name]:,}, {budget[name]:,} in the baseline ({numbers[name] - budget[name]:+,})"
            for name in NUMBERS
            if numbers[name] > budget[name] * (1 + self._tolerance / 100) + _CHANCE.get(name, 0)
        ]
        if not exceeded:
            return []
        return [("more than the baseline allows\n  " + "\n  ".join(exceeded), measurement.allocated())]

    def note(self, nodeid, numbers, passed):
        """A test that was measured, here or in a worker."""
        if self._budget(nodeid) is not None:
            self._compared.add(nodeid)
        if passed:
            self._measured[nodeid] = numbers

    def _changes(self):
        return {
            nodeid: numbers
            for nodeid, numbers in self._measured.items()
            if self._update or nodeid not in self._budgets
            if self._budgets.get(nodeid) != numbers
        }

    def write(self):
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

    def _format(self):
        """As json.dumps would, but each test on one line."""
        sections = [f"{json.dumps(_MARK)}: 1"]
        for name in sorted(set(self._file) - {_MARK}):
            tests = sorted(self._file[name].items())
            lines = ",\n".join(f"    {json.dumps(test)}: {json.dumps(numbers)}" for test, numbers in tests)
            sections.append(f"{json.dumps(name)}: {{\n{lines}\n  }}")
        return "{\n  " + ",\n  ".join(sections) + "\n}\n"

    def _summarize(self, changes):
        added = sum(nodeid not in self._budgets for nodeid in changes)
        lower = sum(
            nodeid in self._budgets
            and any(numbers[name] + _CHANCE.get(name, 0) < self._budgets[nodeid][name] for name in NUMBERS)
            for nodeid, numbers in self._measured.items()
        )
        compared = plural(len(self._compared), "test")
        texts = [f"{self._path}: {compared} compared, {added} added, {len(changes) - added} updated"]
        if lower and not self._update:
            need = plural(lower, "test") + (" needs" if lower == 1 else " need")
            texts.append(f"{need} less than the baseline says: --heapledger-update makes it the new one")
        return texts

    def summary(self):
        return self._summary
