"""Run real programs with and without `heapledger run`, and compare exit status and outcome.

    python tests/programs/run.py                  all of them; some take minutes
    python tests/programs/run.py json pip         these
    python tests/programs/run.py --list

The interpreter's own tests are compared test by test, applications by what they print. A test that ends differently is
run alone once more, both ways, because some tests of the interpreter depend on timing; if it still differs, it is
a difference. Ends with status 1 if there is any, or if a file that was written cannot be loaded.
"""

import argparse
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

import heapledger

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VERSION = "%d.%d" % sys.version_info[:2]
APPLICATIONS = ROOT / "build" / f"programs-{VERSION}"
TIMEOUT = 1800
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


def execute(program, folder, traced):
    """Run python with these arguments: the finished process, and how many files it wrote."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HEAPLEDGER"))}
    variables["PYTHONPATH"] = str(APPLICATIONS)
    variables["PYTHONHASHSEED"] = "0"
    files = pathlib.Path(folder, "files")
    files.mkdir(exist_ok=True)
    command = [sys.executable, *program]
    if traced:
        command = [sys.executable, "-m", "heapledger", "run", "-q", "-n", "5", "-o", f"{files}/%p.hlsnap", *program]
    work = pathlib.Path(folder, "work")
    work.mkdir(exist_ok=True)
    done = subprocess.run(
        command, cwd=work, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT
    )
    written = 0
    for path in files.iterdir():
        heapledger.Capture.load(path)  # whole, or it would say so
        path.unlink()
        written += 1
    return done, written


def outcomes_of(name, folder, traced, only=None):
    """{test: outcome} of a module of the interpreter's tests, its exit status, and how many files there were."""
    results = pathlib.Path(folder, "results.xml")
    results.unlink(missing_ok=True)
    program = ["-m", "test", "--junit-xml", str(results), *(["-m", only] if only else []), TESTS[name]]
    done, written = execute(program, folder, traced)
    if not results.exists():
        return {}, done.returncode, written, done.stderr[-2000:]
    outcomes = {}
    for case in ElementTree.parse(results).iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        skipped = case.get("result") == "skipped" or case.find("skipped") is not None
        outcomes[case.get("name")] = "skipped" if skipped else min(kinds, default="passed")
    return outcomes, done.returncode, written, done.stdout[-2000:] + done.stderr[-2000:]


def short(name):
    """A test's method, which regrtest selects by: "test_x (test.test_y.Class.test_x)" or "test.test_y.Class.test_x"."""
    return re.sub(r".*\((.*)\).*", r"\1", name) if "(" in name else name


def compare_tests(name, folder, only=None):
    if importlib.util.find_spec(f"test.{TESTS[name]}") is None:
        return None, "this interpreter came without these tests"
    plain, plain_status, _, plain_text = outcomes_of(name, folder, False, only)
    traced, traced_status, written, text = outcomes_of(name, folder, True, only)
    if not plain or not traced:
        return f"no results: {plain_status} {plain_text}; {traced_status} {text}", written
    differing = [test for test in plain.keys() | traced.keys() if plain.get(test) != traced.get(test)]
    real = []
    for test in differing:
        again = [outcomes_of(name, folder, kind, short(test))[0] for kind in (False, True)]
        if again[0] != again[1]:
            real.append(f"{test}: {plain.get(test)}, traced {traced.get(test)}")
    passed = sum(outcome == "passed" for outcome in traced.values())
    if real:
        return "; ".join(real), written
    note = f" ({len(differing)} run again)" if differing else ""
    if plain_status != traced_status and not differing:
        return f"exit status {plain_status}, traced {traced_status}\n{text}", written
    return None, f"{passed} of {len(traced)} tests pass both ways{note}, {written} files"


def comparable(text):
    """The lines without what differs from run to run, such as the order in which processes come to an end."""
    return sorted(re.sub(r"\d+\.\d+ ?s(econds)?\b|0x[0-9a-f]+|\bpid \d+", "-", text).splitlines())


def compare_output(program, folder):
    plain, _ = execute(program, folder, False)
    traced, written = execute(program, folder, True)
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
    parser.add_argument("--only", metavar="PATTERN", help="of the interpreter's own tests, those that match")
    options = parser.parse_args()
    failed = False
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
                problem, note = compare_tests(name, folder, options.only)
            else:
                problem, note = compare_output(known[name], folder)
            failed |= problem is not None
            outcome = note if problem is None else f"DIFFERENT: {problem}"
            print(f"{VERSION} {name}: {outcome} [{time.monotonic() - began:.0f} s]", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
