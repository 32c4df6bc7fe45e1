"""What tracing costs benchmarks of pyperformance, each inside one process: `python bench/inside.py`.

bench/suite.py measures as pyperformance does, process by process. Where a machine's speed changes from one to the next,
that takes many turns to say anything; here the tracer is turned on and off inside a process, a fifth of a second each
(stand_in/pyperf.py). What it cannot say: what a traced start costs, and memory. Only 2to3, a command, is a process for
each turn here too, with its start.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess

import harness
import report
import suite
import venvs

STAND_IN = pathlib.Path(__file__).resolve().parent / "stand_in"


def measure(environment, benchmark, frames, turns, seconds):
    """[what the stand-in says of one thing that is measured, ...]"""
    folder = suite.folder_of(environment, benchmark)
    given = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    variables = {"PYTHONPATH": str(STAND_IN), "HEAPLEDGER_BENCH_INSIDE": f"{frames} {turns} {seconds}"}
    command = [environment.python, folder / "run_benchmark.py", *suite.extra_options(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=given | variables)
    if done.returncode != 0:
        raise RuntimeError(f"{benchmark} ended with {done.returncode}:\n{done.stderr}{done.stdout}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def row(benchmark, said):
    """The row of the table, and the ratio: the geometric mean of the medians of what the script measures."""
    ratio = harness.geomean([statistics.median(one["ratios"]) for one in said])
    spread = max(quartiles[2] - quartiles[0] for quartiles in (statistics.quantiles(one["ratios"]) for one in said))
    blocks = "not counted"
    if all(one["blocks"] is not None for one in said):
        seconds = sum(statistics.median(one["untraced"]) for one in said)
        blocks = f"{sum(one['blocks'] for one in said) / seconds / 1e6:.1f}"
    return [benchmark, blocks, f"{ratio:.3f}", f"{spread:.3f}"], ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=venvs.ROOT / "docs" / "benchmarks.md", help="document to update")
    parser.add_argument("--benchmarks", default=",".join(suite.BENCHMARKS), help="benchmarks to run")
    parser.add_argument("--frames", type=int, default=1)
    parser.add_argument("--turns", type=int, default=15, help="traced turns of each thing that is measured")
    parser.add_argument("--seconds", type=float, default=0.2, help="that a turn takes at least")
    options = parser.parse_args()
    about = harness.description()
    benchmarks = options.benchmarks.split(",")
    environment = suite.prepared(benchmarks)
    rows, all_ratios = [], []
    for benchmark in benchmarks:
        shown, ratio = row(benchmark, measure(environment, benchmark, options.frames, options.turns, options.seconds))
        rows.append(shown)
        all_ratios.append(ratio)
        harness.progress(" ".join(shown))
    rows.append(["**geometric mean**", "", f"**{harness.geomean(all_ratios):.3f}**", ""])
    frames = f"{options.frames} frame" + "s" * (options.frames != 1)
    head = ["benchmark", "million blocks a second, untraced", f"time at {frames}", "middle half"]
    text = f"{about}\n\nMedians of {options.turns} turns.\n\n{report.table(head, rows)}"
    report.put(options.out, {f"inside-{options.frames}": text})
    print(text)


if __name__ == "__main__":
    main()
