"""Run the interpreter's own regression suite, traced from the start and untraced, and compare test by test.

    python tests/regrtest/run.py [SELECTION] [--only FILE...] [--both] [--again] [--jobs N] [--junit FILE] [--broken]

SELECTION is quick, soak or all (the default); selections.toml has the lists, and says what is left out and why. Every
test file has processes of its own, those that take longest first; one that crashes, hangs or leaves a damaged ledger is
a result like any other. The traced run has HEAPLEDGER=10 in its environment, which processes that tests start inherit.

A file is run traced. If all of its tests have passed, and are those that an untraced process lists, there is nothing to
compare (--both compares nevertheless). If not, it is run untraced, too; where the two differ, both are repeated: what
differs every time is a difference, and the status is 1; what changes from run to run is reported as unsteady.

Results and the output of tests stay in build/regrtest-VERSION. A stopped run goes on where it was; results of another
heapledger do not count for that, and untraced ones hold for every heapledger. With --again all is run again. With
--broken the traced run keeps references to frames that it should not; the status is 0 if that is noticed.
"""

import argparse
import concurrent.futures
import fnmatch
import importlib.util
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree

import results

HERE = pathlib.Path(__file__).resolve().parent
VERSION = platform.python_version()
SHORT = "%d.%d" % sys.version_info[:2]
BUILD = HERE.parent.parent / "build"
OUTPUT = BUILD / f"regrtest-{VERSION}"
FRAMES = "10"
TIMEOUT = 900
ATTEMPTS = 3
UNKNOWN_SECONDS = 5  # taken for what has never run


class Lists:
    """What selections.toml says for this version."""

    def __init__(self):
        listed = tomllib.loads((HERE / "selections.toml").read_text(encoding="utf-8"))
        self.quick = listed["quick"]["files"]
        self.soak = self.quick + listed["soak"]["files"]
        groups = [group for group in listed["leave_out"] if SHORT in group.get("versions", [SHORT])]
        self.files_left_out = [file for group in groups for file in group.get("files", [])]
        self.cases_left_out = [case for group in groups for case in group.get("cases", [])]

    def files(self, selection):
        patterns = ["*"] if selection == "all" else getattr(self, selection)
        return [file for file in suite_files() if matches(file, patterns) and not matches(file, self.files_left_out)]


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def suite_files():
    """The suite's test files and packages, by their names for python -m test."""
    found = subprocess.check_output([sys.executable, "-m", "test", "--list-tests"], text=True, cwd="/")
    return [line.strip() for line in found.splitlines() if line.strip().startswith("test")]


def environment(traced):
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HEAPLEDGER"))}
    variables["PYTHONHASHSEED"] = "1"
    if traced:
        variables["HEAPLEDGER"] = FRAMES
    return variables


def path(file, traced, options, ending):
    """Where something is kept of a file's runs of one kind."""
    kind = ("broken" if options.broken else "traced") if traced else "untraced"
    return OUTPUT / f"{file}-{kind}.{ending}"


def run_file(file, traced, options):
    """Run one test file; {test: outcome}, with how the process ended under the file's own name."""
    log, junit = (path(file, traced, options, ending) for ending in ("txt", "xml"))
    junit.unlink(missing_ok=True)
    command = [sys.executable, "-X", "faulthandler", str(HERE / "child.py")]
    command += ["--broken"] if traced and options.broken else []
    command += ["--timeout", str(TIMEOUT), "--junit-xml", str(junit)]
    for case in options.lists.cases_left_out:
        command += ["--ignore", case]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, file],
            cwd=OUTPUT,
            env=environment(traced),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            ending = f"status {process.wait(TIMEOUT + 60)}"
        except subprocess.TimeoutExpired:
            ending = "did not end"
        try:
            os.killpg(process.pid, signal.SIGKILL)  # and whatever the tests have left running
        except ProcessLookupError:
            pass
        process.wait()
    return {file: ending, **read_cases(file, junit)}


def read_cases(file, junit):
    """{test: outcome} of a result file; a test that ran several times (in parts) has failed if one part has."""
    cases = {}
    if junit.exists():
        for case in ElementTree.parse(junit).iter("testcase"):
            found = {child.tag for child in case} & {"failure", "error", "skipped"}
            name, outcome = case.get("name") or f"{file}: a part of a test", min(found, default="passed")
            name = re.sub("0x[0-9a-f]+", "0x...", name)  # parts are named by what they are about: addresses change
            cases[name] = min(cases.get(name, outcome), outcome, key=["error", "failure", "passed", "skipped"].index)
    return cases


def listed_cases(file, options):
    """The tests that an untraced process finds in the file, without running them."""
    command = [sys.executable, "-m", "test", "--list-cases"]
    for case in options.lists.cases_left_out:
        command += ["--ignore", case]
    variables = environment(traced=False)
    listed = subprocess.run([*command, file], cwd=OUTPUT, env=variables, capture_output=True, text=True)
    return set(listed.stdout.split("\n")) - {""}


def is_clean(file, run, options):
    """Whether all tests that there are have passed."""
    cases = {test: outcome for test, outcome in run.items() if test != file}
    return run[file] == "status 0" and set(cases.values()) == {"passed"} and set(cases) == listed_cases(file, options)


class Comparison:
    """One file: its runs, and what they have in common."""

    def __init__(self, file, options):
        self.file, self.options = file, options
        self.runs = {
            traced: results.Results(path(file, traced, options, "json"), options.keys[traced])
            for traced in (False, True)
        }
        if options.again:
            for kept in self.runs.values():
                kept.forget()

    def need(self, traced, count):
        """Run the file until there are so many runs of a kind."""
        while len(self.runs[traced].runs) < count:
            start = time.monotonic()
            run = run_file(self.file, traced, self.options)
            self.runs[traced].add(run, round(time.monotonic() - start, 1))

    def make(self):
        """Find how many tests there are, whether there was a need to compare, and what differs, {test: text}."""
        self.differences, self.unsteady = {}, {}
        self.need(True, 1)
        first = self.runs[True].runs[0]
        self.tests = len(first) - 1
        self.skipped = list(first.values()).count("skipped")
        self.ending = first[self.file]
        self.compared = self.options.both or bool(self.runs[False].runs) or not is_clean(self.file, first, self.options)
        if not self.compared:
            return
        for attempt in range(1, 2 if self.options.broken else ATTEMPTS + 1):
            self.need(False, attempt)
            self.need(True, attempt)
            if self.runs[False].runs[attempt - 1] == self.runs[True].runs[attempt - 1]:
                break
        untraced, traced = self.runs[False].runs[:attempt], self.runs[True].runs[:attempt]
        for test in {test for run in untraced + traced for test in run}:
            before = {run.get(test, "did not run") for run in untraced}
            after = {run.get(test, "did not run") for run in traced}
            text = f"{', '.join(sorted(before))}; traced: {', '.join(sorted(after))}"
            if not before & after:
                self.differences[test] = text
            elif len(before | after) > 1:
                self.unsteady[test] = text

    def word(self):
        if self.differences:
            return "DIFFERS"
        return "unsteady" if self.unsteady else "same" if self.compared else "all passed"


def write_junit(path, comparisons):
    """One case for each test file, in the form that tools/closing_line.py adds up."""
    suite = ElementTree.Element("testsuite", name=f"regrtest-{SHORT}")
    for made in comparisons:
        case = ElementTree.SubElement(suite, "testcase", classname="regrtest", name=made.file)
        if made.differences:
            ElementTree.SubElement(case, "failure").text = "\n".join(map(": ".join, made.differences.items()))
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def check_tracing():
    """The whole comparison means nothing unless the second run is traced and the first is not."""
    for traced in (False, True):
        script = "import heapledger as h; print(h.is_tracing(), h.get_traceback_limit())"
        command = [sys.executable, "-c", script]
        found = subprocess.check_output(command, text=True, env=environment(traced), cwd="/").split()
        if found != ([str(True), FRAMES] if traced else [str(False), "1"]):
            sys.exit(f"regrtest {VERSION}: HEAPLEDGER does not work here: {found}")


def run_all(files, options):
    """The comparisons of all files, with a line for each. The longest come first, so that none is waited for alone."""
    seconds = {file: results.known_seconds(BUILD, file) for file in files}
    files = sorted(files, key=lambda file: -(seconds[file] if seconds[file] is not None else UNKNOWN_SECONDS))
    comparisons = [Comparison(file, options) for file in files]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(comparison.make): comparison for comparison in comparisons}
        for done, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            job.result()
            made = jobs[job]
            counts = f"{made.tests} tests, {made.skipped} skipped, {made.ending}"
            print(f"[{done}/{len(files)}] {made.file}: {made.word()}, {counts}", flush=True)
            for test, text in {**made.differences, **made.unsteady}.items():
                print(f"    {test}: {text}", flush=True)
    return comparisons


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("selection", nargs="?", default="all", choices=["quick", "soak", "all"])
    parser.add_argument("--only", nargs="+", metavar="FILE", help="these files in place of a selection")
    parser.add_argument("--both", action="store_true", help="run also untraced what has passed traced")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs have found")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="how many files at a time (2)")
    parser.add_argument("--junit", metavar="FILE", help="write the results there, too")
    parser.add_argument("--broken", action="store_true", help="break the traced run and check that it is noticed")
    options = parser.parse_args()
    options.again |= options.broken
    options.both |= options.broken
    if importlib.util.find_spec("test") is None or importlib.util.find_spec("test.libregrtest") is None:
        print(f"regrtest {VERSION}: NOT RUN, the interpreter's own tests are not installed", file=sys.stderr)
        return os.environ.get("CI") == "true"
    check_tracing()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    options.lists = Lists()
    left_out = options.lists.cases_left_out
    options.keys = {False: results.untraced_key(left_out), True: results.traced_key(left_out, FRAMES)}
    files = options.only or options.lists.files(options.selection)
    start = time.monotonic()
    made = run_all(files, options)
    count = sum(len(one.differences) for one in made)
    unsteady = sum(len(one.unsteady) for one in made)
    print(
        f"regrtest {VERSION} {'' if options.only else options.selection}: {len(files)} files, "
        f"{sum(one.compared for one in made)} compared, {sum(one.tests for one in made)} tests, "
        f"{sum(one.skipped for one in made)} skipped, {count} differences, {unsteady} unsteady, "
        f"{time.monotonic() - start:.0f} s"
    )
    if options.junit:
        write_junit(options.junit, made)
    if options.broken:
        return 0 if count else "the breakage was not noticed"
    return count > 0


if __name__ == "__main__":
    sys.exit(main())
