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
