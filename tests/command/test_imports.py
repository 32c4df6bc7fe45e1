"""heapledger import: files of the standard library and of memray."""

import csv
import json
import random

import heapledger
import pytest
from heapledger import _files


def test_import_of_a_pickle(fine, tmp_path):
    out = tmp_path / "out.hlsnap"
    fine("import", "stdlib.pickle", "-o", out)
    old, new = heapledger.Snapshot.load("stdlib.pickle"), heapledger.Snapshot.load(out)
    assert new.traces == old.traces and vars(new).keys() == vars(old).keys()
    assert out.read_bytes()[:4] == b"\x89HLS"


MEMRAY = """\
allocator,num_allocations,size,tid,thread_name,stack_trace
MALLOC,3,100,1,0x1,f;/a.py;5|g;/b;c|d.py;6|<module>;/a.py;9
MMAP,2,50,2,worker,f;/a.py;5|g;/b;c|d.py;6|<module>;/a.py;9
PYMALLOC_MALLOC,1,7,1,0x1,g;/b;c|d.py;6|<module>;/a.py;9
MALLOC,1,0,1,0x1,
MALLOC,4,44,1,0x1,operator|(X const&);x.cpp;1|<module>;/a.py;9
"""


def test_import_of_a_table_of_memray(fine, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text(MEMRAY, encoding="utf-8")
    fine("import", table, "-o", tmp_path / "out")
    capture = heapledger.Capture.load(tmp_path / "out")
    assert capture.moments == ("peak",)
    found = {
        tuple((frame.filename, frame.lineno, frame.name) for frame in one.traceback): (one.size, one.count)
        for one in capture.peak.statistics("traceback")
    }
    module, middle = ("/a.py", 9, "<module>"), ("/b;c|d.py", 6, "g")
    assert found == {
        (module, middle, ("/a.py", 5, "f")): (150, 5),
        (module, middle): (7, 1),
        (("<unknown>", 0, None),): (0, 1),
        (module, ("x.cpp", 1, "operator|(X const&)")): (44, 4),
    }
    assert sorted(trace.size for trace in capture.peak.traces) == [0, 7, 11, 11, 11, 11, 25, 25, 33, 33, 34]
    fine("import", table, "-o", tmp_path / "out", "--moment", "live")
    assert heapledger.Capture.load(tmp_path / "out").moments == ("live",)


def test_import_of_a_table_that_memray_made(fine, tmp_path):
    """By memray 1.20, shortened, with other folders."""
    fine("import", "memray.csv", "-o", tmp_path / "out")
    with open("memray.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    answer = json.loads(fine("top", tmp_path / "out", "--by", "function", "-n", "1000", "--json"))
    assert answer["total"]["size"] == sum(int(row["size"]) for row in rows)
    assert answer["total"]["count"] == sum(int(row["num_allocations"]) for row in rows)
    load = sum(int(row["size"]) for row in rows if row["stack_trace"].startswith("<listcomp>;"))
    assert [one["size"] for one in answer["groups"] if one["function"] == "<listcomp>"] == [load] and load > 10**6
    assert "prog.py" in fine("tree", tmp_path / "out") and fine("check", tmp_path / "out")


@pytest.mark.parametrize(
    "line, said",
    [
        ("MALLOC,x,1,1,0x1,f;a.py;1", "invalid literal"),
        ("MALLOC,0,1,1,0x1,f;a.py;1", "too small"),
        ("MALLOC,1,-1,1,0x1,f;a.py;1", "too small"),
        (f"MALLOC,1,{2**70},1,0x1,f;a.py;1", "too large"),
        (f"MALLOC,1,1,1,0x1,f;a.py;{2**32}", "too large"),
        ("MALLOC,1,1,1,0x1,nonsense", "a stack is malformed"),
        ("MALLOC,1", ""),
    ],
)
def test_a_table_that_is_none(run, tmp_path, line, said):
    (tmp_path / "table").write_text(MEMRAY + line + "\n", encoding="utf-8")
    done = run("import", tmp_path / "table", "-o", tmp_path / "out")
    assert done.status == 2 and "table: line 7: " in done.errors and said in done.errors
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("more", ["s", "_of_more", ",more"])
def test_a_table_with_other_columns(run, tmp_path, more):
    """Its header begins like memray's."""
    header, *rows = MEMRAY.splitlines()
    (tmp_path / "table").write_text("\n".join([header + more, *rows]), encoding="utf-8")
    done = run("import", tmp_path / "table", "-o", tmp_path / "out")
    if more == ",more":
        assert done.status == 0
    else:
        said = f"heapledger import: cannot read {tmp_path / 'table'}: line 1: the column stack_trace is missing\n"
        assert (done.status, done.errors) == (2, said)


def test_import_of_random_stacks(tmp_path):
    """What is written is read again, shared frames and all."""
    choose = random.Random(1)
    for deepest in (1, 3, 300):
        given, expected = [], {}
        for _ in range(200):
            frames = [(choose.choice(["a.py", "ü\udc80", ""]), choose.randrange(3), choose.choice(["f", None, ""]))]
            frames = tuple(frames * choose.randrange(1, deepest + 1))
            if choose.random() < 0.5:
                frames += (("b.py", 2**32 - 1, "g"),)
            size, count = choose.randrange(2**20), choose.randrange(1, 1000)
            given.append((frames, size, count))
            # Of stacks that differ in functions only, statistics make one.
            key = tuple(frame[:2] for frame in frames)
            old = expected.get(key, (0, 0))
            expected[key] = old[0] + size * count, old[1] + count
        _files.from_rows(given, "live", deepest, {"a": 1}).dump(tmp_path / "file", format="hlsnap")
        snapshot = heapledger.Snapshot.load(tmp_path / "file")
        found = {
            tuple((frame.filename, frame.lineno) for frame in reversed(one.traceback)): (one.size, one.count)
            for one in snapshot.statistics("traceback")
        }
        assert found == expected and snapshot.metadata["a"] == 1
        assert {frame.name for trace in snapshot.traces for frame in trace.traceback} == {"f", "g", None, ""}


def test_import_of_deep_stacks_that_share_nearly_everything(tmp_path):
    """The format bounds how many frames a byte may stand for, so bytes are added."""
    common = tuple(("a.py", line, "f") for line in range(1, 1001))
    rows = [((("b.py", line, "g"), *common), 10, 1) for line in range(200)]
    _files.from_rows(rows, "live", 1001, {}).dump(tmp_path / "file", format="hlsnap")
    snapshot = heapledger.Snapshot.load(tmp_path / "file")
    assert {len(one.traceback) for one in snapshot.statistics("traceback")} == {1001}
    assert len(snapshot.traces) == 200


def test_sums_that_are_too_great(run, tmp_path):
    (tmp_path / "table").write_text(MEMRAY + f"MALLOC,1,{2**62 - 1},1,0x1,f;a.py;1\n" * 3, encoding="utf-8")
    done = run("import", tmp_path / "table", "-o", tmp_path / "out")
    said = f"heapledger import: cannot import {tmp_path / 'table'}: the sum of the sizes exceeds 64 bits\n"
    assert (done.status, done.errors) == (2, said) and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "row, error",
    [
        (((), 1, 1), IndexError),
        (((("a.py", 1),), 1, 1), ValueError),
        (((("a.py", 1, b"f"),), 1, 1), TypeError),
        ((((b"a.py", 1, "f"),), 1, 1), TypeError),
        (((("a.py", -1, "f"),), 1, 1), OverflowError),
        (((("a.py", 1, "f"),), -1, 1), OverflowError),
        (((("a.py", 1, "f"),), 1, 2**56), OverflowError),
        (((("a.py", 1, "f"),), 1), ValueError),
    ],
)
def test_rows_that_are_none(row, error):
    with pytest.raises(error):
        _files.from_rows([((("a.py", 1, "f"),), 1, 1), row], "live", 1, {})
