"""Time of the seven workloads under each mode: ratio to untraced per workload, and the geometric mean.

The speed of a shared machine changes from one second to the next. So each mode has a process of its own, and they take
turns of a few tenths of a second on one processor; a turn is compared with the untraced turns right before and after
its round, and of these ratios the median counts.
"""

import statistics
import sys
import time

import harness
import report
import workloads


def serve(workload, mode):
    """In the child: one turn for each line that comes in; answers with its seconds, wall and processor."""
    function = workloads.WORKLOADS[workload]
    tracer = harness.MODES[mode].start()
    for _line in sys.stdin:
        cpu = time.process_time()
        wall = time.perf_counter()
        checksum = workloads.deep(workloads.DEPTH, function)
        wall = time.perf_counter() - wall
        cpu = time.process_time() - cpu
        lost = tracer.lost_records() if hasattr(tracer, "lost_records") else 0
        yield {"wall": wall, "cpu": cpu, "checksum": checksum, "lost": lost}


def rounds_of(mode, rounds, stdlib_rounds):
    """The stdlib's turns take long, and its ratios are far from needing that precision."""
    return stdlib_rounds if mode.startswith("stdlib") else rounds


def one_workload(workload, modes, rounds, stdlib_rounds):
    """{mode: {clock: seconds or ratios}}: seconds of the quickest untraced turn, ratios to the untraced ones around."""
    seconds = {mode: [] for mode in modes}
    with harness.Children("speed", [{"workload": workload, "mode": mode} for mode in modes]) as children:
        for child in children:
            child.ask()  # a turn to warm up
        for turn in range(rounds + 1):  # the last one closes the bracket around the one before
            for mode, child in zip(modes, children, strict=True):
                if turn < rounds_of(mode, rounds + (mode == "untraced"), stdlib_rounds):
                    seconds[mode].append(child.ask())
    checksums = {sample["checksum"] for taken in seconds.values() for sample in taken}
    if len(checksums) != 1:
        raise RuntimeError(f"{workload}: the result depends on the tracer: {checksums}")
    if lost := sum(taken[-1]["lost"] for taken in seconds.values() if taken):
        harness.progress(f"{workload}: {lost} records lost")
    best = {}
    for mode, taken in seconds.items():
        if not taken:
            continue
        best[mode] = {}
        for clock in ("wall", "cpu"):
            untraced = [sample[clock] for sample in seconds["untraced"]]
            around = [(before + after) / 2 for before, after in zip(untraced, untraced[1:], strict=False)]
            pairs = zip([sample[clock] for sample in taken], around, strict=False)
            ratios = [sample / reference for sample, reference in pairs]
            best[mode][clock] = min(untraced) if mode == "untraced" else statistics.median(ratios)
    return best


def run(modes, names, rounds, stdlib_rounds):
    results = {}
    for workload in names:
        best = results[workload] = one_workload(workload, modes, rounds, stdlib_rounds)
        ratios = "  ".join(f"{mode} {best[mode]['wall']:.2f}" for mode in best if mode != "untraced")
        harness.progress(f"{workload}: untraced {best['untraced']['wall']:.3f} s; {ratios}")
    return results


def ratios(results, mode, clock="wall"):
    return [best[mode][clock] for best in results.values() if mode in best]


def apart(means, mode):
    """What floor and engine each add to the geometric mean of `mode`."""
    floor, engine = means["noop"] - 1, means[mode] - means["noop"]
    return [harness.MODES[mode].title, f"**{means[mode]:.2f}**", f"{floor:+.2f}", f"{engine:+.2f}"]


def render(results, rounds, stdlib_rounds):
    modes = [mode for mode in harness.MODES if mode != "untraced" and any(mode in best for best in results.values())]
    rows = [
        [workload, f"{best['untraced']['wall']:.3f} s"]
        + [f"{best[mode]['wall']:.2f}" if mode in best else "-" for mode in modes]
        for workload, best in results.items()
    ]
    means = {mode: harness.geomean(ratios(results, mode)) for mode in modes}
    cpu_means = {mode: harness.geomean(ratios(results, mode, "cpu")) for mode in modes}
    rows.append(["**geometric mean**", "", *(f"**{means[mode]:.2f}**" for mode in modes)])
    rows.append(["by processor time", "", *(f"{cpu_means[mode]:.2f}" for mode in modes)])
    head = ["workload", "untraced", *(harness.MODES[mode].title for mode in modes)]
    how = f"Median of {rounds} turns (stdlib: {stdlib_rounds}), each against the untraced turns around it."
    text = f"### Time\n\n{how}\n\n" + report.table(head, rows)
    split = [mode for mode in modes if mode.startswith("heapledger")]
    if split and "noop" in means:
        head = ["", "geometric mean", "floor", "engine"]
        text += "\n\n" + report.table(head, [apart(means, mode) for mode in split])
    return text
