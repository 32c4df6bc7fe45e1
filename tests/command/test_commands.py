"""What the commands do besides what tests/command/golden shows: mistakes, choices, tracebacks by number."""

import importlib.metadata
import json
import os
import re

import heapledger
import pytest
import stored
from heapledger import _files
from heapledger.command import SUMMARIES, _table

ANALYSES = ("summary", "top", "tree", "diff", "show", "merge", "export", "import", "check", "completion")


# --- help and mistakes ---


@pytest.mark.parametrize("name", ANALYSES)
def test_help_has_an_example(run, name):
    done = run(name, "--help")
    assert done.status == 0 and done.output.startswith(f"usage: heapledger {name}")
    example = done.output.partition("example:\n")[2]
    assert re.search(rf"\bheapledger {name}\b", example)


def test_every_command_is_listed(run):
    text = run("--help").output
    assert all(re.search(rf"^  {name} ", text, re.MULTILINE) for name in SUMMARIES)


@pytest.mark.parametrize(
    "arguments",
    [
        ("top",),
        ("top", "old.hlsnap", "--by", "nonsense"),
        ("top", "old.hlsnap", "-n", "0"),
        ("top", "old.hlsnap", "--domain", "x"),
        ("tree", "old.hlsnap", "--threshold", "101"),
        ("diff", "old.hlsnap"),
        ("export", "old.hlsnap"),
        ("completion", "csh"),
        ("tree", "old.hlsnap", "--depth", "0"),
        ("open", "old.hlsnap", "--port", "65536"),
        ("nonsense",),
        (),
    ],
)
def test_mistakes_in_the_command_line(run, arguments):
    done = run(*arguments)
    assert (done.status, done.output) == (2, "") and "usage: heapledger" in done.errors
    if len(arguments) == 4:
        assert f"{arguments[2]}" in done.errors and "_" not in done.errors.splitlines()[-1]  # no function of ours


def test_a_command_that_there_is_not(run):
    assert run("tpo").errors.endswith("heapledger: error: there is no command 'tpo': did you mean top?\n")
    assert run("nonsense").errors.endswith("there is no command 'nonsense': heapledger --help lists the commands\n")
    assert all(name in run().errors for name in SUMMARIES)


def test_an_option_that_there_is_not(run):
    for arguments in (["-x"], ["--nonsense", "top", "old.hlsnap"], ["-x", "--version"]):
        done = run(*arguments)
        assert (done.status, done.output) == (2, "")
        assert done.errors.endswith(f"heapledger: error: unrecognized arguments: {arguments[0]}\n")
    assert run("--").status == 2


def test_version(run):
    done = run("--version")
    assert done.status == 0 and done.output == f"heapledger {importlib.metadata.version('heapledger')}\n"


def test_nothing_left(fine):
    for command in ("top", "tree"):
        text = fine(command, "new.hlsnap", "--include", "/nothing*", "--exclude", "x")
        assert text == "no block is left by --include and --exclude\n\nlive: 0 B in 0 blocks\n"


def test_nothing_left_by_a_name_that_is_no_path(fine):
    """Names in a file are whole paths."""
    for pattern in ("orders.py", "shop/orders.py"):
        text = fine("top", "new.hlsnap", "--include", pattern)
        assert text.startswith(f"no block is left by --include; names are whole paths, try '*/{pattern}'\n")
    for pattern in ("*orders.ph", "/app/orders.py", "<frozen x>"):
        assert fine("top", "new.hlsnap", "--include", pattern).startswith("no block is left by --include\n")
    assert fine("top", "new.hlsnap", "--exclude", "*", "--exclude", "x").startswith("no block is left by --exclude\n")


@pytest.mark.parametrize("command", ["summary", "top", "tree", "diff", "show", "merge", "export", "import"])
@pytest.mark.parametrize(
    "name, said",
    [
        ("missing", "No such file or directory"),
        ("", "Is a directory"),
        ("cut", "is cut off (byte "),
        ("damaged", "the checksum of a section is wrong (byte "),
        ("other", "is neither an .hlsnap file nor a pickle of a snapshot (byte 0)"),
        ("empty", "is empty (byte 0)"),
        ("pickle", "(byte "),
    ],
)
def test_a_file_that_cannot_be_read(run, bad_files, command, name, said):
    path = str(bad_files / name)
    more = {"diff": ["old.hlsnap"], "show": ["0"], "export": ["--format", "csv"]}.get(command, [])
    more += ["-o", str(bad_files / "out")] if command in ("merge", "import") else []
    done = run(command, path, *more)
    assert (done.status, done.output) == (2, "")
    assert done.errors.startswith(f"heapledger {command}: cannot read {path}: ")
    assert said in done.errors and done.errors.count("\n") == 1
    assert not (bad_files / "out").exists()


def test_a_file_with_an_odd_name(run, tmp_path):
    done = run("top", tmp_path / "x\x1b[31m\n")
    assert "cannot read" in done.errors and "x\\x1b[31m\\n: " in done.errors


def test_a_moment_that_is_not_there(run):
    done = run("top", "stdlib.pickle", "--peak")
    assert done.status == 2 and "no snapshot of the moment 'peak', only of: live" in done.errors


@pytest.mark.parametrize("command", ["summary", "top", "tree", "merge", "export", "report", "diff"])
def test_files_without_a_moment_in_common(run, tmp_path, command):
    capture = heapledger.Capture.load(stored.GOLDEN / "new.hlsnap")
    names = [tmp_path / moment for moment in ("live", "peak")]
    for name in names:
        capture.select(name.name).dump(name)
    out = tmp_path / "out"
    more = {"export": ["--format", "csv"], "merge": ["-o", out], "report": ["--merge", "-o", out]}
    done = run(command, *names, *more.get(command, []))
    assert (done.status, done.output) == (2, "")
    said = "no moment in common"
    if command == "diff":
        said = f"not have a moment in common; {names[0]}: live; {names[1]}: peak"
    assert done.errors.startswith(f"heapledger {command}: ") and said in done.errors and done.errors.count("\n") == 1
    assert not out.exists()


def test_diff_takes_a_moment_that_both_have(run, fine, tmp_path):
    heapledger.Capture.load(stored.GOLDEN / "old.hlsnap").select("peak").dump(tmp_path / "peak")
    assert fine("diff", tmp_path / "peak", "new.hlsnap") == fine("diff", "old.hlsnap", "new.hlsnap", "--peak")
    done = run("diff", tmp_path / "peak", "new.hlsnap", "--moment", "live")
    assert done.status == 2 and "both a snapshot of the moment 'live'; " in done.errors


@pytest.mark.parametrize("command", [("merge",), ("import",), ("export", "--format", "csv")])
def test_a_file_that_cannot_be_written(run, tmp_path, command):
    name, *more = command
    done = run(name, "old.hlsnap", *more, "-o", tmp_path / "no" / "such")
    assert done.status == 2 and done.errors.endswith("no/such: No such file or directory\n")


# --- choices ---


def total(fine, *arguments):
    answer = json.loads(fine("top", *arguments, "--json"))
    return answer["total"]["size"], answer["total"]["count"]


@pytest.mark.parametrize("by", ["line", "file", "function", "traceback", "package"])
@pytest.mark.parametrize("moment", ["live", "peak", "allocated"])
def test_groups_add_up(fine, by, moment):
    answer = json.loads(fine("top", "new.hlsnap", "--by", by, "--moment", moment, "-n", "1000", "--json"))
    snapshot = getattr(heapledger.Capture.load("new.hlsnap"), moment)
    expected = sum(one.size for one in snapshot.statistics("filename"))
    assert sum(one["size"] for one in answer["groups"]) == answer["total"]["size"] == expected
    assert answer["number_of_groups"] == len(answer["groups"])


@pytest.mark.parametrize("by", ["line", "file", "function", "package"])
def test_cumulative_counts_a_recursion_once(fine, by):
    """/app/main.py:17 is on every stack three times."""
    answer = json.loads(fine("top", "new.hlsnap", "--by", by, "--cumulative", "-n", "1000", "--json"))
    whole = answer["total"]["size"]
    assert all(one["size"] <= whole for one in answer["groups"])
    expected = 0
    for one in heapledger.Snapshot.load("new.hlsnap").statistics("traceback"):
        if ("/app/main.py", 17) in [(frame.filename, frame.lineno) for frame in one.traceback]:
            expected += one.size
    if by == "line":
        (found,) = [one for one in answer["groups"] if (one.get("file"), one.get("line")) == ("/app/main.py", 17)]
        assert found["size"] == expected


def test_include_and_exclude(fine):
    everything = total(fine, "new.hlsnap")
    shop = total(fine, "new.hlsnap", "--include", "/app/shop/*")
    others = total(fine, "new.hlsnap", "--exclude", "/app/shop/*")
    assert [a + b for a, b in zip(shop, others, strict=True)] == list(everything) and shop[0] > 0
    two = total(fine, "new.hlsnap", "--include", "/app/shop/*", "--include", "*/json/*")
    assert two[0] == shop[0] + total(fine, "new.hlsnap", "--include", "*/json/*")[0]
    assert total(fine, "new.hlsnap", "--include", "/app/main.py")[0] < shop[0]
    assert total(fine, "new.hlsnap", "--include", "/app/main.py", "--all-frames") == everything
    assert total(fine, "new.hlsnap", "--exclude", "/app/main.py", "--all-frames") == (0, 0)


def test_domain(fine, tmp_path):
    traces = [(7, 100, (("a.py", 1),), 1), (0, 10, (("a.py", 1),), 1), (9, 1, (("b.py", 1),), 1)]
    heapledger.Snapshot(traces, 1).dump(tmp_path / "domains")
    assert total(fine, tmp_path / "domains", "--domain", "7") == (100, 1)
    assert total(fine, tmp_path / "domains", "--domain", "7", "--domain", "9") == (101, 2)
    assert total(fine, tmp_path / "domains", "--domain", "9", "--include", "a.py") == (0, 0)


def test_source_lines(fine, tmp_path):
    source = tmp_path / "some.py"
    source.write_text("one = 1\n\ttwo = '\x1b[31m'\n", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe.py")
    traces = [(0, 100, ((str(source), 2),), 1), (0, 10, ((str(tmp_path / "pipe.py"), 1),), 1), (0, 5, (("x\0", 1),), 1)]
    heapledger.Snapshot(traces, 1).dump(tmp_path / "sources")
    text = fine("top", tmp_path / "sources")
    assert re.search(r"some.py:2\n +two = '\\x1b\[31m'\n", text)
    assert "two" not in fine("top", tmp_path / "sources", "--no-source")
    assert "two" in fine("tree", tmp_path / "sources", "--source")


@pytest.mark.parametrize("format", ["tracemalloc", "hlsnap"])
@pytest.mark.parametrize("total", [7, 1])  # an .hlsnap file holds totals that differ in a section of their own
def test_a_snapshot_without_frames(fine, run, tmp_path, format, total):
    traces = [(0, 5, (("a.py", 1),), 1), (0, 5, (("a.py", 1),), total), (0, 3, (), None)]
    heapledger.Snapshot(traces, 1).dump(tmp_path / "made", format=format)
    for by in ("line", "file", "function", "traceback", "package"):
        assert "<no frames>" in fine("top", tmp_path / "made", "--by", by)
    for command in ("tree", "summary"):
        assert "<no frames>" in fine(command, tmp_path / "made")
    for command, *more in (["report"], ["report", tmp_path / "made"], ["export", "--format", "collapsed"], ["merge"]):
        done = run(command, tmp_path / "made", *more, "-o", tmp_path / "out")
        assert done.status == 0, done
    assert "<no frames>" in fine("top", tmp_path / "out")


def test_a_snapshot_without_frames_keeps_its_metadata(fine, tmp_path):
    heapledger.start()
    taken = heapledger.take_snapshot()
    heapledger.stop()
    taken.traces._traces.append((0, 3, (), None))
    taken.dump(tmp_path / "made", format="hlsnap")
    assert "<no frames>" in fine("top", tmp_path / "made")
    assert f"process {os.getpid()}, " in fine("summary", tmp_path / "made")


def test_an_empty_snapshot(fine, tmp_path):
    heapledger.Snapshot([], 1).dump(tmp_path / "empty")
    for arguments in (["summary"], ["top"], ["tree"], ["export", "--format", "pprof", "-o", tmp_path / "out"]):
        name, *more = arguments
        fine(name, tmp_path / "empty", *more)
    fine("diff", tmp_path / "empty", "old.hlsnap")


def test_a_tree_deeper_than_a_recursion(fine, tmp_path):
    deepest = 3000
    frames = tuple(("a.py", line, "f") for line in range(deepest, 0, -1))
    _files.from_rows([(frames, 10, 1)], "live", deepest, {}).dump(tmp_path / "deep", format="hlsnap")
    assert fine("tree", tmp_path / "deep", "--depth", "4000").count("a.py:") == deepest
    text = fine("tree", tmp_path / "deep", "--depth", "4000", "--json")
    # Nothing here reads JSON that is so deep; it opens and closes as it should.
    words = re.findall(r'"line": \d+|[][{}]', text)
    assert [word for word in words if word.startswith('"')] == [f'"line": {line}' for line in range(1, deepest + 1)]
    brackets = "".join(word for word in words if not word.startswith('"'))
    assert brackets == "{{[" + "{[" * deepest + "]}" * deepest + "]}}"
    assert len(text) < 10_000_000  # an indentation that grew all the way would be most of it


@pytest.mark.parametrize(
    "value",
    [{}, [], {"a": [], "b": {}, "ü\udc80": [1, -2.5, True, None, '\n"\\文\ud800']}, [[[{"a": [[1], [2]]}]], 4], "x"],
)
def test_json_is_written_as_the_standard_library_does(capsys, value):
    _table.show_json(value)
    assert capsys.readouterr().out == json.dumps(value, indent=2) + "\n"


# --- tracebacks by number ---


def test_every_number_shows_its_traceback(fine):
    answer = json.loads(fine("top", "new.hlsnap", "--by", "traceback", "-n", "1000", "--json"))
    for one in answer["groups"]:
        shown = json.loads(fine("show", "new.hlsnap", one["id"].upper()[:8], "--json"))
        assert [(frame["file"], frame["line"]) for frame in shown["frames"]] == [
            (frame["file"], frame["line"]) for frame in one["frames"]
        ]
        assert shown["moments"]["live"] == {"size": one["size"], "count": one["count"]}


def test_numbers_are_the_same_in_all_files(fine):
    def numbers(name):
        answer = json.loads(fine("top", name, "--by", "traceback", "-n", "1000", "--json"))
        return {json.dumps(one["frames"]): one["id"] for one in answer["groups"]}

    old, new = numbers("old.hlsnap"), numbers("new.hlsnap")
    assert len(old.keys() & new.keys()) > 10
    assert all(old[frames] == new[frames] for frames in old.keys() & new.keys())
    assert len(set(old.values())) == len(old)


def test_a_number_that_is_not_there_or_not_clear(run):
    done = run("show", "new.hlsnap", "0123456789")
    assert done.status == 2 and "no traceback has the number 0123456789" in done.errors
    assert run("show", "new.hlsnap", "").status == 2
    numbers = [one["id"] for one in json.loads(run("export", "new.hlsnap", "--format", "json").output)["stacks"]]
    first = [number[0] for number in numbers]
    twice = next(digit for digit in first if first.count(digit) > 1)
    done = run("show", "new.hlsnap", twice)
    assert done.status == 2 and "may be any of: " in done.errors


# --- files ---


@pytest.fixture
def other_process(tmp_path):
    """new.hlsnap, as if it were of another process than old.hlsnap."""
    return stored.changed(stored.GOLDEN / "new.hlsnap", tmp_path / "other.hlsnap", pid=4322)


def test_merge(run, fine, other_process, tmp_path):
    out = tmp_path / "out.hlsnap"
    assert "2 files merged" in fine("merge", "old.hlsnap", other_process, "-o", out)
    assert fine("top", out, "-n", "3") == fine("top", "old.hlsnap", other_process, "-n", "3")
    assert heapledger.Capture.load(out).moments == ("live", "peak", "allocated")
    done = run("merge", out, "stdlib.pickle", "-o", out)
    assert done.status == 0 and heapledger.Capture.load(out).moments == ("live",)
    assert done.errors == "heapledger: left out because not all files have it: peak, allocated\n"


@pytest.mark.parametrize("command", ["summary", "top", "tree", "merge", "export", "report"])
def test_the_sum_of_one_process_is_told(run, other_process, tmp_path, command):
    out = tmp_path / "out"
    more = {"export": ["--format", "csv"], "merge": ["-o", out], "report": ["--merge", "-o", out]}.get(command, [])
    done = run(command, other_process, "new.hlsnap", "stdlib.pickle", "stdlib.pickle", "old.hlsnap", *more)
    assert done.status == 0
    said = "heapledger: new.hlsnap and old.hlsnap are from one process: their sum is not the memory of any process; "
    assert f"{said}diff and report show how it changed\n" in done.errors
    assert "from one process" not in run(command, other_process, "old.hlsnap", "stdlib.pickle", *more).errors


@pytest.mark.parametrize("facts", [{"command": 3}, {"command": [[], {}]}, {"host": []}, {"pid": "x"}])
def test_metadata_of_any_type(run, tmp_path, facts):
    names = [stored.changed(stored.GOLDEN / "new.hlsnap", tmp_path / str(number), **facts) for number in range(3)]
    assert run("top", *names).status == 0
    assert run("report", *names, "-o", tmp_path / "page").status == 0
