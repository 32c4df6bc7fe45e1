"""Programs that never do the same thing twice: the ledger's tables must stay as large as what is alive."""

import heapledger
import pytest

ROUNDS = 6
NEW = 4_000


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
            totals.append(heapledger.memory()["total"])
        assert heapledger.lost_records() == 0
        assert heapledger._validate() is None
    finally:
        heapledger.stop()
    # The tables grow until the hand that reclaims has gone round once; from then on they must not.
    assert totals[-1] <= totals[2] * 1.1 + 200_000, totals


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
