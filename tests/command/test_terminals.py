"""Commands as processes: exit statuses, pipes, signals, encodings, terminals."""

import fcntl
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import termios

import pytest
import stored


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


@pytest.mark.parametrize("name", ["old.hlsnap", "stdlib.pickle", "memray.csv"])
def test_a_pipe_can_be_read_once(process, fine, tmp_path, name):
    content = (stored.GOLDEN / name).read_bytes()
    if name != "memray.csv":
        done = process("check", "/dev/stdin", input=content, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode() == fine("check", name).replace(name, "/dev/stdin")
    done = process("import", "/dev/stdin", "-o", tmp_path / "piped", input=content, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    fine("import", name, "-o", tmp_path / "read")
    assert (tmp_path / "piped").read_bytes() == (tmp_path / "read").read_bytes()


@pytest.mark.parametrize("command", [("top", "new.hlsnap"), ("export", "new.hlsnap", "--format", "json")])
def test_output_that_cannot_be_written(process, command):
    with open("/dev/full", "wb") as full:
        done = process(*command, stdout=full, stderr=subprocess.PIPE, text=True)
    said = f"heapledger {command[0]}: cannot write "
    assert done.returncode == 2 and done.stderr.startswith(said) and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.endswith(": No space left on device\n")


def closed(which, *arguments, **options):
    """A command that is called with `>&-`, `2>&-` or both."""
    line = ["bash", "-c", f'exec "$@" {which}', "bash", sys.executable, "-I", "-m", "heapledger", *arguments]
    return subprocess.run(line, cwd=stored.GOLDEN, capture_output=True, text=True, check=False, timeout=60, **options)


@pytest.mark.parametrize("which", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_output(tmp_path, which):
    for arguments, status in {
        ("summary", "old.hlsnap"): 0,
        ("report", "new.hlsnap", "-o", str(tmp_path / "page")): 0,
        ("check", "no-such-file"): 2,
        ("top",): 2,
    }.items():
        done = closed(which, *arguments)
        assert done.returncode == status, done
        assert "Traceback" not in done.stderr
        if status:
            assert done.stdout == ""
    assert (tmp_path / "page").read_bytes().startswith(b"<!doctype html>")


@pytest.mark.parametrize("which, numbers", [(">&-", [1]), ("2>&-", [2]), ("<&- >&- 2>&-", [0, 1, 2])])
def test_a_closed_output_is_closed_for_the_program_too(tmp_path, which, numbers):
    program = """if True:
        import os, sys
        found = []
        for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
            try:
                os.fstat(number)
            except OSError:
                found.append(number)
                assert stream is None
        with open(sys.argv[1], "w") as file:
            print(found, file=file)
    """
    done = closed(which, "run", "-o", tmp_path / "traced", "-c", program, tmp_path / "found")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "found").read_text(encoding="ascii") == f"{numbers}\n"
    assert (tmp_path / "traced").exists()


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


@pytest.mark.parametrize(
    "name, width, columns",
    [("summary", 20, 2), ("top", 40, 3), ("top-traceback", 50, 4), ("diff", 40, 3), ("tree", 20, 3), ("check", 30, 4)],
)
def test_a_narrow_terminal_cuts_no_numbers(name, width, columns):
    """Only the last column is cut; lines are longer than the terminal where the others leave no room for it."""
    plain = COLOUR.sub("", on_terminal(*stored.COMMANDS[name], width=width))
    begins = rf" *[-+]?\d\S*( B| .iB)?(  +\S+( B| .iB)?){{{columns - 1}}}  "
    rows = [
        found[0]
        for line in (stored.GOLDEN / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        if (found := re.match(begins, line))
    ]
    assert len(rows) >= 10 or name == "summary" and rows
    assert [row for row in rows if f"\n{row}" not in plain] == []
    shown = [line for line in plain.splitlines() if line.startswith(tuple(rows))]
    assert max(map(len, shown)) <= max(width, len(rows[0]) + 16)


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


@pytest.mark.parametrize(
    "command, what, example",
    [
        (["export", "new.hlsnap", "--format", "pprof"], "a pprof file", "app.pb.gz"),
        (["report", "new.hlsnap", "-o", "-"], "a page", "report.html"),
        (["merge", "new.hlsnap", "-o", "-"], "an .hlsnap file", "merged.hlsnap"),
        (["import", "memray.csv", "-o", "-"], "an .hlsnap file", "imported.hlsnap"),
    ],
)
def test_what_is_not_written_to_a_terminal(run, monkeypatch, command, what, example):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    done = run(*command)
    said = f"heapledger {command[0]}: {what} cannot be shown in a terminal; say where to write it: -o {example}\n"
    assert (done.status, done.output, done.errors) == (2, "", said)


@pytest.mark.parametrize(
    "command", [["report", "new.hlsnap"], ["merge", "old.hlsnap", "stdlib.pickle"], ["import", "memray.csv"]]
)
def test_a_dash_is_stdout(run, process, tmp_path, command):
    assert run(*command, "-o", tmp_path / "file").status == 0
    done = process(*command, "-o", "-", capture_output=True)
    assert done.returncode == 0 and done.stdout == (tmp_path / "file").read_bytes()
    assert not (stored.GOLDEN / "-").exists() and b"file:" not in done.stderr


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


@pytest.mark.parametrize("command", [["report"], ["export", "--format", "json"], ["merge"], ["import"]])
def test_a_file_is_replaced_as_a_whole(process, tmp_path, command):
    out = tmp_path / "out"
    out.write_bytes(b"old")
    file = "memray.csv" if command == ["import"] else "new.hlsnap"
    done = process(*command, file, "-o", out, capture_output=True, text=True, preexec_fn=limit_files)
    assert done.returncode == 2 and f"cannot write {out}: File too large" in done.stderr
    assert out.read_bytes() == b"old" and os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("command", [["report"], ["export", "--format", "json"]])
def test_a_file_that_is_read_is_not_overwritten(run, tmp_path, command):
    shutil.copy(stored.GOLDEN / "new.hlsnap", tmp_path / "same")
    os.symlink("same", tmp_path / "link")
    before = (tmp_path / "same").read_bytes()
    for output in ("same", "link"):
        done = run(*command, "old.hlsnap", tmp_path / "same", "-o", tmp_path / output)
        assert (done.status, done.output) == (2, "") and f"{output} is one of the files to read" in done.errors
    assert (tmp_path / "same").read_bytes() == before
