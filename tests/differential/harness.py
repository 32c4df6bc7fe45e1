"""Run one program with both engines tracing at once; print how their traces compare, as JSON.

    python harness.py PROGRAM LIMIT [LIMIT ...]

Both engines see the same blocks at the same moment, so nothing that a program does by chance can differ. The program is
executed as a module and then its main(), whose result is kept alive. More limits: more rounds in this process; the
last round is for numbers, too.
"""

import gc
import json
import os
import sys
import time
import tracemalloc

import comparison
import heapledger

HERE = __file__
IGNORED_FOLDERS = (os.path.dirname(heapledger.__file__) + os.sep, tracemalloc.__file__)


def run(code, limit, numbers):
    """The traces of both engines, and what heapledger's own answers contradict each other in."""
    namespace = {"__name__": "program", "__file__": code.co_filename}
    start_theirs, start_ours = tracemalloc.start, heapledger.start
    clear_theirs, clear_ours = tracemalloc.clear_traces, heapledger.clear_traces
    take, traces_of_ours, traces_of_theirs = heapledger.take_snapshot, heapledger._get_traces, tracemalloc._get_traces
    gc.collect()  # also empties the freelists
    start_theirs(limit)
    start_ours(limit, numbers=numbers)
    # What was made between the two starts is known to one engine only.
    clear_theirs()
    clear_ours()
    exec(code, namespace)
    kept = namespace["main"]()
    wait_for_threads()
    gc.collect()  # empty freelists of numbers: what the engines make below does not take blocks from the program
    # No attribute is looked up between these: the interpreter's cache of methods may drop the last reference to a name.
    snapshot = take()
    ours = traces_of_ours()
    theirs = traces_of_theirs()
    problem = heapledger._validate()
    heapledger.stop()
    tracemalloc.stop()
    del kept
    measuring = {(HERE, run.__code__.co_firstlineno + offset) for offset in MEASURING_LINES}
    problems = [] if problem is None else [f"_validate: {problem}"]
    problems += statistics_differ(snapshot)
    return without(ours, measuring), without(theirs, measuring), problems, namespace


def wait_for_threads():
    """A thread that was joined may still be freeing its state."""
    while len(os.listdir("/proc/self/task")) > 1:
        time.sleep(0.001)


def without(traces, places):
    """Leave out what the engines made for their answers."""
    return [trace for trace in traces if trace[2][0] not in places and not trace[2][0][0].startswith(IGNORED_FOLDERS)]


def lines_of(function, *texts):
    import inspect

    source = inspect.getsource(function).splitlines()
    return [number for number, line in enumerate(source) if any(text in line for text in texts)]


MEASURING_LINES = lines_of(run, "snapshot = ", "ours = ", "theirs = ")


def statistics_differ(snapshot):
    """heapledger's own sums against the stdlib's over heapledger's traces."""
    plain = tracemalloc.Snapshot(snapshot.traces._traces, snapshot.traceback_limit)
    found = []
    for key_type in ("lineno", "traceback", "filename"):
        ours = sorted((tuple(map(str, one.traceback)), one.size, one.count) for one in snapshot.statistics(key_type))
        theirs = sorted((tuple(map(str, one.traceback)), one.size, one.count) for one in plain.statistics(key_type))
        found += [f"statistics({key_type!r}) differ at {one}" for one in list(set(ours) ^ set(theirs))[:5]]
    return found


def main():
    path, limits = sys.argv[1], [int(text) for text in sys.argv[2:]]
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    answer = []
    for limit, numbers in [*((limit, False) for limit in limits), (limits[-1], True)]:
        ours, theirs, problems, namespace = run(code, limit, numbers)
        explanations = [
            None if numbers else comparison.recycled_numbers(),
            comparison.resurrection(namespace.get("REVIVED_SIZES", ())),
            comparison.iterators_of_futures(),
        ]
        report = comparison.compare(ours, theirs, limit, {HERE}, explanations)
        differences = report.differences + problems
        if heapledger.lost_records():
            differences.append(f"{heapledger.lost_records()} lost records")
        in_program = sum(trace[2][0][0] == path for trace in theirs)
        answer.append(
            {
                "limit": limit,
                "numbers": numbers,
                "differences": differences,
                "compared": report.compared,
                "in_program": in_program,
                "excused": report.excused,
            }
        )
        del ours, theirs, namespace
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
