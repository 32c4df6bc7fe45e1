"""The four examples of the tracemalloc documentation, adapted: they run unchanged but for the import line."""

import re

import pytest
from children import run

IMPORTS = {"stdlib": "import tracemalloc", "heapledger": "import heapledger as tracemalloc"}

WORK = """
def work(number):
    return [("text %d" % index) * 3 for index in range(number)]
"""

TOP_TEN = """
tracemalloc.start()
data = [work(size) for size in range(0, 900, 100)]
big = bytearray(3_000_000)

snapshot = tracemalloc.take_snapshot()
top_stats = snapshot.statistics("lineno")
print("[ Top 10 ]")
for stat in top_stats[:10]:
    print(stat)
"""

DIFFERENCES = """
tracemalloc.start()
data = work(100)
snapshot1 = tracemalloc.take_snapshot()
more = work(5000)
del data
snapshot2 = tracemalloc.take_snapshot()
top_stats = snapshot2.compare_to(snapshot1, "lineno")
print("[ Top 10 differences ]")
for stat in top_stats[:10]:
    print(stat)
"""

TRACEBACK = """
tracemalloc.start(25)
def outer():
    return inner()
def inner():
    return bytearray(2_000_000)
block = outer()

snapshot = tracemalloc.take_snapshot()
top_stats = snapshot.statistics("traceback")
stat = top_stats[0]
print("%s memory blocks: %.1f KiB" % (stat.count, stat.size / 1024))
for line in stat.traceback.format():
    print(line)
"""

PRETTY_TOP = """
import linecache
import os

def display_top(snapshot, key_type="lineno", limit=10):
    snapshot = snapshot.filter_traces((
        tracemalloc.Filter(False, "<frozen importlib._bootstrap>"),
        tracemalloc.Filter(False, "<unknown>"),
    ))
    top_stats = snapshot.statistics(key_type)
    print("Top %s lines" % limit)
    for index, stat in enumerate(top_stats[:limit], 1):
        frame = stat.traceback[0]
        filename = os.sep.join(frame.filename.split(os.sep)[-2:])
        print("#%s: %s:%s: %.1f KiB" % (index, filename, frame.lineno, stat.size / 1024))
        line = linecache.getline(frame.filename, frame.lineno).strip()
        if line:
            print("    %s" % line)
    other = top_stats[limit:]
    if other:
        size = sum(stat.size for stat in other)
        print("%s other: %.1f KiB" % (len(other), size / 1024))
    total = sum(stat.size for stat in top_stats)
    print("Total allocated size: %.1f KiB" % (total / 1024))

tracemalloc.start()
data = work(20000)
import email.message
display_top(tracemalloc.take_snapshot(), limit=3)
"""


def example(source, engine):
    return run(IMPORTS[engine] + "\n" + WORK + source)


@pytest.fixture(params=IMPORTS)
def engine(request):
    return request.param


STATISTIC = r"/\S*script\.py:\d+: size=[\d.]+ (B|KiB|MiB), count=\d+, average=[\d.]+ (B|KiB|MiB)"
DIFFERENCE = r"/\S*script\.py:\d+: size=\d\S* (B|KiB|MiB) \([+-]\S+ (B|KiB|MiB)\), count=\d+ \([+-]\d+\)"


def test_top_ten(engine):
    lines = example(TOP_TEN, engine).splitlines()
    assert lines[0] == "[ Top 10 ]"
    assert re.match(STATISTIC, lines[1]) and "size=2930 KiB" in lines[1]
    assert re.match(STATISTIC, lines[2]) and lines[2].partition(":")[2].startswith("4:")


def test_differences(engine):
    lines = example(DIFFERENCES, engine).splitlines()
    assert lines[0] == "[ Top 10 differences ]"
    assert re.match(DIFFERENCE, lines[1])
    # 5000 texts and the list now, 100 before; the numbers are those of the allocations at line 4.
    assert re.search(r"script\.py:4: size=[34]\d\d KiB \(\+[34]\d\d KiB\), count=500\d \(\+49\d\d\)", lines[1])


def test_traceback_of_the_biggest_block(engine):
    lines = example(TRACEBACK, engine).splitlines()
    assert lines[0] in ("1 memory blocks: 1953.1 KiB", "2 memory blocks: 1953.2 KiB")
    assert [line.strip() for line in lines[2::2]] == [
        "block = outer()",
        "return inner()",
        "return bytearray(2_000_000)",
    ]
    assert re.fullmatch(r'  File "/\S*script\.py", line \d+', lines[1])


def test_pretty_top(engine):
    lines = example(PRETTY_TOP, engine).splitlines()
    assert lines[0] == "Top 3 lines"
    assert re.match(r"#1: \S+script\.py:4: \d+\.\d KiB", lines[1])
    assert lines[2].strip() == 'return [("text %d" % index) * 3 for index in range(number)]'
    assert re.match(r"\d+ other: \d+\.\d KiB", lines[-2])
    assert re.match(r"Total allocated size: \d+\.\d KiB", lines[-1])


def test_both_engines_print_the_same():
    """The biggest entries, where the engines' own objects do not show."""
    for source in (TOP_TEN, DIFFERENCES, TRACEBACK):
        # Up to the count: dead objects on freelists count as blocks, and their number depends on what was imported.
        first = [example(source, engine).splitlines()[1].rpartition("/")[2].partition("count")[0] for engine in IMPORTS]
        assert first[0] == first[1]
