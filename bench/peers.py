"""The same programs untraced, under heapledger, and under other memory profilers: make bench-peers.

Each turn is a whole process as a user would start it, measured from outside (launch.py): wall time, processor time, and
peak RSS, the interpreter's start and the writing of what was found included, a report made of it later not. A turn that
left no such file behind was not traced and is an error. Modes are interleaved (turns.py).
"""

import argparse
import dataclasses
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import textwrap

import harness
import program
import report
import turns
import venvs

TIMES = 10  # about a second, untraced
LONGEST = 5.0  # seconds; what takes longer has one turn
PACKAGES = {"memray": "memray", "filprofiler": "Fil", "scalene": "Scalene"}
PROGRAM = str(harness.HERE / "program.py")


@dataclasses.dataclass(frozen=True)
class Mode:
    name: str
    title: str
    arguments: str  # of python: OUT is the folder to write to, PROGRAM the program with its own arguments
    result: str | None = None  # what it must have written there
    package: str | None = None

    def command(self, python, name, out):
        words = {"PROGRAM": [PROGRAM, name, str(TIMES)]}
        parts = [words.get(word, [word.replace("OUT", str(out))]) for word in self.arguments.split()]
        return [str(python), *(word for part in parts for word in part)]


MODES = {
    mode.name: mode
    for mode in (
        Mode("untraced", "untraced", "PROGRAM"),
        Mode("heapledger-1", "heapledger, 1 frame", "-m heapledger run -q -n 1 -o OUT/x.hlsnap PROGRAM", "x.hlsnap"),
        Mode(
            "heapledger-25", "heapledger, 25 frames", "-m heapledger run -q -n 25 -o OUT/x.hlsnap PROGRAM", "x.hlsnap"
        ),
        Mode("stdlib-1", "tracemalloc, 1 frame", "-X tracemalloc=1 PROGRAM OUT/snapshot", "snapshot"),
        Mode("stdlib-25", "tracemalloc, 25 frames", "-X tracemalloc=25 PROGRAM OUT/snapshot", "snapshot"),
        Mode("memray", "memray", "-m memray run -q -o OUT/x.bin PROGRAM", "x.bin", "memray"),
        Mode(
            "memray-python",
            "memray --trace-python-allocators",
            "-m memray run -q --trace-python-allocators -o OUT/x.bin PROGRAM",
            "x.bin",
            "memray",
        ),
        Mode("fil", "Fil", "-m filprofiler -o OUT --no-browser run PROGRAM", "*/peak-memory.svg", "filprofiler"),
        Mode("scalene", "Scalene", "-m scalene run -o OUT/x.json PROGRAM", "x.json", "scalene"),
    )
}


def check(mode, name, out):
    """That there is what the mode writes, and for a sampler that it has taken samples, if there was what to sample."""
    if mode.result is None:
        return
    found = list(out.glob(mode.result))
    if not found:
        raise RuntimeError(f"{mode.name} wrote no {mode.result}: was it tracing?")
    if mode.name == "scalene" and name != "nothing" and not json.loads(found[0].read_text()).get("alloc_samples"):
        raise RuntimeError("scalene has no sample of an allocation")


def measure(environment, mode, name):
    """One turn: what launch.py says, and how many bytes were written."""
    with tempfile.TemporaryDirectory(prefix="heapledger-peers-") as folder:
        out = pathlib.Path(folder)
        launch = [sys.executable, "-I", "-S", str(harness.HERE / "launch.py")]
        command = [*launch, *mode.command(environment.python, name, out)]
        done = subprocess.run(command, capture_output=True, text=True, env=harness.child_environment(), cwd=out)
        if done.returncode != 0:
            raise RuntimeError(f"{mode.name} {name} ended with {done.returncode}:\n{done.stderr}{done.stdout}")
        check(mode, name, out)
        written = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        return {**json.loads(done.stdout.splitlines()[-1]), "written": written}


def row(mode, ratios):
    """A mode's ratio for each program, and their mean."""
    mean = None if None in ratios else harness.geomean(ratios)
    return [MODES[mode].title, *map(turns.shown, ratios), f"**{turns.shown(mean)}**"]


def rows(programs, modes, name):
    """Ratios of one measure."""
    return [row(mode, [turns.ratio(taken.get(mode, ()), name) for taken in programs.values()]) for mode in modes]


def rows_beyond_start(programs, modes, nothing):
    """Ratios of processor time without start and end, which a program that does nothing has too."""
    return [
        row(
            mode,
            [
                turns.ratio_beyond(
                    taken.get(mode, ()), taken["untraced"], nothing.get(mode, ()), nothing.get("untraced", ()), "cpu"
                )
                for taken in programs.values()
            ],
        )
        for mode in modes
    ]


def megabytes(samples, name, digits):
    """The median of what each sample has, in MB."""
    value = turns.median(samples, name)
    return turns.shown(None if value is None else value / 1e6, digits)


def start_table(taken, modes):
    """Seconds and megabytes of a program that does nothing."""
    lines = []
    for mode in ("untraced", *modes):
        samples = taken.get(mode, ())
        lines.append([MODES[mode].title, turns.shown(turns.median(samples, "cpu")), megabytes(samples, "rss", 0)])
    return report.table(["", "seconds", "MB"], lines)


def render(programs, environment, about):
    programs = dict(programs)
    nothing = programs.pop("nothing", {})
    modes = [mode for mode in MODES if mode != "untraced" and any(mode in taken for taken in programs.values())]
    untraced = [taken["untraced"] for taken in programs.values()]
    head = ["", *programs, "geometric mean"]
    seconds = ["untraced, seconds", *(turns.shown(turns.median(samples, "cpu")) for samples in untraced), ""]
    resident = ["untraced, MB", *(megabytes(samples, "rss", 0) for samples in untraced), ""]
    written = [
        [MODES[mode].title, *(megabytes(taken.get(mode, ()), "written", 2) for taken in programs.values())]
        for mode in modes
    ]
    missing = [f"- {PACKAGES[name]}: {why}, so it is not here" for name, why in environment.missing.items()]
    each = "; ".join(f"{MODES[mode].title}: {turns.counts(programs, mode)}" for mode in modes)
    versions = environment.versions(PACKAGES)
    shown = ", ".join(f"{PACKAGES[name]} {version}" for name, version in versions.items())
    return "\n\n".join(
        (
            "\n".join((about, f"- {shown}", *missing)),
            textwrap.fill(f"Medians of turns ({each}).", 120, break_on_hyphens=False),
            "Processor time, against untraced:",
            report.table(head, [seconds, *rows(programs, modes, "cpu")]),
            "Processor time without start and end, against untraced:",
            report.table(head, rows_beyond_start(programs, modes, nothing)),
            "Wall time, against untraced:",
            report.table(head, rows(programs, modes, "wall")),
            "Peak RSS, against untraced:",
            report.table(head, [resident, *rows(programs, modes, "rss")]),
            "Written, MB:",
            report.table(head[:-1], written),
            "Start and end by themselves (a program that does nothing), processor time and peak RSS:",
            start_table(nothing, modes),
        )
    )


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=venvs.ROOT / "docs" / "benchmarks.md", help="document to update")
    parser.add_argument("--modes", default=",".join(MODES), help="modes to run; untraced is always run")
    parser.add_argument("--programs", default=",".join(program.PROGRAMS), help="programs to run")
    parser.add_argument("--turns", type=int, default=3, help=f"turns of a program; one if above {LONGEST:.0f} s")
    parser.add_argument("--keep", action="store_true", help="keep what an earlier run measured besides")
    options = parser.parse_args()
    options.modes, options.programs = options.modes.split(","), options.programs.split(",")
    if unknown := (set(options.modes) - set(MODES)) | (set(options.programs) - set(program.PROGRAMS)):
        parser.error(f"no such mode or program: {', '.join(sorted(unknown))}")
    return options


def main():
    options = arguments()
    about = harness.description()
    environment = venvs.Environment("peers", PACKAGES)
    modes = [mode for mode in MODES if mode in options.modes and mode != "untraced"]
    modes = [mode for mode in modes if MODES[mode].package not in environment.missing]
    path = venvs.ROOT / "build" / f"bench-peers-{platform.python_version()}.json"
    store = turns.Store(path, program.PROGRAMS, options.keep)
    for name in options.programs:

        def one(mode, name=name):
            return measure(environment, MODES[mode], name)

        taken = turns.take(modes, lambda _mode: options.turns, one, longest=LONGEST)
        store.put(name, taken)
        ratios = "  ".join(f"{mode} {turns.shown(turns.ratio(taken[mode], 'wall'))}" for mode in modes)
        harness.progress(f"{name}: {ratios}")
    text = render(store.programs, environment, about)
    report.put(options.out, {"peers": text})
    print(text)


if __name__ == "__main__":
    main()
