"""The process that run.py starts: swap tracemalloc for heapledger, run the interpreter's tests, write down the results.

The one argument is a request in JSON: the file for the results, the tests to leave out, whether to break the engine.
"""

import json
import pathlib
import sys
import tracemalloc
import unittest

import heapledger

# Names, not values: install() puts others in their place.
PUBLIC_NAMES = [
    name
    for name, value in vars(tracemalloc).items()
    if not name.startswith("_") and getattr(value, "__module__", None) in ("tracemalloc", "_tracemalloc")
]


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


def load_tests(skips):
    """The interpreter's tests without those in `skips`, after checking that they meet heapledger."""
    from test import test_tracemalloc

    for name in PUBLIC_NAMES:
        if getattr(test_tracemalloc.tracemalloc, name) is not getattr(heapledger, name):
            sys.exit(f"the tests would not test heapledger: their tracemalloc.{name} is another")
    tests = list(flatten(unittest.defaultTestLoader.loadTestsFromModule(test_tracemalloc)))
    unknown = set(skips) - {short_name(test) for test in tests}
    if unknown:
        sys.exit(f"skips.toml names tests that this interpreter does not have: {', '.join(sorted(unknown))}")
    return [test for test in tests if short_name(test) not in skips]


def deeper(frames, function, *arguments):
    """Call the function with this many frames more below it: some tests rely on the depth of their usual runner."""
    return deeper(frames - 1, function, *arguments) if frames > 1 else function(*arguments)


def main():
    request = json.loads(sys.argv[1])
    heapledger.install()
    if request["broken"]:
        import breakage

        breakage.break_engine()
    recorder = Recorder()
    deeper(10, unittest.TestSuite(load_tests(request["skips"])).run, recorder)
    pathlib.Path(request["results"]).write_text(json.dumps(recorder.results))


if __name__ == "__main__":
    main()
