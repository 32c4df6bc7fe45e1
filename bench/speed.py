"""Time of the seven workloads under each mode: ratio to untraced per workload, and the geometric mean."""

import time

import harness
import report
import workloads

TURNS = 5


def measure(workload, mode, turns):
    """In the child: the best of some turns of one workload in seconds (wall, processor), its checksum, records lost."""
    function = workloads.WORKLOADS[workload]
    tracer = harness.MODES[mode].start()
    walls, cpus, checksums = [], [], set()
    for _ in range(turns):
        cpu = time.process_time()
        wall = time.perf_counter()
        checksums.add(workloads.deep(workloads.DEPTH, function))
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    lost = tracer.lost_records() if hasattr(tracer, "lost_records") else 0
    if tracer is not None:
        tracer.stop()
    return {"wall": min(walls), "cpu": min(cpus), "checksums": sorted(checksums), "lost": lost}


def run(modes, names, rounds, stdlib_rounds):
    """{workload: {mode: {"wall": best, "cpu": best}}}, modes taking turns within each workload.

    What disturbs a sample (other processes, the processor's clock) only makes it longer, so the best of many short ones
    tells most. The stdlib's take long, and its ratios are far from needing that precision: one turn a round.
    """
    results = {}
    for workload in names:
        samples = {mode: [] for mode in modes}
        for turn in range(max(rounds, stdlib_rounds)):
            for mode in modes:
                is_stdlib = mode.startswith("stdlib")
                if turn < (stdlib_rounds if is_stdlib else rounds):
                    turns = 1 if is_stdlib else TURNS
                    samples[mode].append(harness.measure("speed", workload=workload, mode=mode, turns=turns))
        checksums = {checksum for taken in samples.values() for sample in taken for checksum in sample["checksums"]}
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
    text = f"### Time\n\nBest of {rounds} processes, {TURNS} turns each (stdlib: {stdlib_rounds}, 1).\n\n"
    text += report.table(head, rows)
    split = [mode for mode in modes if mode.startswith("heapledger")]
    if split and "noop" in means:
        head = ["", "geometric mean", "floor", "reference tracer", "engine"]
        text += "\n\n" + report.table(head, [apart(means, mode) for mode in split])
    return text
