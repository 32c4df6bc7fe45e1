"""Make the files that every later version must load: once for each format, version of it, and interpreter.

    tools/with-interpreter 3.11 python tests/golden/make.py hlsnap    # live-1.0.hlsnap, made-1.0.hlsnap
    tools/with-interpreter 3.11 python tests/golden/make.py pickle    # stdlib-3.11.pickle

Beside each stands NAME.json with what is in it, as the one who wrote it saw it. Files that are there stay as they are.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent

PROGRAM = """
def load(number):
    return [bytes(100 + number % 3), bytearray(number)]

def work():
    return [load(number) for number in range(20)]

def main():
    return {name: work() for name in ("a", "b")}
"""

ATTRIBUTES = {
    "text": "über \udc80", "number": -(2**70), "float": -0.0, "flags": [True, False, None], "raw": b"\0\xff",
    "nested": {"a": [(1,), {2: {3}}, frozenset({4})], (1, "k"): []},
}  # fmt: skip

METADATA = {
    "heapledger": "0.1.0", "time": 1_700_000_000_123_456_789, "host": "example", "pid": 4321,
    "command": ["python", "main.py"], "executable": "/usr/bin/python3", "python": "3.11.7 (main)",
    "implementation": "cpython", "traceback_limit": 2, "moment": "live", "traced": 10_000, "peak": 20_000,
    "lost_records": 0, "rss": 12_345_344, "tables": 65_536,
    "process_at_dump": {"time": 1_700_000_000_223_456_789, "pages": {"Rss": 12_345_344}, "pymalloc_arenas": None,
                        "malloc": None, "tables": {"total": 65_536}},
}  # fmt: skip

MADE = [
    (0, 5, (("a.py", 1),), 1),
    (0, 5, (("a.py", 1),), 1),
    (0, 5, (("a.py", 1),), 7),
    (389047, 2**40, (("dir/\udcff.py", 2**32 - 1), ("", 0), ("a.py", 1)), None),
    (2**32 - 1, 0, (), None),
    (0, 1, (("文/" * 300, 3),), 2**32 - 1),
]


def take(module):
    """A snapshot of PROGRAM, without tracebacks that have this file in them: its path is nobody's business."""
    namespace = {}
    exec(compile(PROGRAM, "/app/main.py", "exec"), namespace)
    module.start(2)
    kept = namespace["main"]()
    snapshot = module.take_snapshot()
    module.stop()
    del kept
    return snapshot.filter_traces([module.Filter(True, "/app/*"), module.Filter(False, __file__, all_frames=True)])


def describe(snapshot, attributes):
    """What tests/api/test_golden.py compares."""
    return {
        "traces": [list(trace) for trace in snapshot.traces._traces],
        "traceback_limit": snapshot.traceback_limit,
        "attributes": {name: repr(value) for name, value in attributes.items()},
        "statistics": [[str(one.traceback), one.size, one.count] for one in snapshot.statistics("filename", True)],
        "names": [[getattr(frame, "name", None) for frame in trace.traceback] for trace in snapshot.traces],
        "metadata": getattr(snapshot, "metadata", {}),
    }


def write(name, dump, content):
    path = HERE / name
    if path.exists():
        print(f"{path.name} is there already")
        return
    dump(path)
    (HERE / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
    print(f"made {path.name}")


def make_hlsnap():
    import heapledger
    from heapledger import _plain
    from heapledger._ledger import _file_snapshot

    taken = take(heapledger)
    live = _file_snapshot(taken.traces, taken.traceback_limit, _plain.encode(METADATA))
    made = heapledger.Snapshot(MADE, 25)
    vars(made).update(ATTRIBUTES)
    names = [[frame.name for frame in trace.traceback] for trace in live.traces]  # before tuples are made of them
    write("live-1.0.hlsnap", live.dump, {**describe(live, {}), "names": names})
    write("made-1.0.hlsnap", made.dump, describe(made, ATTRIBUTES))


def make_pickle():
    import tracemalloc

    snapshot = take(tracemalloc)
    vars(snapshot).update(ATTRIBUTES)
    name = "stdlib-%d.%d.pickle" % sys.version_info[:2]
    write(name, lambda path: snapshot.dump(str(path)), describe(snapshot, ATTRIBUTES))


if __name__ == "__main__":
    {"hlsnap": make_hlsnap, "pickle": make_pickle}[sys.argv[1]]()
