"""The longest single allocation and free while the tables grow to a million sites, and the time of take_snapshot.

Each call of the allocator is timed in C. A timing also catches page faults of the heap itself and whatever the machine
does meanwhile, so the same sequence is run several times: what a call costs by itself comes back at the same place in
every run, noise does not. The repeatable pause is the maximum over the calls of the minimum over the runs.
"""

import array
import base64
import time
import zlib

import harness
import report

MODES = ("untraced", "heapledger-1", "heapledger-25", "stdlib-1")
SIZES_PER_LINE = 500
SITE_COUNTS = (100, 10_000, 1_000_000)
MEM_DOMAIN = 1


def lines_of_code(count):
    """A function of `count` lines, each of which calls its argument's `take`."""
    space = {}
    source = ["def lines(take, sizes):"] + ["    take(sizes)"] * count
    exec(compile("\n".join(source), "<lines>", "exec"), space)
    return space["lines"]


def packed(data):
    return base64.b64encode(zlib.compress(data, 1)).decode()


def unpacked(text):
    return array.array("I", zlib.decompress(base64.b64decode(text)))


def measure(mode, sites, blocks_per_site=1):
    """In the child: nanoseconds of every allocation and free of `sites` sites, and milliseconds of a snapshot."""
    import _noop
    import workloads

    sizes = min(SIZES_PER_LINE, sites)
    lines = lines_of_code(sites // sizes)
    _noop.reserve(sites * blocks_per_site, MEM_DOMAIN)
    tracer = harness.MODES[mode].start()
    for _ in range(blocks_per_site):
        workloads.deep(workloads.DEPTH, lambda: lines(_noop.take, sizes))
    answer = {}
    if blocks_per_site == 1:
        answer["allocations"] = packed(_noop.times(sites))
    if tracer is not None and hasattr(tracer, "take_snapshot"):
        begin = time.perf_counter()
        snapshot = tracer.take_snapshot()
        answer["snapshot"] = (time.perf_counter() - begin) * 1e3
        begin = time.perf_counter()
        snapshot.statistics("lineno")
        answer["statistics"] = (time.perf_counter() - begin) * 1e3
        answer["own"] = tracer.get_tracemalloc_memory()
        del snapshot
    _noop.release()
    if blocks_per_site == 1:
        answer["frees"] = packed(_noop.times(sites))
    if tracer is not None:
        tracer.stop()
    return answer


def summary(runs):
    """Median, 99.99 %, greatest and repeatable pause over runs of the same sequence, in nanoseconds."""
    everything = sorted(value for run_ in runs for value in run_)
    return {
        "median": everything[len(everything) // 2],
        "99.99": everything[int(len(everything) * 0.9999)],
        "greatest": everything[-1],
        "repeatable": max(map(min, *runs)) if len(runs) > 1 else everything[-1],
    }


def run(modes, repeats, sites=SITE_COUNTS[-1]):
    """{mode: {"allocations": summary, "frees": summary}} and rows of snapshot times."""
    pauses = {}
    for mode in modes:
        times = {"allocations": [], "frees": []}
        for _ in range(repeats):
            answer = harness.measure("pauses", mode=mode, sites=sites)
            for kind, runs in times.items():
                runs.append(unpacked(answer[kind]))
        pauses[mode] = {kind: summary(runs) for kind, runs in times.items()}
        harness.progress(f"pauses: {mode}")
    snapshots = []
    for mode in modes:
        if mode == "untraced":
            continue
        for count, blocks in [(100, 1), (100, 10_000), (10_000, 1), (10_000, 100), (sites, 1)]:
            answers = [
                harness.measure("pauses", mode=mode, sites=count, blocks_per_site=blocks) for _ in range(repeats)
            ]
            best = {key: min(answer[key] for answer in answers) for key in ("snapshot", "statistics", "own")}
            snapshots.append((mode, count, blocks, best))
        harness.progress(f"snapshots: {mode}")
    return pauses, snapshots, repeats, sites


def microseconds(nanoseconds):
    value = nanoseconds / 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def render(measured):
    pauses, snapshots, repeats, sites = measured
    rows = [
        [f"{harness.MODES[mode].title}, {kind}"]
        + [microseconds(figures[key]) for key in ("median", "99.99", "greatest", "repeatable")]
        for mode, kinds in pauses.items()
        for kind, figures in kinds.items()
    ]
    text = (
        "### Pauses\n\n"
        f"Microseconds of one call of the allocator, while {sites:,} blocks are entered under as many new sites and "
        f"then freed; {repeats} runs. The clock itself takes about 0.03. The greatest includes the machine's noise; "
        "the repeatable pause is the longest call that was as long at the same place in every run.\n\n"
    )
    text += report.table(["", "median", "99.99 %", "greatest", "repeatable"], rows)
    rows = [
        [f"{harness.MODES[mode].title}, {count:,} sites, {count * blocks:,} blocks"]
        + [f"{best['snapshot']:,.2f}", f"{best['statistics']:,.2f}", f"{best['own'] / 1e6:,.1f}"]
        for mode, count, blocks, best in snapshots
    ]
    head = ["", "take_snapshot, ms", "statistics('lineno'), ms", "tables, MB"]
    return text + "\n\n" + report.table(head, rows)
