"""Snapshots and their analyses at a million blocks: heapledger and the stdlib, on the same heaps (bench/shapes.py).

Each child makes a heap, takes a snapshot, replaces a twentieth of the blocks, takes another, and then runs every
analysis once, while tracing (as the documentation's examples do: the analysis is traced too) or after stop(). All first
results are kept, so that every first call has to obtain fresh memory, as it does in a program that has just asked;
heapledger's are repeated afterwards. The stdlib runs on a fortieth of the blocks first, then on a tenth and on all of
them what can be expected to stay below a limit of seconds; the rest is extended on a straight line, and marked so.

Times are processor time, of the program and of the system on its behalf: everything here computes in one thread and
waits for nothing, so on an idle machine a clock shows the same, and on a busy one it shows the others' work.

`python bench/snapshots.py --quick` takes a minute; `make bench-snapshots` writes bench/RESULTS.md.
"""

import argparse
import gc
import os
import tempfile
import time

import harness
import report
import shapes

PART = "snapshots"
REPLACED = 20  # every so manieth block, between the snapshots
STDLIB_FRACTIONS = (40, 10, 1)
AGAIN_SECONDS = 0.2
NOISE = 100_000  # bytes
# The heap's shape, and whether tracing goes on during the analyses.
SETTINGS = (("ordinary", True), ("ordinary", False), ("lines", False), ("distinct", False))
TITLES = {
    "ordinary": "Ordinary shape",
    "lines": "10,000 sites, each a line of its own",
    "distinct": "A million sites, each of one block",
}


def two_filters(tracer):
    return [tracer.Filter(True, "/srv/*"), tracer.Filter(False, "*/module_1?.py")]


def twenty_filters(tracer):
    """What people write who do not want to see libraries, and a few of their own files."""
    unwanted = [f"*/site-packages/library_{number}/*" for number in range(15)]
    unwanted += ["<frozen *>", "<unknown>", "*/module_[1-3].py"]
    wanted = [tracer.Filter(True, "/srv/*"), tracer.Filter(True, "/usr/*", all_frames=True)]
    return wanted + [tracer.Filter(False, pattern) for pattern in unwanted]


def analyses(tracer, old, new, path):
    """{name: a call without arguments}, in the order in which they are run."""
    calls = {}
    for key_type in ("filename", "lineno", "traceback"):
        calls[f"statistics('{key_type}')"] = lambda key_type=key_type: new.statistics(key_type)
    for key_type in ("filename", "lineno"):
        calls[f"statistics('{key_type}', cumulative)"] = lambda key_type=key_type: new.statistics(key_type, True)
    for key_type in ("filename", "lineno", "traceback"):
        calls[f"compare_to(old, '{key_type}')"] = lambda key_type=key_type: new.compare_to(old, key_type)
    calls["filter_traces, 2 filters"] = lambda: new.filter_traces(two_filters(tracer))
    calls["filter_traces, 20 filters"] = lambda: new.filter_traces(twenty_filters(tracer))
    calls["dump"] = lambda: new.dump(path)
    calls["load"] = lambda: tracer.Snapshot.load(path)
    return calls


def timed(call):
    begin = time.process_time()
    result = call()
    return time.process_time() - begin, result


def best_again(call):
    best, end = float("inf"), time.perf_counter() + AGAIN_SECONDS
    for _ in range(20):
        best = min(best, timed(call)[0])
        if time.perf_counter() > end:
            break
    return best


def measure(mode, shape, blocks, tracing, skip=(), again=False):
    """In the child: seconds of the first call of everything and, if `again`, the best of some more; sizes in bytes."""
    tracer = harness.MODES[mode].start()
    heap = shapes.SHAPES[shape](blocks)
    gc.collect()
    before = harness.rss()
    first, repeated = {}, {}
    first["take_snapshot"], old = timed(tracer.take_snapshot)
    answer = {"rss": harness.rss() - before, "blocks": len(old.traces)}
    if again:
        repeated["take_snapshot"] = best_again(tracer.take_snapshot)
    del heap[::REPLACED]
    more = shapes.SHAPES[shape](blocks // REPLACED)
    new = tracer.take_snapshot()
    if not tracing:
        tracer.stop()
    kept = []
    with tempfile.TemporaryDirectory(prefix="heapledger-bench-") as folder:
        path = os.path.join(folder, "snapshot")
        for name, call in analyses(tracer, old, new, path).items():
            if name in skip:
                continue
            first[name], result = timed(call)
            kept.append(result)
            if again:
                repeated[name] = best_again(call)
        if "dump" not in skip:
            answer["file"] = os.path.getsize(path)
    tracer.stop()
    del heap, more, kept
    return answer | {"first": first, "again": repeated}


def least(answers, key):
    return {name: min(answer[key][name] for answer in answers) for name in answers[0][key]}


def run_stdlib(nframe, shape, blocks, tracing, limit):
    """The answer with figures for everything; "grown" names those that come from smaller heaps."""
    request = {"mode": f"stdlib-{nframe}", "shape": shape, "tracing": tracing}
    answers = [harness.measure(PART, blocks=blocks // STDLIB_FRACTIONS[0], **request)]
    smallest = answers[0]["first"]
    for fraction in STDLIB_FRACTIONS[1:]:
        growth = STDLIB_FRACTIONS[0] / fraction
        skip = [name for name, seconds in smallest.items() if seconds * growth > limit and name != "take_snapshot"]
        if "dump" in skip and "load" not in skip:
            skip.append("load")
        answers.append(harness.measure(PART, blocks=blocks // fraction, skip=skip, **request))
    grown = {name: line_through(name, answers) for name in skip}
    whole = answers[-1]
    whole.setdefault("file", answers[0]["file"] * whole["blocks"] / answers[0]["blocks"])
    return whole | {"first": whole["first"] | grown, "grown": skip}


def line_through(name, answers):
    """Seconds on the last answer's heap: on the line through the figures of two smaller ones, or of one and nothing."""
    points = [(answer["blocks"], answer["first"][name]) for answer in answers if name in answer["first"]]
    blocks, seconds = points[-1]
    fewer, less = points[-2] if len(points) > 1 else (0, 0.0)
    if blocks < 2 * fewer:  # too near each other to tell a slope
        fewer, less = 0, 0.0
    return seconds + max(seconds - less, 0) / (blocks - fewer) * (answers[-1]["blocks"] - blocks)


def run(settings, frames, blocks, repeats, limit):
    """{(shape, tracing): {nframe: (heapledger's answer, the stdlib's)}}"""
    results = {}
    for shape, tracing in settings:
        for nframe in frames:
            request = {"mode": f"heapledger-{nframe}", "shape": shape, "tracing": tracing, "blocks": blocks}
            ours = [harness.measure(PART, again=True, **request) for _ in range(repeats)]
            best = ours[0] | {key: least(ours, key) for key in ("first", "again")}
            best["rss"] = min(answer["rss"] for answer in ours)
            theirs = run_stdlib(nframe, shape, blocks, tracing, limit)
            results.setdefault((shape, tracing), {})[nframe] = best, theirs
            harness.progress(f"snapshots: {shape}, {nframe} frames, {'tracing' if tracing else 'stopped'}")
    return results


def times_faster(ours, theirs):
    ratio = theirs / ours
    return f"**{ratio:,.0f}**" if ratio >= 10 else f"**{ratio:.1f}**"


def rows_of(by_frames):
    answers = list(by_frames.values())
    for name in answers[0][0]["first"]:
        row = [name]
        for ours, theirs in answers:
            seconds = theirs["first"][name]
            mark = "~" if name in theirs["grown"] else ""
            row += [f"{ours['first'][name] * 1e3:,.2f}", f"{ours['again'][name] * 1e3:,.2f}", f"{mark}{seconds:,.2f}"]
            row.append(times_faster(ours["first"][name], seconds))
        yield row
    for name, key in (("file, MB", "file"), ("RSS of a snapshot, MB", "rss")):
        row = [name]
        for ours, theirs in answers:
            row += [f"{ours[key] / 1e6:,.2f}", "", f"{theirs[key] / 1e6:,.2f}"]
            row.append(f"{theirs[key] / ours[key]:,.0f}" if ours[key] > NOISE else "")
        yield row
    row = ["RSS of a snapshot, bytes a block"]
    for ours, theirs in answers:
        row += [f"{ours['rss'] / ours['blocks']:.2f}", "", f"{theirs['rss'] / theirs['blocks']:.1f}", ""]
    yield row


def render(results, blocks, repeats, limit):
    text = (
        "### Snapshots\n\n"
        f"{blocks:,} live blocks in the shapes of bench/shapes.py. Processor time. heapledger: milliseconds of the "
        f"first call in a fresh process, best of {repeats} processes, and of the best later call; stdlib: seconds of "
        f"the first call; and how many times faster heapledger's first call is. ~: would take more than {limit:g} s "
        "and was measured on smaller heaps, a fortieth and if possible a tenth, and extended on a straight line."
    )
    for (shape, tracing), by_frames in results.items():
        head = [f"{TITLES[shape]}, {'while tracing' if tracing else 'after stop()'}"]
        for nframe in by_frames:
            frames = f"{nframe} frame{'s' if nframe > 1 else ''}"
            head += [f"{frames}: heapledger, ms", "again, ms", "stdlib, s", "times faster"]
        text += "\n\n" + report.table(head, rows_of(by_frames))
    return text


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=harness.HERE / "RESULTS.md", help="results file to update; empty: none")
    parser.add_argument("--quick", action="store_true", help="small, and only printed")
    parser.add_argument("--blocks", type=int, default=1_000_000, help="live blocks")
    parser.add_argument("--repeats", type=int, default=3, help="processes for each of heapledger's figures")
    parser.add_argument("--limit", type=float, default=10, help="seconds that a call of the stdlib may take")
    options = parser.parse_args()
    if options.quick:
        options.out, options.blocks, options.limit = "", 200_000, 1
    return options


def main():
    options = arguments()
    frames = (1,) if options.quick else (1, 25)
    with harness.noop_built():
        results = run(SETTINGS, frames, options.blocks, options.repeats, options.limit)
    part = render(results, options.blocks, options.repeats, options.limit)
    if options.out:
        report.write(options.out, {PART: part})
    print(part)


if __name__ == "__main__":
    main()
