"""The pytest plugin, in real runs of pytest: each in a process of its own."""

import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import sys

import pytest
from pytest_runs import Run

VERSION = "cpython-%d.%d" % sys.version_info[:2]


def numbers(folder, name="budgets.json"):
    return json.loads(pathlib.Path(folder, name).read_text())[VERSION]


TESTS = """
import unittest

import pytest

kept = []
cache = {}

@pytest.mark.limit_memory("1 MB")
def test_too_large():
    rows = [bytes(1000) for _ in range(2000)]
    assert rows

@pytest.mark.limit_memory("3 MiB")
def test_large_enough():
    assert [bytes(1000) for _ in range(2000)]

@pytest.mark.limit_leaks("1 KB")
def test_leak():
    kept.append(bytes(5000))

@pytest.mark.limit_leaks(0)
def test_cache():
    cache.setdefault("key", bytearray(5000))
    cycle = [bytearray(5000)]
    cycle.append(cycle)

class Case(unittest.TestCase):
    def test_unittest(self):
        kept.append(bytearray(300_000))
"""


def test_nothing_is_loaded_unless_asked_for(write):
    folder = write(
        test_one="import sys\ndef test_one():\n    assert not [name for name in sys.modules if 'heapledger' in name"
        " and name != '_heapledger_pytest']\n"
    )
    run = Run(folder)
    assert run.status == 0, run.text
    assert "heapledger" not in run.text
    run = Run(folder, "--heapledger-update")
    assert run.status == 4
    run.has("--heapledger-update needs --heapledger-baseline")
    run = Run(folder, "--markers", "-p", "no:heapledger")
    assert "limit_memory" not in run.text


def test_markers_and_lists(write):
    folder = write(test_all=TESTS)
    run = Run(folder)
    assert run.status == 1
    run.has("2 failed, 3 passed", "test_too_large", "test_leak")
    run.has("heapledger: peak 2.0 MiB above the start, 976.6 KiB allowed")
    run.has("test_all.py:11\n", "rows = [bytes(1000) for _ in range(2000)]")
    run.has("in 1 block left behind by each call, 1000 B allowed", "kept.append(bytes(5000))")
    assert "largest" not in run.text
    run = Run(folder, "--heapledger", "--heapledger-top=2")
    run.has("the largest peaks", "what tests have left behind")
    listed = run.text[run.text.index("the largest peaks") :].splitlines()
    peaks = [line.split()[-1] for line in listed[2:4]]
    assert sorted(peaks) == ["test_all.py::test_large_enough", "test_all.py::test_too_large"]
    assert " 29" in listed[6] and listed[6].endswith("test_all.py::Case::test_unittest")


def test_leaks_can_be_filtered_and_come_from_callees(write):
    folder = write(
        library="kept = []\ndef keep(size):\n    kept.append(bytearray(size))\n",
        test_all="""
import pytest
import library
from heapledger import Filter

class Lazy(Filter):
    pass

@pytest.mark.limit_leaks("1 KB", filter=Filter(False, "*library.py"))
def test_filtered():
    library.keep(5000)

@pytest.mark.limit_leaks("1 KB", filter=[Filter(True, "*library.py")], rounds=2, warmup=0)
def test_callee():
    library.keep(6000)
""",
    )
    run = Run(folder)
    run.has("1 failed, 1 passed", "library.py:3", "kept.append(bytearray(size))", "called from test_all.py:")
    run.has("library.keep(6000)")


def test_baseline(write):
    source = "def test_one():\n    rows = [bytes(size) for size in range(1000, 1100)]\n    assert rows\n{}"
    folder = write(test_one=source.format(""))
    options = "--heapledger-baseline=budgets.json", "--heapledger-tolerance=0"
    (folder / "budgets.json").write_text(
        json.dumps({"heapledger baseline": 1, "cpython-3.10": {"a": dict.fromkeys(
            ("peak", "allocated", "blocks", "leaked", "leaked_blocks"), 5)}})
    )  # fmt: skip
    run = Run(folder, *options)
    assert run.status == 0, run.text
    run.has("0 tests compared, 1 added")
    first = numbers(folder)
    assert first["test_one.py::test_one"]["blocks"] >= 100
    assert "cpython-3.10" in (folder / "budgets.json").read_text()  # those of other versions stay
    run = Run(folder, *options)
    assert run.status == 0 and numbers(folder) == first
    run.has("1 test compared, 0 added, 0 updated")
    write(test_one=source.format("    bytes(7)\n"))
    run = Run(folder, *options)
    assert run.status == 1 and numbers(folder) == first
    run.has("bytes allocated: ", "test_one.py:4", "bytes(7)")
    run.has("1 test compared, 0 added, 0 updated")
    # An object of 40 bytes; where freelists are seen, the tuple of its arguments as well.
    assert re.search(r"blocks allocated: .* in the baseline \(\+[12]\)", run.text), run.text
    for allowed in ("--heapledger-tolerance=2",), ():  # the default is more than a block
        run = Run(folder, options[0], *allowed)
        assert run.status == 0, run.text
    gone = {"test_one.py::test_gone": first["test_one.py::test_one"]}
    (folder / "budgets.json").write_text(json.dumps({"heapledger baseline": 1, VERSION: {**first, **gone}}))
    run = Run(folder, *options, "--heapledger-update")
    assert run.status == 0 and numbers(folder)["test_one.py::test_one"] != first["test_one.py::test_one"]
    assert numbers(folder).items() > gone.items()  # a run may be of a selection, so tests that have not run stay
    run.has("0 tests compared, 0 added, 1 updated")
    write(test_one=source.format(""))
    run = Run(folder, *options)
    assert run.status == 0
    run.has("1 test needs less than the baseline says")
    (folder / "budgets.json").write_text('{"heapledger baseline": 1, "cpython-3.10": {"a": 5}}')
    run = Run(folder, *options)
    assert run.status == 4
    run.has("is damaged")


ALLOWED = [  # by default; docs/pytest.md explains it
    ("peak", 8000, True),
    ("peak", 11_000, False),
    ("allocated", 8000, True),
    ("allocated", 11_000, False),
    ("blocks", 32, True),
    ("blocks", 50, False),
    ("leaked", 3900, True),
    ("leaked", 4100, False),
    ("leaked_blocks", 1, False),
]


def test_what_the_baseline_allows(write):
    """Five per cent and a little, or what --heapledger-tolerance says instead."""
    folder = write(
        test_one=f"import pytest\n@pytest.mark.parametrize('number', range({len(ALLOWED)}))\n"
        "def test_one(number):\n    assert [bytes(size) for size in range(1000, 1100)]\n"
    )
    Run(folder, "--heapledger-baseline=budgets.json")
    budgets = numbers(folder)
    for number, (name, less, _) in enumerate(ALLOWED):
        measured = budgets[f"test_one.py::test_one[{number}]"]
        assert 100_000 < measured["peak"] < 120_000 and 100 < measured["blocks"] < 350 and measured["leaked"] == 0
        measured[name] -= less
    (folder / "budgets.json").write_text(json.dumps({"heapledger baseline": 1, VERSION: budgets}))
    run = Run(folder, "--heapledger-baseline=budgets.json", "-rf")
    for number, (name, less, allowed) in enumerate(ALLOWED):
        assert (f"FAILED test_one.py::test_one[{number}]" not in run.text) == allowed, (name, less, run.text)
    Run(folder, "--heapledger-baseline=budgets.json", "--heapledger-tolerance=5").has(f"{len(ALLOWED)} failed")


def test_workers_report_to_the_controller(write):
    folder = write(test_all=TESTS)
    options = "--heapledger", "--heapledger-baseline=budgets.json", "--heapledger-warmup=1"
    run = Run(folder, *options, "-n2", plugins=["xdist"])
    assert run.status == 1
    run.has("2 failed, 3 passed", "the largest peaks", "test_all.py::Case::test_unittest", "3 added")
    from_workers = numbers(folder)
    Run(folder, *options, "-n2", plugins=["xdist"]).has("3 tests compared, 0 added, 0 updated")
    os.unlink(folder / "budgets.json")
    Run(folder, *options)
    alone = numbers(folder)
    for name in ("test_all.py::test_large_enough", "test_all.py::test_cache"):
        assert from_workers[name].keys() == alone[name].keys()
        for key, number in from_workers[name].items():  # a worker's own thread may empty or fill a freelist meanwhile
            assert abs(number - alone[name][key]) <= (4 if "blocks" in key else 512), (key, from_workers, alone)


def test_asyncio(write):
    folder = write(
        test_all="""
import asyncio, pytest

kept = []

@pytest.mark.asyncio
@pytest.mark.limit_memory("200 KB")
async def test_too_large():
    await asyncio.sleep(0)
    block = bytes(300_000)

@pytest.mark.asyncio
@pytest.mark.limit_leaks("2 KB")
async def test_leak():
    await asyncio.sleep(0)
    kept.append(bytearray(5000))

@pytest.mark.asyncio
@pytest.mark.limit_leaks("2 KB")
async def test_clean():
    await asyncio.sleep(0)
"""
    )
    run = Run(folder, plugins=["asyncio"])
    run.has("2 failed, 1 passed", "block = bytes(300_000)", "kept.append(bytearray(5000))")


DOCTESTS = """
def rows(number):
    '''
    >>> len(rows(2000))
    2000
    '''
    return [bytes(1000) for _ in range(number)]

def leak(kept=[]):
    '''
    >>> leak()
    '''
    kept.append(bytearray(300_000))
"""


def test_doctests(write):
    folder = write(library=DOCTESTS)
    run = Run(folder, "--doctest-modules", "--heapledger")
    run.has("2 passed", "the largest peaks above the start of the test:", "what tests have left behind:")
    peaks, _, left = run.text.partition("what tests have left behind:")
    assert re.search(r"2\.0 MiB .* library.py::library.rows\n", peaks)
    assert re.search(r"(29|30)\d\.\d KiB +\d+  library.py::library.leak\n", left)
    assert left.index("library.leak") < left.index("library.rows")  # doctest itself leaves a little


def test_doctests_have_budgets_and_markers(write):
    """The markers of a doctest come from its module."""
    marked = "import pytest\npytestmark = pytest.mark.limit_memory('1 MB')\n" + DOCTESTS
    run = Run(write(library=marked), "--doctest-modules")
    run.has("1 failed, 1 passed", "heapledger: peak 2.0 MiB above", "return [bytes(1000) for _ in range(number)]")
    run = Run(write(library=marked.replace("limit_memory", "limit_leaks")), "--doctest-modules")
    run.has("2 failed", "limit_leaks needs a test function, which can be called several times")
    folder = write(library=DOCTESTS)
    assert Run(folder, "--doctest-modules", "--heapledger-baseline=budgets.json").status == 0
    assert Run(folder, "--doctest-modules", "--heapledger-baseline=budgets.json").status == 0
    write(library=DOCTESTS.replace("bytes(1000)", "bytes(1200)"))
    run = Run(folder, "--doctest-modules", "--heapledger-baseline=budgets.json")
    run.has("1 failed, 1 passed", "bytes allocated: ", "library.rows")


def test_compiling_a_doctest_is_not_measured(write):
    """What the compiler takes differs with the addresses in the process. The examples only define a function."""

    def doctest(name, lines):
        body = "".join(f"    ...     print([x for x in range({number})])\n" for number in range(lines))
        return f"def {name}():\n    '''\n    >>> def f():\n{body}    '''\n\n"

    # The first does what doctest does once in a process.
    folder = write(library=doctest("a", 1) + doctest("b", 60) + doctest("c", 1))
    assert Run(folder, "--doctest-modules", "--heapledger-baseline=budgets.json").status == 0
    long, brief = (numbers(folder)[f"library.py::library.{name}"]["allocated"] for name in "bc")
    assert abs(long - brief) < 1000  # compiling takes 100 KB more


@pytest.mark.skipif(importlib.util.find_spec("pytest_memray") is None, reason="no pytest-memray for this interpreter")
def test_beside_pytest_memray(write):
    """No test is measured by both: memray would count what heapledger reserves."""
    folder = write(
        test_all="import pytest\n@pytest.mark.limit_memory('24 MB')\ndef test_marked():\n    pass\n"
        "def test_other():\n    assert bytearray(100_000)\n"
    )
    run = Run(folder, plugins=["memray"])
    assert run.status == 0, run.text
    run.has("left to pytest-memray, which is active too", "-p no:memray")
    run = Run(folder, "--heapledger", "--heapledger-baseline=budgets.json", plugins=["memray"])
    assert run.status == 0, run.text
    run.has("left to pytest-memray", "heapledger does not measure them", "test_all.py::test_other\n")
    assert list(numbers(folder)) == ["test_all.py::test_other"]
    run = Run(folder, "--heapledger", "--memray", plugins=["memray"])
    assert run.status == 4, run.text
    run.has("ERROR: --memray measures every test", "leave out --memray, or --heapledger and --heapledger-baseline")


STEADY = """
import collections, functools, json, re

WORDS = ["w%d" % number for number in range(300)]

def test_lists():
    assert sum(map(len, [[number] * 3 for number in range(500)])) == 1500

def test_dicts_and_sets():
    assert len({word: {word: len(word)} for word in WORDS}) == len(set(WORDS))

def test_libraries():
    assert json.loads(json.dumps({word: [1.5, None, word] for word in WORDS}))["w1"][0] == 1.5
    assert re.findall(r"w(\\d+)", " ".join(WORDS))[5] == "5"
    assert collections.Counter("".join(WORDS))["w"] == 300

def test_cycles():
    for number in range(3000):
        cycle = [number]
        cycle.append(cycle)

def test_classes():
    class Point:
        def __init__(self, x):
            self.x = [x]
    assert len([Point(number) for number in range(1000)]) == 1000

def test_exceptions():
    for number in range(100):
        try:
            raise ValueError(number)
        except ValueError as error:
            str(error)

def test_cache():
    @functools.lru_cache(maxsize=None)
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
    assert fibonacci(100) > 0

def test_fixture(tmp_path):
    with open(tmp_path / "file", "w") as file:
        file.write("x" * 10000)
"""


def test_the_same_numbers_in_every_process(write):
    """Processes with different hash seeds: the same is left behind, and hardly a block more or less is allocated."""
    folder = write(test_steady=STEADY)
    Run(folder)  # writes the .pyc files

    def measure(seed):
        base = f"--basetemp={folder}/base{seed:02}"  # paths of the same length
        run = Run(folder, f"--heapledger-baseline={seed}.json", base, seed=seed)
        assert run.status == 0, run.text
        return numbers(folder, f"{seed}.json")

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first, *others = pool.map(measure, range(20 if os.environ.get("HEAPLEDGER_SLOW") else 5))
    assert len(first) == 8 and all(entry["blocks"] > 0 for entry in first.values())
    for other in others:
        for test, entry in other.items():
            # docs/pytest.md says why: a class of an earlier round may be collected in this one, for example.
            for name, allowed in (("peak", 512), ("allocated", 512), ("blocks", 8)):
                assert abs(entry.pop(name) - first[test][name]) <= allowed, (test, name, first, other)
            assert entry.items() < first[test].items()
        assert other.keys() == first.keys()
