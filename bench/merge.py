"""Merging a thousand files of 10,000 sites each: seconds, and memory beyond the result's.

Two extremes: all processes have the same sites, so that the result has 10,000; and no two processes share a stack, so
that it has ten million. Files are read by a generator inside of the call, one at a time.
"""

import pathlib
import random
import resource
import tempfile
import time

import harness
import report

SITES = 10_000
DEPTH = 15
MODULES = 200
LINES = 25  # of a module that allocate
CASES = {"the same sites": False, "sites of their own": True}


def sites():
    """Traces with one block each. A stack shares its oldest frames with another, as if it came from a call tree."""
    chosen = random.Random(1)
    frames = [
        (f"/usr/lib/python3/site-packages/package/module{module}.py", 7 * line + 1)
        for module in range(MODULES)
        for line in range(LINES)
    ]
    stacks = [tuple(chosen.choices(frames, k=DEPTH))]
    while len(stacks) < SITES:
        fresh = chosen.randint(1, 4)
        stacks.append((*chosen.choices(frames, k=fresh), *chosen.choice(stacks)[fresh:]))
    return [(0, chosen.randrange(16, 512, 8), stack, DEPTH) for stack in stacks]


def moved(traces, number):
    """The same with the newest frame on a line that no other number has."""
    return [
        (domain, size, ((frames[0][0], frames[0][1] + number * 7 * LINES), *frames[1:]), total)
        for domain, size, frames, total in traces
    ]


def write(folder, count, own_sites):
    """`count` files, or one if the sites are the same, which then serves for all."""
    from heapledger import Snapshot

    traces = sites()
    for number in range(count if own_sites else 1):
        snapshot = Snapshot(moved(traces, number) if own_sites else traces, DEPTH)
        Snapshot.merge([snapshot]).dump(pathlib.Path(folder, f"{number}.hlsnap"))


def merge(folder, count):
    """Seconds of it all and of loading alone, and bytes of memory before, at the most, and with the result."""
    from heapledger import Snapshot

    paths = sorted(pathlib.Path(folder).iterdir())
    loading = 0.0

    def load_all():
        nonlocal loading
        for number in range(count):
            begin = time.perf_counter()
            snapshot = Snapshot.load(paths[number % len(paths)])
            loading += time.perf_counter() - begin
            yield snapshot

    before = harness.rss()
    begin = time.perf_counter()
    merged = Snapshot.merge(load_all())
    seconds = time.perf_counter() - begin
    return {
        "seconds": seconds,
        "loading": loading,
        "before": before,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "after": harness.rss(),
        "blocks": len(merged.traces),
        "sites": len(merged.statistics("traceback")),
        "file": paths[0].stat().st_size,
    }


def measure(task, **request):
    return {"write": write, "merge": merge}[task](**request)


def run(count):
    """{case: answer}"""
    answers = {}
    for case, own_sites in CASES.items():
        with tempfile.TemporaryDirectory(prefix="heapledger-bench-") as folder:
            harness.measure("merge", task="write", folder=folder, count=count, own_sites=own_sites)
            answers[case] = harness.measure("merge", task="merge", folder=folder, count=count)
        harness.progress(f"merge: {count:,} files, {case}")
    return answers


def render(answers, count):
    rows = [
        [
            case,
            f"{answer['file'] / 1e3:.0f}",
            f"{answer['sites']:,}",
            f"**{answer['seconds']:.1f}**",
            f"{answer['loading']:.1f}",
            f"{(answer['after'] - answer['before']) / 1e6:.0f}",
            f"**{(answer['peak'] - answer['before']) / 1e6:.0f}**",
        ]
        for case, answer in answers.items()
    ]
    head = [f"{count:,} files of {SITES:,} sites, {DEPTH} frames", "KB a file", "sites of the result", "seconds"]
    head += ["of which loading", "MB of RSS with the result", "at the most"]
    return f"### Snapshot.merge\n\n{report.table(head, rows)}"
