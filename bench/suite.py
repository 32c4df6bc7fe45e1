"""Benchmarks of pyperformance untraced and traced by environment variable: `python bench/suite.py`.

`pyperformance run --fast` has ten processes take two values each, one process after the other. Here too, with the
same scripts, options and variables, but each of the ten is a turn of its own, between two untraced ones (turns.py): the
speed of a shared machine changes within the time of ten. A turn's time is the mean of its values (the geometric mean of
these means where a script measures several things), its RSS the median of its processes' VmHWM. witness.py says for
each process who traced it: a turn in which that is not the mode's tracer everywhere is an error.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import tempfile
import textwrap
import time
import tomllib

import harness
import report
import turns
import venvs
import witness

BENCHMARKS = (
    "2to3 chaos deltablue django_template json_dumps json_loads float nbody raytrace xml_etree mako logging deepcopy "
    "regex_compile sqlglot_v2"
).split()
MODES = {
    "untraced": {},
    "heapledger-1": {"HEAPLEDGER": "1"},
    "heapledger-25": {"HEAPLEDGER": "25"},
    "stdlib-1": {"PYTHONTRACEMALLOC": "1"},
}
LONGEST = 10.0  # seconds; what takes longer has one turn
FEWER = 3  # turns of what is not held to a target
FAST = ("--processes", "1", "--values", "2", "--warmups", "1")  # a tenth of what --fast means


def prepared(benchmarks):
    """The environment with what the benchmarks need, and the witness."""
    environment = venvs.Environment("pyperformance")
    lists = [folder_of(environment, name) / "requirements.txt" for name in benchmarks]
    needed = [option for path in lists if path.exists() for option in ("-r", path)]
    if needed:
        environment.install(*needed, wheels_only=False)  # some are older than the interpreter
    shutil.copy2(witness.__file__, environment.packages)
    (environment.packages / "witness.pth").write_text(witness.PTH)
    return environment


def folder_of(environment, benchmark):
    return environment.packages / "pyperformance" / "data-files" / "benchmarks" / f"bm_{benchmark}"


def extra_options(folder):
    """What the script of the benchmark in `folder` wants to be called with."""
    with open(folder / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["tool"]["pyperformance"].get("extra_opts", [])


def times_of(results):
    """{name: mean of values} of what pyperf wrote."""
    return {
        one.get("metadata", {}).get("name", results["metadata"].get("name")): statistics.fmean(
            value for run in one["runs"] for value in run.get("values", ())
        )
        for one in results["benchmarks"]
    }


def memory_of(testimonies, mode):
    """Median of the peaks of the processes that were measured; an error if one was not traced as it should."""
    wrong = [said for said in testimonies if said["tracer"] != mode]
    if wrong:
        raise RuntimeError(f"{len(wrong)} of {len(testimonies)} processes ran {wrong[0]['tracer']}, not {mode}")
    commands = [said for said in testimonies if said["role"] == "command"]
    measured = [said["rss"] for said in commands or testimonies if said["role"] in ("command", "worker")]
    if not measured:
        raise RuntimeError("no process said who traced it")
    return statistics.median(measured)


def measure(environment, mode, benchmark):
    """One turn."""
    folder = folder_of(environment, benchmark)
    with tempfile.TemporaryDirectory(prefix="heapledger-suite-") as out:
        said = pathlib.Path(out, "said")
        said.mkdir()
        variables = {**MODES[mode], witness.VARIABLE: str(said)}
        path = pathlib.Path(out, "results.json")
        options = [*FAST, "--inherit-environ", ",".join(variables), "--output", path]
        command = [environment.python, "-u", folder / "run_benchmark.py", *extra_options(folder), *options]
        given = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=given | variables, cwd=out)
        wall = time.perf_counter() - start
        if done.returncode != 0:
            raise RuntimeError(f"{benchmark} {mode} ended with {done.returncode}:\n{done.stderr}{done.stdout}")
        times = times_of(json.loads(path.read_text()))
        testimonies = [json.loads(file.read_text()) for file in said.iterdir()]
    rss = memory_of(testimonies, mode)
    parts = {f"time of {name}": seconds for name, seconds in times.items()}
    return {"wall": wall, "time": harness.geomean(times.values()), "rss": rss, **parts}


def render(benchmarks, environment, about):
    modes = [mode for mode in MODES if mode != "untraced" and any(mode in taken for taken in benchmarks.values())]
    columns = [(name, mode) for name in ("time", "rss") for mode in modes]
    rows = [
        [
            benchmark,
            f"{turns.median(taken['untraced'], 'time') * 1e3:.3g} ms",
            f"{turns.median(taken['untraced'], 'rss') / 1e6:.1f} MB",
            *(turns.shown(turns.ratio(taken.get(mode, ()), name)) for name, mode in columns),
        ]
        for benchmark, taken in benchmarks.items()
    ]
    means = [turns.shown(turns.mean(benchmarks, mode, name), 3) for name, mode in columns]
    rows.append(["**geometric mean**", "", "", *(f"**{mean}**" for mean in means)])
    titles = [f"{'time' if name == 'time' else 'RSS'}: {harness.MODES[mode].title}" for name, mode in columns]
    each = "; ".join(f"{harness.MODES[mode].title}: {turns.counts(benchmarks, mode)}" for mode in modes)
    versions = environment.versions(("pyperformance", "pyperf"))
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    return "\n\n".join(
        (
            f"{about}\n- {shown}",
            textwrap.fill(f"Medians of turns ({each}).", 120, break_on_hyphens=False),
            report.table(["benchmark", "untraced", "untraced", *titles], rows),
        )
    )


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=venvs.ROOT / "docs" / "benchmarks.md", help="document to update")
    parser.add_argument("--modes", default=",".join(MODES), help="modes to run; untraced is always run")
    parser.add_argument("--benchmarks", default=",".join(BENCHMARKS), help="benchmarks to run")
    parser.add_argument("--turns", type=int, default=10, help=f"turns of each benchmark at 1 frame; {FEWER} otherwise")
    parser.add_argument("--keep", action="store_true", help="keep what an earlier run measured besides")
    options = parser.parse_args()
    options.modes, options.benchmarks = options.modes.split(","), options.benchmarks.split(",")
    if unknown := set(options.modes) - set(MODES):
        parser.error(f"no such mode: {', '.join(sorted(unknown))}")
    return options


def main():
    options = arguments()
    about = harness.description()
    environment = prepared(options.benchmarks)
    modes = [mode for mode in MODES if mode in options.modes and mode != "untraced"]
    wanted = {mode: options.turns if mode == "heapledger-1" else min(FEWER, options.turns) for mode in modes}
    path = venvs.ROOT / "build" / f"bench-pyperformance-{platform.python_version()}.json"
    store = turns.Store(path, (*BENCHMARKS, *(set(options.benchmarks) - set(BENCHMARKS))), options.keep)
    for benchmark in options.benchmarks:

        def one(mode, benchmark=benchmark):
            return measure(environment, mode, benchmark)

        taken = turns.take(modes, wanted.get, one, longest=LONGEST)
        store.put(benchmark, taken)
        ratios = [[turns.shown(turns.ratio(taken[mode], name), 3) for name in ("time", "rss")] for mode in modes]
        shown = "  ".join(f"{mode} x{time} RSS x{rss}" for mode, (time, rss) in zip(modes, ratios, strict=True))
        harness.progress(f"{benchmark}: {shown}")
    text = render(store.programs, environment, about)
    report.put(options.out, {"pyperformance": text})
    print(text)


if __name__ == "__main__":
    main()
