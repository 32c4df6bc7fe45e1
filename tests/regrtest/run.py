"""Run the interpreter's own regression suite twice, untraced and traced from the start, and compare test by test.

    python tests/regrtest/run.py [SELECTION] [--only FILE...] [--jobs N] [--junit FILE] [--broken]

SELECTION is quick, soak or all (the default); selections.toml has the lists, and says what is left out and why. The
traced run has HEAPLEDGER=10 in its environment, which the processes that tests start inherit. Every test file has
processes of its own; one that crashes, hangs or leaves a damaged ledger is a result like any other. Where the two runs
differ, both are repeated: what differs every time is a difference, and the status is 1; what changes from run to run is
reported as unsteady. Output of the tests stays in build/regrtest-VERSION.

With --broken the traced run keeps references to frames that it should not; the status is 0 if that is noticed.
"""

import argparse
import concurrent.futures
import fnmatch
import importlib.util
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
VERSION = platform.python_version()
SHORT = "%d.%d" % sys.version_info[:2]
OUTPUT = HERE.parent.parent / "build" / f"regrtest-{VERSION}"
FRAMES = "10"
TIMEOUT = 900
ATTEMPTS = 3


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


def run_file(file, traced, options):
    """Run one test file; {test: outcome}, with how the process ended under the file's own name."""
    name = f"{file}-{'traced' if traced else 'untraced'}"
    log, junit = OUTPUT / f"{name}.txt", OUTPUT / f"{name}.xml"
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
            cases[name] = min(cases.get(name, outcome), outcome, key=["error", "failure", "passed", "skipped"].index)
    return cases


def compare(file, options):
    """(the untraced results, differences, unsteady tests): both as {test: text}."""
    seen = {}
    for _ in range(1 if options.broken else ATTEMPTS):
        untraced, traced = (run_file(file, traced, options) for traced in (False, True))
        for test in untraced.keys() | traced.keys():
            outcomes = seen.setdefault(test, (set(), set()))
            outcomes[0].add(untraced.get(test, "did not run"))
            outcomes[1].add(traced.get(test, "did not run"))
        if untraced == traced:
            break
    differences, unsteady = {}, {}
    for test, (before, after) in seen.items():
        text = f"{', '.join(sorted(before))}; traced: {', '.join(sorted(after))}"
        if not before & after:
            differences[test] = text
        elif len(before | after) > 1:
            unsteady[test] = text
    return untraced, differences, unsteady


def write_junit(path, results):
    """One case for each test file, in the form that tools/closing_line.py adds up."""
    suite = ElementTree.Element("testsuite", name=f"regrtest-{SHORT}")
    for file, differences in results.items():
        case = ElementTree.SubElement(suite, "testcase", classname="regrtest", name=file)
        if differences:
            ElementTree.SubElement(case, "failure").text = "\n".join(map(": ".join, differences.items()))
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
    """({file: differences}, {file: unsteady}, how many tests were compared), with a line for each file."""
    differing, unsteady, tests = {}, {}, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(compare, file, options): file for file in files}
        for done, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            file = jobs[job]
            untraced, differing[file], changing = job.result()
            tests += len(untraced) - 1
            unsteady.update(changing)
            word = "DIFFERS" if differing[file] else "unsteady" if changing else "same"
            print(f"[{done}/{len(files)}] {file}: {word}, {len(untraced) - 1} tests, {untraced[file]}", flush=True)
            for test, text in {**differing[file], **changing}.items():
                print(f"    {test}: {text}", flush=True)
    return differing, unsteady, tests


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("selection", nargs="?", default="all", choices=["quick", "soak", "all"])
    parser.add_argument("--only", nargs="+", metavar="FILE", help="these files in place of a selection")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="how many files at a time (2)")
    parser.add_argument("--junit", metavar="FILE", help="write the results there, too")
    parser.add_argument("--broken", action="store_true", help="break the traced run and check that it is noticed")
    options = parser.parse_args()
    if importlib.util.find_spec("test") is None or importlib.util.find_spec("test.libregrtest") is None:
        print(f"regrtest {VERSION}: NOT RUN, the interpreter's own tests are not installed", file=sys.stderr)
        return os.environ.get("CI") == "true"
    check_tracing()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    options.lists = Lists()
    files = options.only or options.lists.files(options.selection)
    start = time.monotonic()
    differing, unsteady, tests = run_all(files, options)
    count = sum(map(len, differing.values()))
    print(
        f"regrtest {VERSION} {'' if options.only else options.selection}: {len(files)} files, {tests} tests, "
        f"{count} differences, {len(unsteady)} unsteady, {time.monotonic() - start:.0f} s"
    )
    if options.junit:
        write_junit(options.junit, differing)
    if options.broken:
        return 0 if count else "the breakage was not noticed"
    return count > 0


if __name__ == "__main__":
    sys.exit(main())
