"""What measuring costs: networkx's tests of its classes by pytest alone, with --heapledger and with --memray, by turns.

    python tests/once/costs.py [ROUNDS]

Processor time, because that is the same on a busy machine.
"""

import re
import resource
import statistics
import sys

from suites import SUITES, run

WAYS = {"pytest": (), "pytest --heapledger": ("--heapledger",), "pytest --memray": ("--memray",)}


def seconds(options):
    """(processor time, number of tests)"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    status, text = run(SUITES["networkx"], *options, others=("memray",) if "--memray" in options else ())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status != 0:
        sys.exit(text)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(re.search(r"(\d+) passed", text)[1])


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    times = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, options in WAYS.items():
            needed, tests = seconds(options)
            times[way].append(needed)
    plain = statistics.median(times["pytest"])
    for way, needed in times.items():
        median = statistics.median(needed)
        each = 1000 * (median - plain) / tests
        print(f"{way:20} {median:6.1f} s  x{median / plain:.2f}  +{each:.1f} ms a test ({tests} tests)", flush=True)


if __name__ == "__main__":
    main()
