"""Run the benchmarks with this interpreter and write its section of bench/RESULTS.md.

`python bench/run.py --only memory --modes heapledger-1,stdlib-1` runs one part in some modes; `--help` lists all.
"""

import argparse

import depth
import harness
import latency
import memory
import merge
import pauses
import report
import speed
import workloads

PARTS = ("workloads", "memory", "pauses", "latency", "depth", "merge")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=harness.HERE / "RESULTS.md", help="results file to update")
    parser.add_argument("--only", help=f"parts to run, of {','.join(PARTS)}")
    parser.add_argument("--modes", help=f"modes to run, of {','.join(harness.MODES)}; untraced is always run")
    parser.add_argument("--workloads", help=f"workloads to run, of {','.join(workloads.WORKLOADS)}")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each workload and mode")
    parser.add_argument("--stdlib-rounds", type=int, default=1, help="the same for the stdlib, which is slow")
    parser.add_argument("--repeats", type=int, default=3, help="repeats of the other parts")
    parser.add_argument("--blocks", type=int, default=1_000_000, help="live blocks of the memory part")
    parser.add_argument("--files", type=int, default=1000, help="files of the merge part")
    options = parser.parse_args()
    options.only = options.only.split(",") if options.only else PARTS
    if unknown := set(options.only) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    options.workloads = options.workloads.split(",") if options.workloads else list(workloads.WORKLOADS)
    if unknown := set(options.workloads) - set(workloads.WORKLOADS):
        parser.error(f"no such workload: {', '.join(sorted(unknown))}")
    if options.modes is not None:
        options.modes = f"untraced,{options.modes}"
    return options


def main():
    options = arguments()
    modes = harness.chosen_modes(harness.MODES, options.modes)
    parts = {"about": harness.description()}
    with harness.noop_built():
        if "workloads" in options.only:
            results = speed.run(modes, options.workloads, options.rounds, options.stdlib_rounds)
            parts["workloads"] = speed.render(results, options.rounds, options.stdlib_rounds)
        if "memory" in options.only:
            chosen = [mode for mode in memory.MODES if mode in modes]
            parts["memory"] = memory.render(memory.run(chosen, options.blocks))
        if "pauses" in options.only:
            chosen = [mode for mode in pauses.MODES if mode in modes]
            parts["pauses"] = pauses.render(pauses.run(chosen, options.repeats))
        if "latency" in options.only:
            chosen = [mode for mode in latency.MODES if mode in modes]
            parts["latency"] = latency.render(latency.run(chosen, options.repeats), options.repeats)
        if "depth" in options.only:
            parts["depth"] = depth.render(depth.run(modes, options.repeats))
        if "merge" in options.only:
            parts["merge"] = merge.render(merge.run(options.files), options.files)
    report.write(options.out, parts)
    for text in parts.values():
        print(text, end="\n\n")


main()
