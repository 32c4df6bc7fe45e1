"""What the commands do besides what tests/command/golden shows: mistakes, exit statuses, choices, terminals, pipes."""

import csv
import fcntl
import importlib.metadata
import json
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios

import heapledger
import pytest
import stored
from heapledger.command import SUMMARIES, _hlsnap

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


def test_version(run):
    done = run("--version")
    assert done.status == 0 and done.output == f"heapledger {importlib.metadata.version('heapledger')}\n"


def test_nothing_left(fine):
    for command in ("top", "tree"):
        text = fine(command, "new.hlsnap", "--include", "nothing*", "--exclude", "x")
        assert text == "no block is left by --include and --exclude\n\nlive: 0 B in 0 blocks\n"


@pytest.fixture
def bad_files(tmp_path):
    whole = (stored.GOLDEN / "old.hlsnap").read_bytes()
    contents = {
        "cut": whole[:-30],
        "damaged": whole[:700] + bytes([whole[700] ^ 1]) + whole[701:],
        "other": b"hello",
        "empty": b"",
        "pickle": b"\x80\x03cos\nsystem\n.",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


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
        (found,) = [one for one in answer["groups"] if (one["file"], one["line"]) == ("/app/main.py", 17)]
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


def test_a_snapshot_without_frames(fine, tmp_path):
    traces = [(0, 5, (("a.py", 1),), 1), (0, 5, (("a.py", 1),), 7), (0, 3, (), None)]
    heapledger.Snapshot(traces, 1).dump(tmp_path / "made", format="tracemalloc")
    for by in ("line", "file", "function", "traceback", "package"):
        assert "<no frames>" in fine("top", tmp_path / "made", "--by", by)
    assert "<no frames>" in fine("tree", tmp_path / "made")


def test_an_empty_snapshot(fine, tmp_path):
    heapledger.Snapshot([], 1).dump(tmp_path / "empty")
    for arguments in (["summary"], ["top"], ["tree"], ["export", "--format", "pprof", "-o", tmp_path / "out"]):
        name, *more = arguments
        fine(name, tmp_path / "empty", *more)
    fine("diff", tmp_path / "empty", "old.hlsnap")


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


def test_merge(fine, tmp_path):
    out = tmp_path / "out.hlsnap"
    assert "2 files merged" in fine("merge", "old.hlsnap", "new.hlsnap", "-o", out)
    assert fine("top", out, "-n", "3") == fine("top", "old.hlsnap", "new.hlsnap", "-n", "3")
    assert heapledger.Capture.load(out).moments == ("live", "peak", "allocated")
    fine("merge", out, "stdlib.pickle", "-o", out)
    assert heapledger.Capture.load(out).moments == ("live",)


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
        (f"MALLOC,1,{2**70},1,0x1,f;a.py;1", "too great"),
        (f"MALLOC,1,1,1,0x1,f;a.py;{2**32}", "too great"),
        ("MALLOC,1,1,1,0x1,nonsense", "not written as it should be"),
        ("MALLOC,1", ""),
    ],
)
def test_a_table_that_is_none(run, tmp_path, line, said):
    (tmp_path / "table").write_text(MEMRAY + line + "\n", encoding="utf-8")
    done = run("import", tmp_path / "table", "-o", tmp_path / "out")
    assert done.status == 2 and "table: line 7: " in done.errors and said in done.errors
    assert not (tmp_path / "out").exists()


def test_import_of_random_stacks(tmp_path):
    """What is written is read again, shared frames and all."""
    choose = random.Random(1)
    for deepest in (1, 3, 300):
        writer, expected = _hlsnap.Writer(), {}
        for _ in range(200):
            frames = [(choose.choice(["a.py", "ü\udc80", ""]), choose.randrange(3), choose.choice(["f", None, ""]))]
            frames = tuple(frames * choose.randrange(1, deepest + 1))
            if choose.random() < 0.5:
                frames += (("b.py", 2**32 - 1, "g"),)
            size, count = choose.randrange(2**20), choose.randrange(1, 1000)
            writer.add(frames, size, count)
            # Of stacks that differ in functions only, statistics make one.
            key = tuple(frame[:2] for frame in frames)
            old = expected.get(key, (0, 0))
            expected[key] = old[0] + size * count, old[1] + count
        (tmp_path / "file").write_bytes(writer.encode("live", deepest, {"a": 1}))
        snapshot = heapledger.Snapshot.load(tmp_path / "file")
        found = {
            tuple((frame.filename, frame.lineno) for frame in one.traceback): (one.size, one.count)
            for one in snapshot.statistics("traceback")
        }
        assert found == expected and snapshot.metadata["a"] == 1


def test_import_of_deep_stacks_that_share_nearly_everything(tmp_path):
    """The format bounds how many frames a byte may stand for, so bytes are added."""
    writer, common = _hlsnap.Writer(), tuple(("a.py", line, "f") for line in range(1, 1001))
    for line in range(200):
        writer.add((*common, ("b.py", line, "g")), 10, 1)
    (tmp_path / "file").write_bytes(writer.encode("live", 1001, {}))
    snapshot = heapledger.Snapshot.load(tmp_path / "file")
    assert {len(one.traceback) for one in snapshot.statistics("traceback")} == {1001}
    assert len(snapshot.traces) == 200


# --- processes, pipes and terminals ---


def test_exit_statuses(process, bad_files):
    said = {
        ("top", "old.hlsnap"): 0,
        ("check", str(bad_files / "cut")): 1,
        ("top", str(bad_files / "cut")): 2,
        ("top",): 2,
    }
    for arguments, status in said.items():
        assert process(*arguments, capture_output=True).returncode == status


def test_a_pipe_that_nobody_reads(process):
    reading, writing = os.pipe()
    os.close(reading)
    done = process("export", "new.hlsnap", "--format", "csv", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("command", [("top", "new.hlsnap"), ("export", "new.hlsnap", "--format", "json")])
def test_output_that_cannot_be_written(process, command):
    with open("/dev/full", "wb") as full:
        done = process(*command, stdout=full, stderr=subprocess.PIPE, text=True)
    said = f"heapledger {command[0]}: cannot write "
    assert done.returncode == 2 and done.stderr.startswith(said) and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.endswith(": No space left on device\n")


def test_interrupt(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    line = [sys.executable, "-I", "-m", "heapledger", "top", tmp_path / "pipe"]
    with subprocess.Popen(line, stderr=subprocess.PIPE) as child:
        with open(tmp_path / "pipe", "wb"):  # it is reading now
            child.send_signal(signal.SIGINT)
            assert child.wait(60) == 130
        assert child.stderr.read() == b""


def test_an_encoding_that_lacks_characters(process):
    done = process("top", "new.hlsnap", stdout=subprocess.PIPE)
    assert "文件".encode() in done.stdout
    line = [sys.executable, "-m", "heapledger", "top", "new.hlsnap"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(line, cwd=stored.GOLDEN, env=environment, capture_output=True, check=True)
    assert rb"\u6587\u4ef6.py:" in done.stdout and done.stdout.isascii()


def test_rich_is_not_imported_without_a_terminal():
    script = """if True:
        import sys
        from heapledger.command import main
        assert main(["top", "new.hlsnap"]) == main(["summary", "new.hlsnap"]) == 0
        assert not any(name.partition(".")[0] == "rich" for name in sys.modules)
    """
    subprocess.run([sys.executable, "-I", "-c", script], cwd=stored.GOLDEN, stdout=subprocess.PIPE, check=True)


def on_terminal(*arguments, width=80, **variables):
    """What a command writes to a terminal."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "LINES")}
    line = [sys.executable, "-I", "-m", "heapledger", *arguments]
    environment |= {"TERM": "xterm-256color", **variables}
    with subprocess.Popen(line, cwd=stored.GOLDEN, stdin=inner, stdout=inner, stderr=inner, env=environment) as child:
        os.close(inner)
        written = b""
        try:
            while chunk := os.read(outer, 65536):
                written += chunk
        except OSError:
            pass  # the other end is closed
        os.close(outer)
        assert child.wait(60) == 0, written
    return written.decode().replace("\r\n", "\n")


COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(
    "name, width",
    [("summary", 80), ("top", 40), ("top", 200), ("top-traceback", 200), ("tree", 80), ("diff", 80), ("show", 120)],
)
def test_a_terminal(name, width):
    text = on_terminal(*stored.COMMANDS[name], width=width)
    plain = COLOUR.sub("", text)
    assert plain != text
    assert all(character.isprintable() or character == "\n" for character in plain), plain
    for table_line in plain.split("\n\n")[name in ("summary", "show")].splitlines():
        assert len(table_line) <= width
    if name.startswith("top") and width == 200:
        assert "/app/[bold red]rich[/bold red].py" in plain and "<script>alert(1)</script>.py" in plain
        assert "…" in plain and "module.py" in plain  # of a very long path the end is shown


def test_a_terminal_without_colours():
    assert "\x1b[3" not in on_terminal(*stored.COMMANDS["diff"], NO_COLOR="1")
    assert on_terminal(*stored.COMMANDS["top"], TERM="dumb") == (stored.GOLDEN / "top.txt").read_text(encoding="utf-8")


def test_progress(tmp_path):
    """Many files show a bar on the terminal, which is gone in the end."""
    names = []
    for number in range(101):
        names.append(str(tmp_path / f"{number}.hlsnap"))
        shutil.copy(stored.GOLDEN / "old.hlsnap", names[-1])
    text = on_terminal("top", *names)
    assert "reading" in text and "merging" in text
    assert pathlib.Path(names[0]).exists() and "live: " in text


def test_a_profile_is_not_written_to_a_terminal(run, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    done = run("export", "new.hlsnap", "--format", "pprof")
    assert done.status == 2 and "-o app.pb.gz" in done.errors
