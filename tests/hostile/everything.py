"""A small program that goes through every part of the extension, each step with an answer that is known.

    python everything.py [ROUNDS]

Run by tools/hostile under tools that watch memory; failing.py runs the same steps while allocations fail.
"""

import json
import os
import re
import sys
import tempfile
import threading
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))

import heapledger
from c_allocators import without_the_gil


def work_of_a_host():
    """Something that allocates in all domains and whose result is known."""
    text = json.dumps([{"number": n, "name": "n" * (n % 40), "half": n / 2} for n in range(120)])
    words = re.findall(r"[a-z]+", text)
    table = {word: len(word) for word in words} | {number: str(number) for number in range(300)}
    packed = zlib.compress(json.dumps(sorted(map(str, table))).encode())
    return zlib.crc32(zlib.decompress(packed)), len(words), sum(table[n] == str(n) for n in range(300))


# Snapshots that do not come from the tracer: every answer about them is known beforehand.

ROWS = [
    (n % 3, 10 + n % 7, ((f"/lib/f{n % 5}.py", n % 11 + 1), ("/app/größe.pyc", 3), (f"m{n % 2}.py", 0))[: 1 + n % 3], 5)
    for n in range(150)
]
OLDER = [(n % 3, 10 + n % 5, ((f"/lib/f{n % 4}.py", n % 13 + 1),), None) for n in range(90)]


def snapshots():
    return heapledger.Snapshot(list(ROWS), 3), heapledger.Snapshot(list(OLDER), 1)


def answers_of(snapshot):
    return [
        [(str(one.traceback), one.size, one.count) for one in snapshot.statistics(key, cumulative)]
        for key, cumulative in (("filename", True), ("lineno", False), ("traceback", False))
    ]


def grouping():
    return answers_of(snapshots()[0])


def comparing():
    new, old = snapshots()
    return [
        [(str(one), one.size_diff, one.count_diff) for one in new.compare_to(old, key)]
        for key in ("filename", "lineno", "traceback")
    ]


def filtering():
    class Odd(heapledger.BaseFilter):
        def _match(self, trace):
            return trace[1] % 2 == 1

    new, _ = snapshots()
    chosen = new.filter_traces(
        [
            heapledger.Filter(True, "/lib/f[0-3].py"),
            heapledger.Filter(False, "*größe*", lineno=3, all_frames=True),
            heapledger.DomainFilter(False, 2),
        ]
    )
    return answers_of(chosen), len(new.filter_traces([Odd(True)]).traces)


def reading_traces():
    new, old = snapshots()
    traces = new.traces
    both = [trace for trace in traces if trace in traces]
    texts = [repr(trace) for trace in traces[::17]] + traces[4].traceback.format(most_recent_first=True)
    return len(both), texts, traces == old.traces, hash(traces[5].traceback) == hash(traces[5].traceback)


def merging():
    return answers_of(heapledger.Snapshot.merge(list(snapshots()) * 3))


def files():
    new, old = snapshots()
    new.label = {"deep": [1, 2.5, None, b"bytes", ("tuple", {"set"})]}
    with tempfile.TemporaryDirectory() as folder:
        answers = []
        for format in ("hlsnap", "tracemalloc"):
            path = os.path.join(folder, format)
            old.dump(path, format)
            new.dump(path, format)
            back = heapledger.Snapshot.load(path)
            answers.append((answers_of(back), back.label, back.traceback_limit))
            with open(path, "r+b") as file:
                file.truncate(os.path.getsize(path) // 2)
            try:
                heapledger.Snapshot.load(path)
            except heapledger.SnapshotFormatError:
                answers.append("malformed")
        assert sorted(os.listdir(folder)) == ["hlsnap", "tracemalloc"]
        return answers


PURE = [grouping, comparing, filtering, reading_traces, merging, files]


# The tracer.


def make_blocks(kept):
    kept.append(bytes(3000 + len(kept)))
    kept.append({len(kept)})
    kept.append(bytearray(40))
    kept.append([kept[0]])
    kept.append((kept[0], 1))


LINES = range(make_blocks.__code__.co_firstlineno + 1, make_blocks.__code__.co_firstlineno + 6)


def new_code(number):
    namespace = {}
    exec(compile("\n" * number + "def make():\n    return bytes(5000)", f"<generated {number}>", "exec"), namespace)
    return namespace["make"]()


def deep(depth):
    return deep(depth - 1) if depth else bytes(7777)


def in_threads():
    """Blocks of the raw domain, made without the GIL and freed by this thread."""
    blocks = []

    def work():
        for size in range(2000, 2020):
            block = without_the_gil.PyMem_RawMalloc(size)
            blocks.append(without_the_gil.PyMem_RawRealloc(block, size + 300))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for block in blocks:
        without_the_gil.PyMem_RawFree(block)


def trace_everything():
    """What is kept: (block, line or file it must be found at)."""
    kept, generated = [], []
    for _ in range(40):
        make_blocks(kept)
    for number in range(30):
        generated.append((new_code(number), f"<generated {number}>", number + 2))
    # More sites than the first tables have room for.
    line = sys._getframe().f_lineno + 1
    generated += [(bytes(1000 + number), __file__, line) for number in range(3000)]
    far = deep(60)
    in_threads()
    del kept[:30]
    return kept, generated, far


def missing_of(kept, generated, far):
    """How many blocks are not in the ledger. Those that are, must be there at their own line."""
    missing = 0
    for block in kept:
        found = heapledger.get_object_traceback(block)
        if found is None:
            missing += 1
        else:
            assert found[-1].filename == __file__ and found[-1].lineno in LINES, (type(block), found)
    for block, name, line in generated:
        found = heapledger.get_object_traceback(block)
        if found is None:
            missing += 1
        else:
            assert (found[-1].filename, found[-1].lineno) == (name, line), found
    found = heapledger.get_object_traceback(far)
    if found is None:
        missing += 1
    else:
        limit = heapledger.get_traceback_limit()
        assert {frame.lineno for frame in found[-min(limit, 60) :]} == {deep.__code__.co_firstlineno + 1}, found
    return missing


def ask():
    """Every question to the running tracer."""
    now, peak, ever = (
        heapledger.take_snapshot(),
        heapledger.take_peak_snapshot(),
        heapledger.take_allocation_snapshot(),
    )
    for snapshot in (now, peak, ever):
        total = sum(trace.size for trace in snapshot.traces)
        by_line = snapshot.statistics("lineno")
        assert total == sum(one.size for one in by_line) == sum(one.size for one in snapshot.statistics("traceback"))
    with tempfile.TemporaryDirectory() as folder:
        now.dump(os.path.join(folder, "file"))
        assert answers_of(heapledger.Snapshot.load(os.path.join(folder, "file"))) == answers_of(now)
        capture = heapledger.take_capture()
        capture.dump(os.path.join(folder, "capture"))
        back = heapledger.Capture.load(os.path.join(folder, "capture"))
        for moment in ("live", "peak", "allocated"):
            assert answers_of(getattr(back, moment)) == answers_of(getattr(capture, moment))
    heapledger._get_traces()
    heapledger.memory()
    heapledger.allocated()


def main():
    host, pure = work_of_a_host(), [step() for step in PURE]
    for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        for limit in (1, 4, 70 + number):
            heapledger.start(limit)
            assert [step() for step in PURE] == pure
            assert work_of_a_host() == host
            traced = trace_everything()
            assert missing_of(*traced) == 0
            ask()
            heapledger.reset_peak()
            heapledger.clear_traces()
            del traced
            assert heapledger._validate() is None and heapledger.lost_records() == 0
            heapledger.stop()


if __name__ == "__main__":
    main()
