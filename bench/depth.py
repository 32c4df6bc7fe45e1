"""The cost of one object() at 1 frame must not depend on the depth of recursion, and stop() must take it back."""

import sys
import time

import harness
import report
import workloads

DEPTHS = (1, 100, 900)
MODES = ("untraced", "heapledger-1", "stdlib-1")
LOOPS = 100_000
STOPPED = ("untraced", "heapledger-1", "heapledger-25", "stdlib-1")
DOMAINS = ("raw", "mem", "obj")


def objects():
    """Best nanoseconds of one object() over several loops."""
    best = float("inf")
    for _ in range(7):
        begin = time.perf_counter()
        for _ in range(LOOPS):
            object()
        best = min(best, time.perf_counter() - begin)
    return best / LOOPS * 1e9


def pairs(domain):
    """Best nanoseconds of one malloc and free of 64 bytes."""
    import _noop

    best = float("inf")
    for _ in range(7):
        begin = time.perf_counter()
        _noop.loop("pairs", domain, 64, LOOPS * 5)
        best = min(best, time.perf_counter() - begin)
    return best / (LOOPS * 5) * 1e9


def measure(mode, depth=None):
    """In the child: object() at `depth` while tracing; or, without depth, what is left of the cost after stop()."""
    sys.setrecursionlimit(2000)
    tracer = harness.MODES[mode].start()
    if depth is not None:
        answer = workloads.deep(depth - 1, objects)
    else:
        if tracer is not None:
            workloads.WORKLOADS["collections"]()
            tracer.stop()
        answer = [objects(), *(pairs(domain) for domain in range(3))]
    if tracer is not None:
        tracer.stop()
    return answer


def run(modes, repeats):
    depths, stopped = {}, {}
    for mode in modes:
        if mode in MODES:
            depths[mode] = [
                min(harness.measure("depth", mode=mode, depth=depth) for _ in range(repeats)) for depth in DEPTHS
            ]
    for mode in modes:
        if mode in STOPPED:
            taken = [harness.measure("depth", mode=mode) for _ in range(repeats)]
            stopped[mode] = [min(column) for column in zip(*taken, strict=True)]
    harness.progress("depth and stop")
    return depths, stopped


def render(measured):
    depths, stopped = measured
    rows = [[harness.MODES[mode].title, *(f"{value:.1f}" for value in values)] for mode, values in depths.items()]
    head = ["nanoseconds of object() at a depth of", *map(str, DEPTHS)]
    text = f"### Depth of recursion\n\n{report.table(head, rows)}"
    rows = [
        ["never started" if mode == "untraced" else f"{harness.MODES[mode].title}, stopped"]
        + [f"{value:.1f}" for value in values]
        for mode, values in stopped.items()
    ]
    head = ["nanoseconds after stop()", "object()", *(f"malloc + free, {name} domain" for name in DOMAINS)]
    return text + f"\n\n### After stop\n\n{report.table(head, rows)}"
