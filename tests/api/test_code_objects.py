"""Code that comes and goes, deep stacks and unusual names: every block has the right file and line."""

import gc
import sys

import heapledger
import pytest


def test_code_addresses_are_used_again():
    """10,000 code objects, each dead before the next is made: a stale cache would name an earlier file or line."""
    heapledger.start(1)
    kept = []
    for number in range(10_000):
        source = "\n" * (number % 37) + f"kept.append(bytes({3000 + number % 11}))"
        exec(compile(source, f"<file {number}>", "exec"), {"kept": kept})
    header = sys.getsizeof(b"")
    # The same blocks in the order of the list, by their own tracebacks.
    for number, block in enumerate(kept):
        frame = heapledger.get_object_traceback(block)[0]
        assert (frame.filename, frame.lineno) == (f"<file {number}>", number % 37 + 1)
        assert len(block) == 3000 + number % 11
    files = {trace[2][0][0] for trace in heapledger._get_traces() if 3000 <= trace[1] - header <= 3010}
    assert len(files) == 10_000


def test_functions_made_and_dropped():
    """The same with deep stacks: two functions per code object, called through each other."""
    heapledger.start(3)
    kept = []
    template = "def inner():\n    return bytes(2500)\n{gap}def outer():\n    return inner()\n"
    for number in range(3000):
        namespace, gap = {}, number % 23
        exec(compile(template.format(gap="\n" * gap), f"<module {number % 50}>", "exec"), namespace)
        kept.append((namespace["outer"](), gap, number % 50))
        if number % 7 == 0:
            gc.collect(0)
    for block, gap, module in kept:
        frames = heapledger._get_object_traceback(block)
        name = f"<module {module}>"
        assert frames[:2] == ((name, 2), (name, 4 + gap)) and frames[2][0] == __file__


def test_changed_code_of_a_function():
    heapledger.start(1)

    def function():
        return bytes(2222)

    def other():
        return 0, bytes(2222)

    blocks = []
    for _ in range(50):
        blocks.append(function())
        function.__code__ = function.__code__.replace(co_firstlineno=function.__code__.co_firstlineno + 1)
    lines = [heapledger.get_object_traceback(block)[0].lineno for block in blocks]
    assert [number - lines[0] for number in lines] == list(range(50))
    del other


def test_long_stacks():
    def down(depth):
        return down(depth - 1) if depth else bytes(9999)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        heapledger.start(65535)
        block = down(8000)
        traceback = heapledger.get_object_traceback(block)
        assert 8001 <= len(traceback) == len(list(traceback))
        assert {frame.lineno for frame in traceback[-8001:]} == {down.__code__.co_firstlineno + 1}
        snapshot = heapledger.take_snapshot()
        assert any(trace[3] == len(trace[2]) > 8000 for trace in snapshot.traces._traces)
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("name", ["über.py", "\udc80.py", "a\nb.py", "\U0001f600" * 100, "", "x" * 10_000], ids=ascii)
def test_unusual_file_names(name):
    heapledger.start(2)
    kept = []
    exec(compile("kept.append(bytes(4444))", name, "exec"), {"kept": kept})
    assert heapledger.get_object_traceback(kept[0])[-1].filename == name
    assert heapledger.take_snapshot().filter_traces([heapledger.Filter(True, name.replace("[", "[[]"))]).traces
