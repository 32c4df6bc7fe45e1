"""What the peers trace: `program.py NAME TIMES [DUMP]` runs a workload TIMES times and prints its checksum.

DUMP is for the standard library's tracer, which has no command that would write what it found.
"""

import sys

import workloads


def live():
    """Many blocks of many sizes that live together: what a tracer needs for a live block is seen here."""
    return sum(len(block) for block in [bytes(1 + i % 500) for i in range(400_000)])


def nothing():
    """What start and end of a tool take by themselves."""
    return 0


PROGRAMS = {**workloads.WORKLOADS, "live": live, "nothing": nothing}


def main():
    name, times, *dump = sys.argv[1:]
    for _ in range(int(times)):
        checksum = workloads.deep(workloads.DEPTH, PROGRAMS[name])
    print(checksum)
    for path in dump:
        import tracemalloc

        tracemalloc.take_snapshot().dump(path)


if __name__ == "__main__":
    main()
