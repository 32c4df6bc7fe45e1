"""Do budgets hold on unchanged code, and is a leak found? With the test suites of real packages.

    python tests/once/budgets.py [--repeats N] [--quick] [PACKAGE ...]

For each package a baseline is written by one run. The repetitions are by turns of all tests, of a random quarter, and
both again in two workers of pytest-xdist; none may fail for its memory. Then an object is kept by each call of one
function, and some test must. Other failures of a suite are not ours, and do not count.
"""

import argparse
import pathlib
import re
import sys
import tempfile

from suites import SUITES, run

MODES = ("all", "some", "all in workers", "some in workers")


def failures(text):
    """{test: what is said of its memory}"""
    return dict(re.findall(r"^FAILED (.+?) - Failed: heapledger: (.*)$", text, re.MULTILINE))


class Experiment:
    def __init__(self, suite, folder, quick):
        self._suite = suite
        self._quick = quick
        self._baseline = f"--heapledger-baseline={pathlib.Path(folder, suite.name)}.json"
        self.added = 0

    def _run(self, mode, number, **variables):
        others = ()
        options = []
        if mode.startswith("some"):
            variables["HEAPLEDGER_PICK"] = str(number)
        if mode.endswith("workers"):
            others = ("xdist",)
            options = ["-n2"]
        variables["COLUMNS"] = "300"
        _, text = run(self._suite, self._baseline, *options, quick=self._quick, others=others, **variables)
        if " compared, " not in text:
            sys.exit(text)
        return text

    def record(self):
        text = self._run("all", 0)
        self.added = int(re.search(r"compared, (\d+) added", text)[1])

    def repeat(self, number):
        """What has failed."""
        return failures(self._run(MODES[number % len(MODES)], number))

    def plant(self):
        """The tests that find a leak, by what is left behind."""
        found = failures(self._run("all", 0, HEAPLEDGER_PLANT=self._suite.leak))
        return [test for test, sentence in found.items() if "left behind" in sentence]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="a few of the tests")
    parser.add_argument("package", nargs="*", default=sorted(SUITES), help="some of them only")
    arguments = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.package:
            experiment = Experiment(SUITES[name], folder, arguments.quick)
            experiment.record()
            for number in range(arguments.repeats):
                failed = experiment.repeat(number)
                wrong += len(failed)
                print(f"{name}: {MODES[number % len(MODES)]}: {len(failed)} failed", flush=True)
                for test, sentence in failed.items():
                    print(f"    {test}: {sentence}", flush=True)
            found = experiment.plant()
            wrong += not found
            print(f"{name}: {experiment.added} tests; the planted leak is found by {len(found)}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
