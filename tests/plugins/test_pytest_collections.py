"""The collections around a test cost what the test has made, and what it leaves behind is exact all the same."""

from pytest_runs import Run

CYCLES = """
import gc, pytest

class Node:
    pass

def cycle(number):
    first = last = Node()
    for _ in range(number):
        last.next = Node()
        last.next.weight = bytes(100)
        last = last.next
    last.next = first
    return first

old = [cycle(3) for _ in range(20)]

@pytest.mark.limit_leaks(0)
def test_young():
    cycle(5)

@pytest.mark.limit_leaks(0, warmup=0, rounds=2)
def test_moved_on_by_collections_in_the_test():
    first = cycle(20_000)
    gc.collect()
    del first

@pytest.mark.limit_leaks(0)
def test_with_older_objects():
    '''What was made here is held by a cycle that is older, and garbage now.'''
    node = old.pop()
    node.next.mine = bytearray(5000)
    node.next.back = Node()
    node.next.back.there = node

@pytest.mark.limit_leaks(0)
def test_leak():
    old.append(cycle(3))
"""


def test_cycles_are_not_left_behind(write):
    run = Run(write(test_all=CYCLES), "-rf")
    run.has("1 failed, 3 passed", "test_all.py::test_leak", "last.next.weight = bytes(100)")


def test_cycles_have_no_place_in_the_list(write):
    source = CYCLES.replace("@pytest.mark.limit_leaks", "@pytest.mark.usefixtures() #")
    left = Run(write(test_all=source), "--heapledger").text.partition("what tests have left behind:")[2]
    assert "test_leak" in left and "older" not in left and "young" not in left and "moved" not in left, left


COLLECTOR = """
import gc

def test_the_collector_is_as_it_was():
    assert gc.get_freeze_count() <= FROZEN and gc.isenabled() and gc.get_threshold() == THRESHOLD
    assert any(one is MODULE_LEVEL for one in gc.get_objects())
    assert gc.get_referrers(MODULE_LEVEL[0])

def test_frozen_objects_stay_frozen():
    gc.freeze()

def test_still_frozen():
    assert gc.get_freeze_count() > 1000
    gc.unfreeze()

THRESHOLD, FROZEN = gc.get_threshold(), gc.get_freeze_count()  # 3.12 starts with some that are frozen
MODULE_LEVEL = [[1], 2]
"""


def test_the_collector_of_the_program(write):
    run = Run(write(test_all=COLLECTOR), "--heapledger")
    run.has("3 passed")


CALLBACKS = """
import gc, time

seen = []

def note(phase, info):
    seen.append(time.perf_counter())

gc.callbacks.append(note)

def test_one():
    assert note in gc.callbacks
"""


def test_callbacks_are_not_called_by_our_collections(write):
    """hypothesis has one, which keeps a number."""
    folder = write(test_all=CALLBACKS)
    Run(folder, "--heapledger-baseline=budgets.json").has("1 passed", "1 added")
    assert '"leaked_blocks": 0' in (folder / "budgets.json").read_text()
