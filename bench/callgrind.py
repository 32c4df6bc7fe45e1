"""Count the instructions of the hook path under callgrind and compare them with bench/callgrind.json.

`python bench/callgrind.py` exits with 1 when a count grew by more than 5 % (2 when valgrind is missing);
`python bench/callgrind.py --update` writes the counts of this interpreter.

Collection is on only inside the loops of noop.c, so start-up does not count; what the same loop costs untraced is
subtracted, so the figure is what tracing adds. Counts repeat to a fraction of a percent with the same interpreter and
compiler; another compiler moves them, which is why the file names the one it was made with.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import harness
import workloads

LIMIT = 1.05
BASELINE = harness.HERE / "callgrind.json"
VERSION = "%d.%d" % sys.version_info[:2]
OBJ_DOMAIN = 2
MODES = ("untraced", "heapledger-1", "heapledger-25")

# Loop of noop.c, first size, number of times collected. The first two are warmed up before; `sizes` meets a new site
# every time, which is the path of a cache miss.
LOOPS = {
    "pairs": ("malloc and free, site known", 64, 20_000),
    "resizes": ("realloc, site known", 64, 20_000),
    "sizes": ("malloc and free, new site", 1, 500),
}


def one_line(loop, size, count, warm):
    import _noop

    for times in (warm, count):
        if times:
            _noop.loop(loop, OBJ_DOMAIN, size, times)


def measure(mode, loop):
    """In the child, below valgrind: the loop, once to warm up (not `sizes`) and once to count."""
    _title, size, count = LOOPS[loop]
    tracer = harness.MODES[mode].start()
    warm = 0 if loop == "sizes" else count // 10
    workloads.deep(workloads.DEPTH, lambda: one_line(loop, size, count, warm))
    if tracer is not None:
        tracer.stop()


def collected(mode, loop, preload):
    """Instructions of one turn of `loop` in `mode`."""
    _title, _size, count = LOOPS[loop]
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [f"--toggle-collect=hl_bench_{loop}", *harness.child_command("callgrind", {"mode": mode, "loop": loop})]
    environment = harness.child_environment() | {"LD_PRELOAD": preload}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode != 0 or found is None or int(found[1]) == 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    warm = 0 if loop == "sizes" else count // 10
    return int(found[1]) / (count + warm)


def count_all(preload):
    """{"loop, nframe": instructions that tracing adds to one turn}."""
    counts = {}
    for loop, (title, _size, _count) in LOOPS.items():
        plain = collected("untraced", loop, preload)
        for mode in MODES[1:]:
            nframe = harness.MODES[mode].nframe
            name = f"{title}, {nframe} frame{'s' if nframe > 1 else ''}"
            counts[name] = round(collected(mode, loop, preload) - plain, 1)
            print(f"{VERSION}: {name}: {counts[name]} instructions", flush=True)
    return counts


def compiled_with():
    first = subprocess.run([*harness.compiler(), "--version"], capture_output=True, text=True).stdout.splitlines()
    return f"CPython {platform.python_version()}, {first[0] if first else 'unknown compiler'}"


def compare(counts, known):
    """Sentences about counts that grew by more than the limit."""
    complaints = []
    for name, value in counts.items():
        before = known.get(name)
        if before is None:
            complaints.append(f"{name}: not in {BASELINE.name}")
        elif value > before * LIMIT:
            complaints.append(f"{name}: {value} instructions, {before} recorded: {(value / before - 1) * 100:+.1f} %")
        elif value < before / LIMIT:
            print(f"{name}: fewer than recorded ({value} against {before}); run with --update to keep the gain")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help=f"write the counts into {BASELINE.name}")
    parser.add_argument("--baseline", type=pathlib.Path, default=BASELINE, help="another file of counts")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("bench/callgrind.py needs valgrind: apt-get install valgrind", file=sys.stderr)
        return 2
    harness.chosen_modes(MODES)
    recorded = json.loads(options.baseline.read_text()) if options.baseline.exists() else {}
    with harness.noop_built(), tempfile.TemporaryDirectory() as folder:
        preload = f"{folder}/membarrier.so"
        source = str(harness.HERE / "membarrier.c")
        subprocess.run([*harness.compiler(), "-O2", "-shared", "-fPIC", source, "-o", preload, "-ldl"], check=True)
        counts = count_all(preload)
    if options.update:
        recorded[VERSION] = {"built with": compiled_with(), "instructions": counts}
        options.baseline.write_text(json.dumps(dict(sorted(recorded.items())), indent=2) + os.linesep)
        return 0
    if VERSION not in recorded:
        print(f"no counts for {VERSION} in {options.baseline.name}; record them with --update", file=sys.stderr)
        return 1
    complaints = compare(counts, recorded[VERSION]["instructions"])
    if complaints:
        headline = f"The hook path grew by more than {LIMIT - 1:.0%} on {VERSION}:"
        print(headline, *complaints, sep="\n  ", file=sys.stderr)
        print(f"recorded with {recorded[VERSION]['built with']}; this is {compiled_with()}", file=sys.stderr)
        print("If the growth is meant, record it: python bench/callgrind.py --update", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
