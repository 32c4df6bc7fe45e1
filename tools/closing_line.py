"""Add up all results in build/results and print them as pytest's closing line, which is what CI reads.

    python3 tools/closing_line.py EXIT_STATUS SECONDS

A run that ended badly without a failed test (lint, a build, an interpreter that is missing) counts as one error.
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "build" / "results"


def outcome(case):
    for name, word in (("failure", "failed"), ("error", "error"), ("skipped", "skipped")):
        if case.find(name) is not None:
            return word
    return "passed"


def main():
    status, seconds = int(sys.argv[1]), float(sys.argv[2])
    counts = {"failed": 0, "passed": 0, "skipped": 0, "error": 0}
    for path in sorted(RESULTS.glob("*.xml")):
        for case in ElementTree.parse(path).iter("testcase"):
            counts[outcome(case)] += 1
    if status != 0 and counts["failed"] + counts["error"] == 0:
        counts["error"] = 1
    text = ", ".join(f"{number} {word}" for word, number in counts.items() if number) or "no tests ran"
    print(f" {text} in {seconds:.2f}s ".center(80, "="))


if __name__ == "__main__":
    main()
