"""Run the interpreter's own test_tracemalloc with heapledger in the place of tracemalloc.

    python tests/conformance/run.py             fails unless all tests pass
    python tests/conformance/run.py --broken    breaks heapledger on purpose; fails unless most of the tests notice

The tests run in a child process, so that a crash of it is a result like any other. Some start interpreters themselves
and want these to trace; so the child belongs to a virtual environment made for it, in which heapledger is enabled.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from environments import Environment  # noqa: E402

VERSION = "%d.%d" % sys.version_info[:2]


# How many tests each version's suite has. None may be missing, and none of them may skip itself.
EXPECTED = {"3.11": 48, "3.12": 48, "3.13": 48, "3.14": 51, "3.15": 51}


def run_child(broken):
    """The child's results: a list of [test, outcome, text], or None and a sentence when it did not get that far."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HEAPLEDGER"))}
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(pathlib.Path(folder, "environment"))
        environment.command("enable")
        if broken:
            # For the child and for those that its tests start. `site` may execute it twice; breaking twice would mend.
            line = (
                f"import sys; sys.path.append({str(HERE)!r}); "
                "'breakage' in sys.modules or __import__('breakage').break_engine()\n"
            )
            (environment.site_packages / "zz-broken.pth").write_text(line, encoding="utf-8")
        results = pathlib.Path(folder, "results.json")
        done = subprocess.run(
            [environment.python, "-X", "faulthandler", str(HERE / "child.py"), str(results)],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
        )
        if done.returncode != 0 or not results.exists():
            return None, f"the child ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return json.loads(results.read_text()), ""


def count(results, outcome):
    return sum(1 for _test, found, _text in results if found == outcome)


def write_junit(path, results):
    """The results in the form that tools/closing_line.py adds up."""
    suite = ElementTree.Element("testsuite", name=f"conformance-{VERSION}")
    for test, outcome, text in results:
        case = ElementTree.SubElement(suite, "testcase", classname="test_tracemalloc", name=test)
        if outcome != "passed":
            ElementTree.SubElement(case, "failure").text = text
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def check_conforms(results):
    """Print what happened; True when heapledger passes."""
    for test, outcome, text in results:
        if outcome != "passed":
            print(f"{outcome.upper()}: {test}\n{text}")
    ran = len(results) - count(results, "skipped itself")
    failed, expected = count(results, "failed"), EXPECTED[VERSION]
    print(f"conformance {VERSION}: {ran} ran, {failed} failed")
    if ran < expected:
        print(f"conformance {VERSION}: at least {expected} must run")
    return failed == 0 and ran >= expected and ran == len(results)


def check_notices(results):
    """Print what happened with the broken engine; True when most tests failed."""
    passed = [test for test, outcome, _text in results if outcome == "passed"]
    failed = count(results, "failed")
    print(f"conformance {VERSION}, engine broken on purpose: {len(results)} ran, {failed} failed")
    print("not noticed by:", ", ".join(passed) or "none")
    return failed > 0.75 * len(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--broken", action="store_true", help="break heapledger and check that the tests notice")
    parser.add_argument("--junit", metavar="FILE", help="write the results there, too")
    options = parser.parse_args()
    if importlib.util.find_spec("test") is None or importlib.util.find_spec("test.test_tracemalloc") is None:
        print(f"conformance {VERSION}: NOT RUN, the interpreter's own tests are not installed", file=sys.stderr)
        print(f"(on Debian: apt-get install libpython{VERSION}-testsuite)", file=sys.stderr)
        return os.environ.get("CI") == "true"
    results, problem = run_child(options.broken)
    if results is None:
        print(f"conformance {VERSION}: {problem}")
        return 1
    if options.junit:
        write_junit(options.junit, results)
    return not (check_notices(results) if options.broken else check_conforms(results))


if __name__ == "__main__":
    sys.exit(main())
