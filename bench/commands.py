"""The commands on two big snapshots (bench/big_snapshot.py): processor time beyond that of the interpreter's start.

    python bench/commands.py [--stacks 100000] [--repeats 5] [--out bench/RESULTS.md]

Each figure is the best of some processes, of the program and of the system on its behalf, less that of an interpreter
that does nothing.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile

import big_snapshot
import report

PART = "commands"
KEYS = ("line", "file", "function", "package", "traceback")


def processor_time(arguments):
    """Seconds of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-I", *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def best(arguments, repeats):
    return min(processor_time(arguments) for _ in range(repeats))


def make_files(folder, stacks):
    """Two files, each made in a process of its own: it traces."""
    paths = []
    for seed in (1, 2):
        paths.append(os.path.join(folder, f"{seed}.hlsnap"))
        command = [sys.executable, big_snapshot.__file__, paths[-1], "--stacks", str(stacks), "--seed", str(seed)]
        subprocess.run(command, check=True)
    return paths


def command_lines(old, new, out):
    """{title: arguments}"""
    lines = {"summary": ["summary", new]}
    for by in KEYS:
        lines[f"top --by {by}"] = ["top", new, "--by", by]
    for by in KEYS[:-1]:
        lines[f"top --by {by} --cumulative"] = ["top", new, "--by", by, "--cumulative"]
    for by in KEYS:
        lines[f"diff --by {by}"] = ["diff", old, new, "--by", by]
    lines["diff --by function --cumulative"] = ["diff", old, new, "--by", "function", "--cumulative"]
    lines["tree"] = ["tree", new]
    lines["check"] = ["check", new]
    lines["merge of two"] = ["merge", old, new, "-o", out]
    for name in ("pprof", "speedscope", "collapsed", "csv", "json"):
        lines[f"export --format {name}"] = ["export", new, "--format", name, "-o", out]
    return lines


def run(stacks, repeats):
    """{title: seconds}"""
    with tempfile.TemporaryDirectory(prefix="heapledger-bench-") as folder:
        old, new = make_files(folder, stacks)
        start = best(["-c", "pass"], 3 * repeats)
        lines = command_lines(old, new, os.path.join(folder, "out"))
        return {title: best(["-m", "heapledger", *arguments], repeats) - start for title, arguments in lines.items()}


def render(results, stacks, repeats):
    text = (
        f"### Commands\n\n{stacks:,} distinct stacks of {big_snapshot.DEPTH} frames in the shape of a call graph. "
        f"Processor time beyond the interpreter's start, output to a pipe; best of {repeats} processes.\n\n"
    )
    return text + report.table(["command", "ms"], [[title, f"{one * 1e3:,.0f}"] for title, one in results.items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stacks", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", help="the file to write the result into, as well")
    options = parser.parse_args()
    part = render(run(options.stacks, options.repeats), options.stacks, options.repeats)
    if options.out:
        report.write(options.out, {PART: part})
    print(part)


if __name__ == "__main__":
    main()
