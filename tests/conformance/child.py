"""The process that run.py starts, where heapledger is enabled: run the interpreter's tests, write down the results.

The one argument is the file for the results.
"""

import json
import pathlib
import subprocess
import sys
import unittest

import heapledger


class Recorder(unittest.TestResult):
    """Keeps [test, outcome, text] for each test; a test fails once, however many of its parts do."""

    def __init__(self):
        super().__init__()
        self.results = []
        self.problems = []

    def startTest(self, test):
        super().startTest(test)
        self.problems = []
        self.skipped_itself = None

    def stopTest(self, test):
        super().stopTest(test)
        if self.problems:
            outcome, text = "failed", "\n".join(self.problems)
        elif self.skipped_itself is not None:
            outcome, text = "skipped itself", self.skipped_itself
        else:
            outcome, text = "passed", ""
        self.results.append([short_name(test), outcome, text])

    def addFailure(self, test, err):
        self.problems.append(self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self.problems.append(self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.problems.append(self._exc_info_to_string(err, test))

    def addUnexpectedSuccess(self, test):
        self.problems.append("was expected to fail")

    def addSkip(self, test, reason):
        self.skipped_itself = reason


def short_name(test):
    return ".".join(test.id().split(".")[-2:])


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def public_names():
    """The names that the standard library's module defines."""
    heapledger.uninstall()
    try:
        import tracemalloc

        return [
            name
            for name, value in vars(tracemalloc).items()
            if not name.startswith("_") and getattr(value, "__module__", None) in ("tracemalloc", "_tracemalloc")
        ]
    finally:
        heapledger.install()


def check_what_is_tested():
    """The tests and the interpreters that they start must meet heapledger, or all of this means nothing."""
    from test import test_tracemalloc

    names = public_names()
    if len(names) < 15:
        sys.exit(f"these cannot be all public names of tracemalloc: {names}")
    for name in names:
        if getattr(test_tracemalloc.tracemalloc, name) is not getattr(heapledger, name):
            sys.exit(f"the tests would not test heapledger: their tracemalloc.{name} is another")
    for options in (["-I"], ["-I", "-X", "tracemalloc"]):
        command = [sys.executable, *options, "-c", "import tracemalloc; print(tracemalloc.__name__)"]
        found = subprocess.check_output(command, text=True).strip()
        if found != "heapledger":
            sys.exit(f"the tests' children would not run heapledger: with {options} they run {found}")


def load_tests():
    from test import test_tracemalloc

    return unittest.TestSuite(flatten(unittest.defaultTestLoader.loadTestsFromModule(test_tracemalloc)))


def deeper(frames, function, *arguments):
    """Call the function with this many frames more below it: some tests rely on the depth of their usual runner."""
    return deeper(frames - 1, function, *arguments) if frames > 1 else function(*arguments)


def main():
    check_what_is_tested()
    if "breakage" in sys.modules:
        sys.modules["breakage"].pretend_stopped()
    recorder = Recorder()
    deeper(10, load_tests().run, recorder)
    pathlib.Path(sys.argv[1]).write_text(json.dumps(recorder.results))


if __name__ == "__main__":
    main()
