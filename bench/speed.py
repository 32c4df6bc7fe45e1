"""Time of the seven workloads under each mode: ratio to untraced per workload, and the geometric mean."""

import time

import harness
import report
import workloads

DISTURBED = 1.05
RETRIES = 2


def measure(workload, mode):
    """In the child: seconds (wall, processor) of one workload, its checksum, and records lost."""
    function = workloads.WORKLOADS[workload]
    tracer = harness.MODES[mode].start()
    cpu = time.process_time()
    wall = time.perf_counter()
    checksum = workloads.deep(workloads.DEPTH, function)
    wall = time.perf_counter() - wall
    cpu = time.process_time() - cpu
    lost = tracer.lost_records() if hasattr(tracer, "lost_records") else 0
    if tracer is not None:
        tracer.stop()
    return {"wall": wall, "cpu": cpu, "checksum": checksum, "lost": lost}


def undisturbed(workload, mode):
    """A sample whose wall time shows that the processor was shared is taken again, at most `RETRIES` times.

    Not the stdlib's: its samples take long, and its ratios are far from needing that precision.
    """
    samples = []
    while len(samples) <= (0 if mode.startswith("stdlib") else RETRIES):
        samples.append(harness.measure("speed", workload=workload, mode=mode))
        if samples[-1]["wall"] <= samples[-1]["cpu"] * DISTURBED:
            break
    return min(samples, key=lambda sample: sample["wall"])


def rounds_of(mode, rounds, stdlib_rounds):
    return stdlib_rounds if mode.startswith("stdlib") else rounds


def run(modes, names, rounds, stdlib_rounds):
    """{workload: {mode: {"wall": best, "cpu": best}}}, modes taking turns within each workload."""
    results = {}
    for workload in names:
        samples = {mode: [] for mode in modes}
        for turn in range(max(rounds, stdlib_rounds)):
            for mode in modes:
                if turn < rounds_of(mode, rounds, stdlib_rounds):
                    samples[mode].append(undisturbed(workload, mode))
        checksums = {sample["checksum"] for taken in samples.values() for sample in taken}
        if len(checksums) != 1:
            raise RuntimeError(f"{workload}: the result depends on the tracer: {checksums}")
        lost = sum(sample["lost"] for taken in samples.values() for sample in taken)
        if lost:
            harness.progress(f"{workload}: {lost} records lost")
        results[workload] = {
            mode: {clock: min(sample[clock] for sample in taken) for clock in ("wall", "cpu")}
            for mode, taken in samples.items()
            if taken
        }
        best = results[workload]
        ratios = "  ".join(f"{mode} {best[mode]['wall'] / best['untraced']['wall']:.2f}" for mode in best)
        harness.progress(f"{workload}: untraced {best['untraced']['wall']:.3f} s; {ratios}")
    return results


def ratios(results, mode, clock="wall"):
    return [best[mode][clock] / best["untraced"][clock] for best in results.values() if mode in best]


def apart(means, mode):
    """What floor, reference tracer and engine each add to the geometric mean of `mode`."""
    floor = means["noop"] - 1
    tracer = means["noop+tracer"] - means["noop"] if "noop+tracer" in means else None
    engine = means[mode] - 1 - floor - (tracer or 0)
    shown = ["-" if part is None else f"{part:+.2f}" for part in (floor, tracer, engine)]
    return [harness.MODES[mode].title, f"**{means[mode]:.2f}**", *shown]


def render(results, rounds, stdlib_rounds):
    modes = [mode for mode in harness.MODES if mode != "untraced" and any(mode in best for best in results.values())]
    rows = [
        [workload, f"{best['untraced']['wall']:.3f} s"]
        + [f"{best[mode]['wall'] / best['untraced']['wall']:.2f}" if mode in best else "-" for mode in modes]
        for workload, best in results.items()
    ]
    means = {mode: harness.geomean(ratios(results, mode)) for mode in modes}
    cpu_means = {mode: harness.geomean(ratios(results, mode, "cpu")) for mode in modes}
    rows.append(["**geometric mean**", "", *(f"**{means[mode]:.2f}**" for mode in modes)])
    rows.append(["by processor time", "", *(f"{cpu_means[mode]:.2f}" for mode in modes)])
    head = ["workload", "untraced", *(harness.MODES[mode].title for mode in modes)]
    text = f"### Time\n\nBest of {rounds} rounds (stdlib: {stdlib_rounds}).\n\n{report.table(head, rows)}"
    split = [mode for mode in modes if mode.startswith("heapledger")]
    if split and "noop" in means:
        head = ["", "geometric mean", "floor", "reference tracer", "engine"]
        text += "\n\n" + report.table(head, [apart(means, mode) for mode in split])
    return text
