"""Programs that never do the same thing twice: the ledger's tables must stay as large as what is alive."""

import heapledger
import pytest
from children import run

ROUNDS = 6
NEW = 4_000
MOST_CACHES = 2_000_000


def new_code(number):
    """A function that no other round has: its file, its name, its line and the size it allocates."""
    source = "\n" * (number % 500) + f"def f{number}(): return bytes({number % 60_000})"
    namespace = {}
    exec(compile(source, f"/generated/{number}.py", "exec"), namespace)
    return namespace[f"f{number}"]


def deep(depth, function):
    return function() if depth == 0 else deep(depth - 1, function)


def of_new_code(number):
    new_code(number)()


def of_new_sizes(number):
    bytearray(number)


def of_new_stacks(number):
    deep(number % 97, lambda: deep(number // 97 % 89, lambda: bytes(number)))


@pytest.mark.parametrize("work", [of_new_code, of_new_sizes, of_new_stacks])
@pytest.mark.parametrize("nframe", [1, 25])
def test_tables_stay_flat(work, nframe):
    heapledger.start(nframe)
    try:
        numbers = iter(range(1, ROUNDS * NEW + 1))
        totals = []
        for _ in range(ROUNDS):
            for number, _ in zip(numbers, range(NEW), strict=False):
                work(number)
            memory = heapledger.memory()
            totals.append(memory["total"] - memory["caches"])
        assert heapledger.lost_records() == 0
        assert heapledger._validate() is None
    finally:
        heapledger.stop()
    # The tables grow until the hand that reclaims has gone round once; from then on they must not.
    assert totals[-1] <= totals[2] * 1.1 + 50_000, totals
    # The caches grow when many sites are looked for again, which may be late, and have a greatest size.
    assert memory["caches"] <= MOST_CACHES


def test_snapshots_do_not_keep_the_future():
    """A snapshot that is kept keeps what it names, not what comes after."""
    heapledger.start(5)
    try:
        block = bytes(1234)
        kept = heapledger.take_snapshot()
        del block
        totals = []
        for first in range(1, ROUNDS * NEW + 1, NEW):
            for number in range(first, first + NEW):
                of_new_code(number)
            totals.append(heapledger.memory()["total"])
        assert [trace.size for trace in kept.traces if trace.size > 1234]
    finally:
        heapledger.stop()
    assert totals[-1] <= totals[2] * 1.1 + 200_000, totals


STACKS = """
    import resource, sys, heapledger

    def left(number, depth):
        return object() if depth == 0 else (left if number & 1 else right)(number >> 1, depth - 1)

    def right(number, depth):
        return object() if depth == 0 else (left if number & 1 else right)(number >> 1, depth - 1)

    def statm(which):
        with open("/proc/self/statm") as file:
            return int(file.read().split()[which]) * resource.getpagesize()

    heapledger.start(25)
    kept = [None] * (1 << 17)

    def fill():
        try:
            for number in range(len(kept)):
                kept[number] = left(number, 17)
        except MemoryError:
            pass

    def empty():
        for number in range(len(kept)):
            kept[number] = None
        heapledger.reset_peak()
"""


def test_memory_comes_back_after_a_peak():
    """As long as a peak is the peak, its sites are needed. Then memory comes back, though no new site is made."""
    run(
        STACKS
        + """
    resident = statm(1)
    fill()
    at_peak = heapledger.memory()
    assert at_peak["sites"] + at_peak["names"] > 25_000_000
    empty()
    for _ in range(100):
        work = [bytearray(20_000) for _ in range(100)]  # blocks of one stack, each in a page of its own
        del work
    now = heapledger.memory()
    assert now["sites"] + now["names"] < 3_500_000, now
    assert now["total"] < 5_000_000, now
    assert statm(1) - resident < 12_000_000
    assert heapledger._validate() is None
    """
    )


def test_a_full_table_makes_room():
    """Under a limit of addresses, tables that were full once take what is new when what was old is gone."""
    run(
        STACKS
        + """
    resource.setrlimit(resource.RLIMIT_AS, (statm(0) + (24 << 20), resource.RLIM_INFINITY))
    fill()
    assert heapledger.lost_records() > 1000
    empty()
    full = heapledger.lost_records()  # with the first ints of empty(), before there was room for them
    for number in range(2000):
        kept[number] = right(number, 17)
        assert heapledger.get_object_traceback(kept[number]) is not None, number
    assert heapledger.lost_records() == full
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    assert heapledger._validate() is None
    """
    )
