"""Make the captures and the outputs that tests/command/test_outputs.py compares with.

    tools/with-interpreter 3.11 python tests/command/stored.py captures    # golden/old.hlsnap, golden/new.hlsnap; once
    tools/with-interpreter 3.11 python tests/command/stored.py outputs     # golden/*.txt, after a change to look at

The captures are of a program whose files and functions have odd names: other scripts, control characters, escape
sequences, markup of HTML and of rich, marks of direction, bytes that are no UTF-8, and paths that are very long.
"""

import _thread
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE / "golden"
SOURCE = """
def {name}(count, size):
    made = [None] * count
    for number in range(count):
        made[number] = bytes(size + number % 3)
    return made
"""
LONG = "/srv/" + "a-rather-long-name-of-a-folder/" * 12 + "module.py"
# File, function, and how many blocks of which size it makes: in the old and in the new capture.
MAKERS = [
    ("/app/shop/orders.py", "load", (30, 1000), (90, 1000)),
    ("/app/shop/orders.py", "save", (20, 700), (20, 700)),
    ("/app/venv/lib/python3.11/site-packages/requests/api.py", "get", (10, 2000), (2, 2000)),
    ("/no/such/lib/python3.11/json/decoder.py", "decode", (12, 300), (13, 300)),
    ("<frozen importlib._bootstrap>", "_find_and_load", (5, 400), (5, 400)),
    ("<string>", "made_by_exec", (8, 250), (0, 0)),
    ("/app/<script>alert(1)</script>.py", "html", (6, 5000), (7, 5000)),
    ("/app/[bold red]rich[/bold red].py", "[link=https://example.org]markup", (3, 900), (3, 950)),
    ("/app/escape\x1b[31m\x07\nnext.py", "name\x1b]0;title\x07", (4, 800), (4, 800)),
    ("/app/ünïcödé/文件.py", "größe", (4, 600), (5, 600)),
    ("/app/\u202egnp.py", "turned", (0, 0), (3, 650)),
    ("/app/\udcff.py", "not_utf8", (2, 500), (2, 500)),
    (LONG, "f" * 200, (2, 450), (4, 450)),
]
METADATA = {
    "heapledger": "0.1.0", "host": "example", "pid": 4321, "command": ["python", "/app/main.py", "--fast\x1b[1m"],
    "executable": "/usr/bin/python3", "python": "3.11.7 (main)", "implementation": "cpython", "traceback_limit": 10,
    "lost_records": 0, "tables": 65_536,
}  # fmt: skip

# Name of the output: the command line.
COMMANDS = {
    "summary": ["summary", "old.hlsnap"],
    "summary-merged": ["summary", "old.hlsnap", "new.hlsnap"],
    "summary-pickle": ["summary", "stdlib.pickle"],
    "top": ["top", "old.hlsnap", "-n", "20"],
    "top-merged": ["top", "old.hlsnap", "new.hlsnap", "-n", "3"],
    "top-peak": ["top", "new.hlsnap", "--peak", "-n", "3"],
    "top-allocated": ["top", "new.hlsnap", "--moment", "allocated", "-n", "3"],
    "top-file": ["top", "new.hlsnap", "--by", "file", "-n", "20"],
    "top-function": ["top", "new.hlsnap", "--by", "function", "-n", "20"],
    "top-package": ["top", "new.hlsnap", "--by", "package", "-n", "20"],
    "top-traceback": ["top", "new.hlsnap", "--by", "traceback", "-n", "20"],
    "top-cumulative": ["top", "new.hlsnap", "--by", "function", "--cumulative", "-n", "4"],
    "top-include": ["top", "new.hlsnap", "--include", "/app/shop/*", "--exclude", "*.js"],
    "top-domain": ["top", "new.hlsnap", "--domain", "99"],
    "tree": ["tree", "new.hlsnap", "--threshold", "3"],
    "tree-depth": ["tree", "new.hlsnap", "--depth", "1"],
    "diff": ["diff", "old.hlsnap", "new.hlsnap", "-n", "20"],
    "diff-same": ["diff", "old.hlsnap", "old.hlsnap"],
    "diff-package": ["diff", "old.hlsnap", "new.hlsnap", "--by", "package"],
    "diff-cumulative": ["diff", "old.hlsnap", "new.hlsnap", "--by", "function", "--cumulative", "-n", "3"],
    "show": ["show", "new.hlsnap", "b09e327747"],
    "check": ["check", "old.hlsnap", "stdlib.pickle"],
    "export-collapsed": ["export", "new.hlsnap", "--format", "collapsed"],
    "export-csv": ["export", "new.hlsnap", "--format", "csv"],
    "export-json": ["export", "new.hlsnap", "--format", "json"],
    "export-speedscope": ["export", "new.hlsnap", "--format", "speedscope"],
}
for _name in ("summary", "top", "top-traceback", "tree", "diff", "show", "check"):
    COMMANDS[f"{_name}-json"] = [*COMMANDS[_name], "--json"]


def program(which):
    """A function that makes all blocks of the old (0) or the new (1) capture, below a main program's frames."""
    space = {}
    for number, (filename, name, *amounts) in enumerate(MAKERS):
        exec(compile("\n" * 7 * number + SOURCE.format(name=f"maker_{number}"), filename, "exec"), space)
        maker = space[f"maker_{number}"]
        maker.__code__ = maker.__code__.replace(co_name=name, co_qualname=name)
        space[f"amount_{number}"] = amounts[which]
    lines = ["def collect():", "    kept = []"]
    lines += [f"    kept.append(maker_{n}(*amount_{n}))" for n, one in enumerate(MAKERS) if one[2 + which][0]]
    lines += ["    return kept", "def again(depth):", "    return again(depth - 1) if depth else collect()"]
    lines += ["def main(kept):", "    kept.append(again(2))", "    passing = collect()", "    del passing"]
    lines += ["    kept.append(None)"]
    exec(compile("\n".join(lines), "/app/main.py", "exec"), space)
    return space["main"]


def make_capture(which, taken):
    import heapledger
    from heapledger import _plain
    from heapledger._ledger import _file_snapshot, _make_capture

    main = program(which)
    kept = []
    heapledger.start(10)
    # In a thread that nobody waits for by a frame of its own, so that no path of this machine is in the stacks.
    _thread.start_new_thread(main, (kept,))
    while len(kept) < 2:
        time.sleep(0.01)
    capture = heapledger.take_capture()
    traced, peak = heapledger.get_traced_memory()
    heapledger.stop()
    del kept
    pages = {"Rss": 12_345_344 + traced, "Anonymous": 8_000_000}
    process = {"time": taken + 10**8, "pages": pages, "pymalloc_arenas": 2_097_152, "tables": {"total": 65_536},
               "malloc": {"heap": 3_000_000, "mapped": 500_000, "used": 2_500_000, "free": 400_000}}  # fmt: skip
    metadata = METADATA | {"time": taken, "traced": traced, "peak": peak, "rss": 12_345_344, "process_at_dump": process}
    snapshots = []
    for moment in ("live", "peak", "allocated"):
        own = [
            heapledger.Filter(True, "/app/main.py", all_frames=True),
            heapledger.Filter(False, __file__, all_frames=True),
        ]
        snapshot = getattr(capture, moment).filter_traces(own)
        facts = _plain.encode(metadata | {"moment": moment})
        snapshots.append(_file_snapshot(snapshot.traces, snapshot.traceback_limit, facts))
    return _make_capture(*snapshots)


def changed(old, new, **facts):
    """Write the capture in one file into another with these facts in its metadata: the other file."""
    import heapledger
    from heapledger import _plain
    from heapledger._ledger import _file_snapshot, _make_capture

    capture, snapshots = heapledger.Capture.load(old), []
    for moment in ("live", "peak", "allocated"):
        snapshot = getattr(capture, moment)
        metadata = _plain.encode(snapshot.metadata | facts)
        snapshots.append(_file_snapshot(snapshot.traces, snapshot.traceback_limit, metadata))
    _make_capture(*snapshots).dump(new)
    return new


def make_captures():
    for which, name in enumerate(("old", "new")):
        path = GOLDEN / f"{name}.hlsnap"
        if path.exists():
            print(f"{path.name} is there already")
            continue
        make_capture(which, 1_700_000_000_123_456_789 + which * 60 * 10**9).dump(path)
        print(f"made {path.name}")


def make_outputs():
    for name, arguments in COMMANDS.items():
        command = [sys.executable, "-I", "-m", "heapledger", *arguments]
        done = subprocess.run(command, cwd=GOLDEN, capture_output=True, check=True)
        (GOLDEN / f"{name}.txt").write_bytes(done.stdout)


if __name__ == "__main__":
    {"captures": make_captures, "outputs": make_outputs}[sys.argv[1]]()
