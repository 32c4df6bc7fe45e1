"""Budgets of the pytest plugin where a test is not alone: other tests ran before it, other threads run beside it."""

import json
import re

from pytest_runs import Run

BASELINE = "--heapledger-baseline=budgets.json"


def failures(run):
    return re.findall(r"^FAILED (\S+)", run.text, re.MULTILINE)


COLD = """
import functools

class Wide:
    pass

@functools.lru_cache(maxsize=None)
def table(number):
    return [bytes(1000) for _ in range(number)]

def test_first():
    import decimal, statistics, xmlrpc.client
    assert len(table(100)) == 100
    instance = Wide()
    for number in range(20):
        setattr(instance, f"name{number}", number)

def test_second():
    import decimal, statistics, xmlrpc.client
    assert len(table(100)) == 100
    assert [Wide() for _ in range(20)]
"""


def test_a_budget_does_not_depend_on_other_tests(write):
    """The second test finds caches filled and modules imported, unless it runs alone, or first."""
    folder = write(test_all=COLD)
    Run(folder, BASELINE).has("2 passed", "2 added")
    for selection in ("-k", "second"), ("test_all.py::test_second", "test_all.py::test_first"):
        run = Run(folder, BASELINE, *selection)
        assert run.status == 0, run.text
    run = Run(folder, BASELINE, "-k", "second", "--heapledger-repeats=0")
    assert run.status == 1
    run.has("bytes left behind: ")


def test_a_kept_object_is_found_in_either_order(write):
    folder = write(test_all=COLD)
    Run(folder, BASELINE)
    keeps = "kept = []\n" + COLD + "    kept.extend(object() for _ in range(20))\n"
    write(test_all=keeps)
    for selection in (), ("-k", "second"):
        run = Run(folder, BASELINE, *selection)
        assert failures(run) == ["test_all.py::test_second"], run.text
        run.has("blocks left behind: 2", "kept.extend(object() for _ in range(20))")


REPEATED = """
import pytest

opened = []

@pytest.fixture(scope="module")
def shared():
    opened.append("shared")
    yield
    opened.append("closed")

@pytest.fixture
def own(shared):
    return []

def test_with_fixtures(own):
    assert own == []  # not that of the last run
    own.append(1)
    assert opened == ["shared"]

def test_once_only(shared):
    assert "once" not in opened
    opened.append("once")

class TestClass:
    @classmethod
    def setup_class(cls):
        cls.cache = {}

    def test_cache(self):
        self.cache.setdefault("key", [object() for _ in range(100)])
        assert opened.count("shared") == 1 and "closed" not in opened
"""


def test_a_test_is_repeated_with_its_fixtures(write):
    """One that fails when it is repeated has passed, but has no budget."""
    folder = write(test_all=REPEATED)
    run = Run(folder, BASELINE)
    assert run.status == 0, run.text
    run.has("3 passed", "2 added", "because they fail when they are repeated:\n  test_all.py::test_once_only")
    assert "test_once_only" not in (folder / "budgets.json").read_text()
    run = Run(folder, BASELINE, "-n1", plugins=["xdist"])
    assert run.status == 0, run.text
    run.has("2 tests compared", "test_all.py::test_once_only")
    assert '"leaked_blocks": 0' in (folder / "budgets.json").read_text().partition("test_cache")[2]


TEARDOWN = """
import pytest

@pytest.fixture(scope="module")
def shared():
    yield
    raise OSError("at last")

def test_one(shared):
    pass
"""


def test_a_module_that_cannot_be_torn_down(write):
    run = Run(write(test_all=TEARDOWN), BASELINE)
    run.has("1 passed, 1 error", "ERROR at teardown of test_one", "OSError: at last")


def test_a_failing_test_is_run_once(write):
    folder = write(test_all="def test_one():\n    print('called')\n    assert 0\n")
    run = Run(folder, BASELINE)
    assert run.text.count("called\n") == 1 and "1 failed" in run.text, run.text


THREADS = """
import threading, time

go_on = threading.Event()

def busy():
    while not go_on.wait(0.0005):
        kept.append([bytearray(1000) for _ in range({number})])

kept = []

def test_begins():
    threading.Thread(target=busy, daemon=True).start()

def test_beside():
    time.sleep(0.05)
    mine = [bytearray(100) for _ in range(100)]

def test_ends():
    go_on.set()
"""


def test_other_threads_do_not_count(write):
    folder = write(test_all=THREADS.format(number=1))
    Run(folder, BASELINE, "--heapledger-repeats=0").has("3 passed")
    budgets = json.loads((folder / "budgets.json").read_text())
    (section,) = (section for name, section in budgets.items() if name.startswith("cpython"))
    beside = section["test_all.py::test_beside"]
    assert beside["other threads"] and 100 <= beside["blocks"] < 450, beside  # with tuples of arguments
    write(test_all=THREADS.format(number=50))
    run = Run(folder, BASELINE, "--heapledger-repeats=0")
    assert run.status == 0, run.text


def test_the_short_summary_says_how_much(write):
    """In 80 columns: a test's name once, and the number."""
    folder = write(
        test_rows="import pytest\n@pytest.mark.limit_memory('1 KB')\ndef test_too_large():\n    bytes(10_000)\n"
    )
    run = Run(folder, "-rf", columns=80)
    (line,) = (line for line in run.text.splitlines() if line.startswith("FAILED"))
    assert line.count("test_too_large") == 1 and re.search(r"peak 9\.[89] KiB", line), line


SUBTESTS = """
import functools, unittest

@functools.lru_cache(maxsize=None)
def table():
    return [object() for _ in range(100)]

class Case(unittest.TestCase):
    def test_case(self):
        table()
        for number in range(20):
            with self.subTest(number=number):
                self.assertEqual(number, number)

def test_fixture(subtests):
    table()
    for number in range(20):
        with subtests.test(number=number):
            assert number >= 0
"""


def leftovers(folder):
    """{test: blocks that it left behind when the baseline was written}"""
    (budgets,) = (part for name, part in json.loads((folder / "budgets.json").read_text()).items() if "cpython" in name)
    return {name.rpartition(":")[2]: numbers["leaked_blocks"] for name, numbers in budgets.items()}


def test_reports_of_subtests_are_not_left_behind_by_the_test(write):
    """pytest keeps them, those of repetitions had more in them, and each repetition reported them again."""
    folder = write(test_all=SUBTESTS)
    Run(folder, BASELINE).has("2 passed, 40 subtests passed", "2 added")
    assert leftovers(folder) == {"test_case": 0, "test_fixture": 0}
    for selection in "case", "fixture":  # alone: the cache is empty, and the test repeated
        run = Run(folder, BASELINE, "-k", selection)
        assert run.status == 0, run.text
        run.has("1 passed, 1 deselected, 20 subtests passed", "1 test compared")


def test_what_subtests_leave_behind_is_found(write):
    folder = write(test_all=SUBTESTS)
    Run(folder, BASELINE)
    leak = "kept.append(object())"
    source = SUBTESTS.replace("self.assertEqual(number, number)", leak).replace("assert number >= 0", leak)
    run = Run(write(test_all="kept = []" + source), BASELINE)
    run.has("2 failed", leak)
    assert run.text.count("\nheapledger: blocks left behind: 20, 0 in the baseline (+20)\n") == 2, run.text


def test_a_test_with_a_failing_subtest_is_run_once(write):
    source = SUBTESTS.replace("number, number", "number % 7, number").replace("number >= 0", "number < 9")
    run = Run(write(test_all=source), BASELINE)
    assert run.text.count("SUBFAILED(number=12)") == 2, run.text
    run.has("0 added")


def test_a_subtest_that_fails_when_it_is_repeated(write):
    once = "number += times.append(0) or len(times) > 20"
    source = SUBTESTS.replace("        table()\n", "        times = type(self).__dict__['times']\n")
    source = source.replace("    table()\n", "    times = test_fixture.__dict__.setdefault('times', [])\n")
    source = source.replace("class Case(unittest.TestCase):\n", "class Case(unittest.TestCase):\n    times = []\n")
    source = source.replace("self.assertEqual(number, number)", f"{once}; self.assertLess(number, 20)")
    run = Run(write(test_all=source.replace("assert number >= 0", f"{once}; assert number < 20")), BASELINE)
    assert run.status == 0, run.text
    run.has("2 passed, 40 subtests passed", "0 added", "because they fail when they are repeated:\n  test_all.py::Case")


ELSEWHERE = """
import itertools

class Cache:
    '''Entered by each test in its own way; now and then it makes room for more.'''
    kept = []

calls = itertools.count()

def test_one():
    kept = Cache.kept
    if next(calls) % 2:
        kept.extend(object() for _ in range(50))
    else:
        kept.extend(object() for _ in range(50))
    {leak}
"""


def test_a_leak_leaves_something_behind_at_each_run(write):
    """On the same line: what one run leaves here and the next one there are things that are done now and then."""
    folder = write(test_all=ELSEWHERE.format(leak="pass"))
    Run(folder, BASELINE).has("1 added")
    assert leftovers(folder) == {"test_one": 0}
    write(test_all=ELSEWHERE.format(leak="kept.append(object())"))
    run = Run(folder, BASELINE)
    assert run.status == 1, run.text
    run.has("blocks left behind: 1, 0 in the baseline (+1)", "kept.append(object())")


KEPT = "object()", "(calls, calls)", "[calls]", "{calls: calls}", "float(calls)", "lambda: calls", "str(calls)"


def test_one_kept_object_is_enough(write):
    """Of types with a freelist too, whose blocks may be known by the line where another object was made."""
    source = "kept = []\ncalls = 1000\n\n" + "".join(
        f"def test_{number}():\n    {{before}}{kind}{{after}}\n" for number, kind in enumerate(KEPT)
    )
    many = "def test_many():\n    kept.extend(object() for _ in range(%d))\n"
    folder = write(test_all=source.replace("{before}", "").replace("{after}", "") + many % 100)
    Run(folder, BASELINE).has(f"{len(KEPT) + 1} added")
    write(test_all=source.replace("{before}", "kept.append(").replace("{after}", ")") + many % 101)
    run = Run(folder, BASELINE)
    assert len(failures(run)) == len(KEPT) + 1, run.text
    run.has("blocks left behind: 101, 100 in the baseline (+1)")


BESIDE = """
import threading, time

import pytest

asked, done, over = threading.Event(), threading.Event(), threading.Event()
kept = [[]]

def keep():
    while True:
        asked.wait()
        asked.clear()
        {keep}
        bytearray(100)
        done.set()
        {later}

threading.Thread(target=keep, daemon=True).start()

@pytest.fixture(autouse=True)
def connection():
    yield
    over.set()

def test_one():
    pairs = [(object(), number) for number in range(100)]
    del pairs
    asked.set()
    done.wait()
    done.clear()
    {leak}
"""


def test_other_threads_take_from_freelists_that_the_test_has_filled(write):
    """Before 3.13 such blocks are known by the line of the test. A server has some while it answers, or for a while."""
    folder = write(test_all=BESIDE.format(keep="pass", later="pass", leak="pass"))
    Run(folder, BASELINE).has("1 added")
    pairs = "[(one, one) for one in range(20)]"
    once_for_good = f"kept[0] = {pairs}; kept.append([{pairs} for _ in 'abc'] if len(kept) == 2 else None)"
    for keep, later in (
        (f"kept[0] = {pairs}", "pass"),
        (f"kept.append({pairs})", "time.sleep(0.1); kept.clear()"),
        (once_for_good, "over.wait(); over.clear(); kept[0] = None"),
    ):
        write(test_all=BESIDE.format(keep=keep, later=later, leak="pass"))
        run = Run(folder, BASELINE)
        assert run.status == 0, run.text
    write(test_all=BESIDE.format(keep="pass", later="pass", leak="kept.append(object())"))
    Run(folder, BASELINE).has("blocks left behind: 1, 0 in the baseline (+1)")


SETUP = """
import unittest

class Case(unittest.TestCase):
    def setUp(self):
        self.rows = [bytearray(100) for _ in range({number})]

    def test_case(self):
        assert self.rows

    def test_skipped(self):
        self.skipTest("later")

class Skipped(unittest.TestCase):
    def setUp(self):
        self.skipTest("all of it")

    def test_case(self):
        pass

class Loop(unittest.IsolatedAsyncioTestCase):
    async def test_coroutine(self):
        assert True
"""


def test_methods_of_unittest_are_measured_without_their_set_up(write):
    folder = write(test_all=SETUP.format(number=1))
    Run(folder, BASELINE).has("2 passed, 2 skipped", "2 added")
    assert leftovers(folder)["test_case"] == 0
    write(test_all=SETUP.format(number=10_000))
    run = Run(folder, BASELINE)
    assert run.status == 0, run.text
    run.has("2 passed, 2 skipped", "2 tests compared")
