"""Run real programs with and without `heapledger run`, and compare exit status and outcome.

    python tests/programs/run.py                  all of them; some take minutes
    python tests/programs/run.py json pip         these
    python tests/programs/run.py --list
    python tests/programs/run.py --tests FOLDER concurrent    with test modules that this interpreter came without

The interpreter's own tests are compared test by test, applications by what they print; with both, what is left behind:
files, and processes. A test that ends differently is run alone once more, both ways, because some tests of the
interpreter depend on timing; if it still differs, it is a difference. Ends with status 1 if there is any, or if a file
that was written cannot be loaded. What was printed is kept in build/programs-output-VERSION, warnings that only one of
two runs has shown are named.
"""

import argparse
import ctypes
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

import heapledger

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VERSION = "%d.%d" % sys.version_info[:2]
APPLICATIONS = ROOT / "build" / f"programs-{VERSION}"
OUTPUTS = ROOT / "build" / f"programs-output-{VERSION}"
TIMEOUT = 3600
PATIENCE = 10  # seconds, for such as multiprocessing's resource tracker, which ends a little later
PR_SET_CHILD_SUBREAPER = 36
# The interpreter's own tests, by the name of their module in the package `test`.
TESTS = {
    "json": "test_json",
    "asyncio": "test_asyncio",
    "subprocess": "test_subprocess",
    "threading": "test_threading",
    "signal": "test_signal",
    "concurrent": "test_concurrent_futures",
    "fork": "test_multiprocessing_fork",
    "spawn": "test_multiprocessing_spawn",
    "forkserver": "test_multiprocessing_forkserver",
}
# Tests that are not run, each with the reason.
LEFT_OUT = {
    "test_print_exception_gh_102056": "the interrupt it waits for may get lost at the recursion limit, and it never "
    "ends: seen on 3.12 and 3.13, without heapledger and with it",
}
# Builds of 3.11 and 3.12 may lack the modules that call the tests of multiprocessing, though not the tests.
MULTIPROCESSING = """
from test import _test_multiprocessing
_test_multiprocessing.install_tests_in_module_dict(globals(), {!r})
"""
SAMPLE_TESTS = """
import pytest
@pytest.fixture
def number(tmp_path):
    return 3
@pytest.mark.parametrize("i", range(50))
def test_pass(i, number, capsys):
    print(i)
    assert capsys.readouterr().out == f"{i}\\n"
def test_fail(number):
    assert number == 4, [number]
@pytest.mark.xfail
def test_expected():
    raise ValueError
def test_raises():
    with pytest.raises(ZeroDivisionError):
        1 / 0
"""


def adopt_orphans():
    """Make this process the parent of every descendant whose own parent has ended, so that none is overlooked."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    """{pid: command} of this process's children; the command of one that has ended is empty."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue
    return found


def left_behind(before, work, temporary):
    """Commands of processes and names of files that a program has left, which are ended and removed."""
    deadline = time.monotonic() + PATIENCE
    while any(c for pid, c in children().items() if pid not in before) and time.monotonic() < deadline:
        time.sleep(0.1)
    left = []
    for pid, command in children().items():
        if pid in before:
            continue
        if command:
            left.append(f"process {command}")
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for path in sorted(temporary.iterdir()):
        left.append(f"file {path.name}")
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return [*left, *(f"file {path.name}" for path in sorted(work.iterdir()))]


def execute(program, folder, traced):
    """Run python with these arguments: the finished process, how many files it wrote, and what it has left behind."""
    files, work, temporary = (pathlib.Path(folder, name) for name in ("files", "work", "tmp"))
    for each in (files, work, temporary):
        each.mkdir(exist_ok=True)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HEAPLEDGER"))}
    variables["PYTHONPATH"] = str(APPLICATIONS)
    variables["PYTHONHASHSEED"] = "0"
    variables["TMPDIR"] = str(temporary)
    command = [sys.executable, *program]
    if traced:
        command = [sys.executable, "-m", "heapledger", "run", "-q", "-n", "5", "-o", f"{files}/%p.hlsnap", *program]
    before = children()
    # Into files: a pipe would have to be waited for as long as a process that was left behind has it open.
    outputs = [pathlib.Path(folder, name) for name in ("stdout", "stderr")]
    with outputs[0].open("wb") as stdout, outputs[1].open("wb") as stderr:
        process = subprocess.Popen(
            command, cwd=work, env=variables, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
        try:
            status = process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            status = "none in time"
    done = subprocess.CompletedProcess(command, status, *(each.read_text(errors="replace") for each in outputs))
    left = left_behind(before, work, temporary)
    written = 0
    for path in files.iterdir():
        heapledger.Capture.load(path)  # whole, or it would say so
        path.unlink()
        written += 1
    return done, written, left


def warnings_in(text):
    """The lines that warn, without what differs from run to run."""
    return {re.sub(r"\d+|0x[0-9a-f]+|'/mp-\w+'", "-", line) for line in text.splitlines() if "Warning" in line}


class Outcomes:
    """What came of a run of one module of the interpreter's tests."""

    def __init__(self, name, folder, traced, only=None, tests=None):
        results = pathlib.Path(folder, "results.xml")
        results.unlink(missing_ok=True)
        program = ["-m", "test", "--junit-xml", str(results), *(["-m", only] if only else [])]
        for test in LEFT_OUT:
            program += ["--ignore", f"*.{test}"]
        program += ["--testdir", str(tests), f"{TESTS[name]}.test_all"] if tests else [TESTS[name]]
        done, self.written, self.left = execute(program, folder, traced)
        self.status = done.returncode
        self.text = f"{done.stdout}\n{done.stderr}"
        self.warnings = warnings_in(self.text)
        self.of = {}
        if results.exists():
            for case in ElementTree.parse(results).iter("testcase"):
                kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
                skipped = case.get("result") == "skipped" or case.find("skipped") is not None
                self.of[case.get("name")] = "skipped" if skipped else min(kinds, default="passed")
        if not only:
            OUTPUTS.mkdir(parents=True, exist_ok=True)
            kept = OUTPUTS / f"{name}-{'traced' if traced else 'plain'}"
            kept.with_suffix(".txt").write_text(self.text, errors="replace")
            if results.exists():
                shutil.copyfile(results, kept.with_suffix(".xml"))


def short(name):
    """A test's method, which regrtest selects by: "test_x (test.test_y.Class.test_x)" or "test.test_y.Class.test_x"."""
    return re.sub(r".*\((.*)\).*", r"\1", name) if "(" in name else name


def tests_for(name, folder, tests):
    """The folder to take the tests from if the interpreter came without them; None: it has them, False: nobody has."""
    module = TESTS[name]
    if importlib.util.find_spec(f"test.{module}") is not None:
        return None
    given = tests and pathlib.Path(tests, f"{module}.py")
    if given and given.exists():
        text = given.read_text()
    elif module.startswith("test_multiprocessing_"):
        text = MULTIPROCESSING.format(name)
    else:
        return False
    package = pathlib.Path(folder, "tests", module)  # regrtest insists on a package
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    (package / "test_all.py").write_text(text)
    return package.parent


def compare_tests(name, folder, only=None, tests=None):
    tests = tests_for(name, folder, tests)
    if tests is False:
        return None, "this interpreter came without these tests"
    plain = Outcomes(name, folder, False, only, tests)
    traced = Outcomes(name, folder, True, only, tests)
    if not plain.of or not traced.of:
        return f"no results: {plain.status} {plain.text[-2000:]}; {traced.status} {traced.text[-2000:]}", None
    differing = [test for test in plain.of.keys() | traced.of.keys() if plain.of.get(test) != traced.of.get(test)]
    real = []
    for test in differing:
        again = [Outcomes(name, folder, kind, short(test), tests).of for kind in (False, True)]
        if again[0] != again[1]:
            real.append(f"{test}: {plain.of.get(test)}, traced {traced.of.get(test)}")
    if plain.left != traced.left:
        real.append(f"left behind {plain.left}, traced {traced.left}")
    if plain.status != traced.status and not differing:
        real.append(f"exit status {plain.status}, traced {traced.status}\n{traced.text[-2000:]}")
    if real:
        return "; ".join(real), None
    passed = sum(outcome == "passed" for outcome in traced.of.values())
    note = f"{passed} of {len(traced.of)} tests pass both ways, {traced.written} files"
    if differing:
        note += f", run again: {', '.join(map(short, differing))}"
    for which, only_there in (
        ("plain", plain.warnings - traced.warnings),
        ("traced", traced.warnings - plain.warnings),
    ):
        note += "".join(f"\n    only {which}: {line}" for line in sorted(only_there))
    return None, note


def comparable(text):
    """The lines without what differs from run to run, such as the order in which processes come to an end."""
    return sorted(re.sub(r"\d+\.\d+ ?s(econds)?\b|0x[0-9a-f]+|\bpid \d+", "-", text).splitlines())


def compare_output(program, folder):
    plain, _, plain_left = execute(program, folder, False)
    traced, written, traced_left = execute(program, folder, True)
    if plain_left != traced_left:
        return f"left behind {plain_left}, traced {traced_left}", written
    for what in ("returncode", "stdout", "stderr"):
        before, after = getattr(plain, what), getattr(traced, what)
        if what != "returncode":
            before, after = comparable(before), comparable(after)
        if before != after:
            return f"{what} {str(before)[:2000]}, traced {str(after)[:2000]}", written
    length = len(traced.stdout) + len(traced.stderr)
    return None, f"exit status {traced.returncode}, the same {length} bytes of output, {written} files"


def install_applications():
    """Into a folder of their own, at pinned versions, unless they are there."""
    wanted = ROOT / "tools" / "requirements-programs.txt"
    complete = APPLICATIONS / "complete"
    if complete.exists() and complete.read_text() == wanted.read_text():
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    subprocess.run([*command, "--target", APPLICATIONS, "-r", wanted], check=True)
    complete.write_text(wanted.read_text())


def applications(folder):
    """{name: arguments of python}."""
    work = pathlib.Path(folder, "work")
    work.mkdir()
    (work / "test_sample.py").write_text(SAMPLE_TESTS)
    sources = work / "sources"
    sources.mkdir()
    for number in range(12):
        (sources / f"a{number}.py").write_text("x = {  'a':1,\n 'b':[1,2,\n3]}\n" * (number + 1))
    return {
        "pip": ["-m", "pip", "--disable-pip-version-check", "list", "--format=json"],
        "pytest": ["-m", "pytest", "-v", "-p", "no:cacheprovider", "test_sample.py"],
        "black": ["-m", "black", "--check", "--workers", "3", "sources"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="all unless given")
    parser.add_argument("--list", action="store_true", help="say which there are")
    parser.add_argument("--tests", metavar="FOLDER", help="where there are test modules that the interpreter lacks")
    parser.add_argument("--only", metavar="PATTERN", help="of the interpreter's own tests, those that match")
    options = parser.parse_args()
    failed = False
    adopt_orphans()
    with tempfile.TemporaryDirectory() as folder:
        known = applications(folder)
        if options.list:
            print(*TESTS, *known)
            return 0
        names = options.programs or [*TESTS, *known]
        if "black" in names:
            install_applications()
        for name in names:
            began = time.monotonic()
            if name in TESTS:
                problem, note = compare_tests(name, folder, options.only, options.tests)
            else:
                problem, note = compare_output(known[name], folder)
            failed |= problem is not None
            outcome = note if problem is None else f"DIFFERENT: {problem}"
            print(f"{VERSION} {name}: {outcome} [{time.monotonic() - began:.0f} s]", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
