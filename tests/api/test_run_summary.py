"""What `heapledger run` says at the end: which files there are, and which lines of the program held most."""

import os
import re
import sysconfig

import pytest
from running import Folder


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_summary(folder):
    """Where the files are and the three largest lines of all processes, on stderr, by the first process alone."""
    name = folder.script("""\
        import subprocess, sys
        small = bytes(3 << 20)
        large = bytes(7 << 20)
        subprocess.run([sys.executable, "child.py"])
        print("out")
        """)
    folder.script("larger = bytes(10 << 20)", "child.py")
    done = folder.traced(name)
    assert (done.status, done.out) == (0, "out\n")
    lines = done.err.splitlines()
    assert len(lines) == 6, done
    (own,) = [path for path in folder.files() if lines[0] == f"heapledger: written to {path}"]
    assert re.fullmatch(r"heapledger-\d+-\d+-\d+", own.stem)
    assert all(path.name.startswith(own.stem) for path in folder.files())
    assert lines[1] == f"heapledger: 2 files of 2 processes: {own.with_suffix('')}*.hlsnap"
    assert re.fullmatch(
        r"heapledger: the lines that held most of 2\d\.\d MiB at the peaks of 2 processes, "
        r"of which imports took \d\.\d MiB:",
        lines[2],
    ), lines
    places = (("10.0", "child.py:1"), ("7.0", f"{folder.path / name}:3"), ("3.0", f"{folder.path / name}:2"))
    for line, (size, place) in zip(lines[3:], places, strict=True):
        assert re.fullmatch(rf" +{re.escape(size)} MiB  (\S*/)?{re.escape(place)}", line), lines


def test_summary_charges_libraries_to_the_program(folder):
    """What the standard library and packages allocate belongs to the line of the program that called them."""
    package = folder.path / "lib" / "site-packages"
    package.mkdir(parents=True)
    (package / "packed.py").write_text(
        "table = bytes(50 << 20)\ndef work():\n    return [bytes(1 << 20) for _ in range(20)]\n"
    )
    name = folder.script("""\
        import json, sys
        sys.path.append("lib/site-packages")
        import packed
        def parse():
            return json.loads("[" + "1.5," * 1_000_000 + "1]")
        kept = parse()
        more = packed.work()
        """)
    done = folder.traced(name)
    header, *lines = done.err.splitlines()[1:]
    assert re.search(r"of which imports took 5\d\.\d MiB:$", header), done
    shown = [line.split()[2] for line in lines]
    assert shown[0] == f"{folder.path / name}:5" and shown[1] == f"{folder.path / name}:7", done
    # Where nothing is the program's own, packages count.
    done = folder.traced("-m", "packed_command", environment={"PYTHONPATH": str(package)})
    assert "No module named packed_command" in done.err
    (package / "packed_command.py").write_text("import packed\nkept = packed.work()\n")
    done = folder.traced("-m", "packed_command", environment={"PYTHONPATH": str(package)})
    assert f"20.0 MiB  {package / 'packed.py'}:3\n" in done.err


def test_summary_of_very_much(folder):
    """Where reading all files would take long, the lines are the first process's. Here the metadata are large."""
    name = folder.script("""\
        import subprocess, sys
        large = bytes(7 << 20)
        words = ["x" * 100_000] * 19
        for _ in range(18):
            subprocess.run([sys.executable, "child.py", *words])
        """)
    folder.script("larger = bytes(10 << 20)", "child.py")
    lines = folder.traced(name).err.splitlines()
    assert sum(path.stat().st_size for path in folder.files()) > 32 << 20
    assert "heapledger: 19 files of 19 processes: " in lines[1]
    assert re.fullmatch(r"heapledger: the lines that held most of 1\d\.\d MiB at the peak, .*:", lines[2]), lines
    assert lines[3].split()[0] == "7.0" and lines[3].endswith(f"{name}:2")


@pytest.mark.parametrize(
    "template, pattern",
    [
        ("x.hlsnap", "x*.hlsnap"),
        ("x-%p.hlsnap", "x-*.hlsnap"),
        ("x", "x*"),
        ("x.%p", "x*.*"),
        ("%p-x.hlsnap", "*-x*.hlsnap"),
    ],
)
def test_summary_tells_processes_apart(folder, template, pattern):
    """Files of a series, and of what a program was before os.exec, are its own."""
    series = "os.kill(os.getpid(), 12); os.kill(os.getpid(), 12)"
    child = "if os.fork() == 0: os.kill(os.getpid(), 12); os._exit(0)"
    name = folder.script(f"import os, sys\n{series}\nif sys.argv[1] == 'fork':\n {child}\n os.wait()\n")
    options = ["-o", template, "--on-signal", "SIGUSR2"]
    for given, said in (("alone", "3 files of this process"), ("fork", "5 files of 2 processes")):
        lines = folder.traced(name, given, options=options).err.splitlines()
        assert lines[1] == f"heapledger: {said}: {folder.path}/{pattern}", lines
        for path in [*folder.path.glob("x*"), *folder.path.glob("*-x*")]:
            path.unlink()
    replace = f"import os, sys\nos.execv(sys.executable, [sys.executable, {name!r}, 'fork'])\n"
    lines = folder.traced(folder.script(replace, "before.py"), options=options).err.splitlines()
    assert f"heapledger: 6 files of 2 processes: {folder.path}/{pattern}" in lines


@pytest.mark.parametrize("options", [[], ["-o", "x-%p.hlsnap"]])
def test_each_run_counts_its_own_files(folder, options):
    """Two runs at the same moment, in the same folder."""
    name = folder.script("""\
        import os, sys
        for _ in range(2):
            if os.fork() == 0:
                os._exit(0)
            os.wait()
        print("ready", flush=True)
        sys.stdin.readline()
        """)
    both = [folder.start_traced(name, options=options) for _ in range(2)]
    for one in both:
        assert one.stdout.readline() == "ready\n"
    for one in both:
        assert "heapledger: 3 files of 3 processes: " in folder.finish(one).err
    assert len(folder.files()) == 6


def test_summary_goes_to_nobody_elses_file(folder):
    """A program that has closed stderr, or put a file of its own there, gets nothing of ours into it."""
    name = folder.script("""\
        import os
        os.close(2)
        assert os.open("data", os.O_CREAT | os.O_WRONLY) == 2
        """)
    assert folder.traced(name).status == 0
    assert (folder.path / "data").read_text() == ""
    assert len(folder.files()) == 1


def test_closing_words_do_not_command_the_terminal(folder):
    script = folder.path / "a\x1b[31m\nb\udcff.py"
    script.write_text("kept = bytes(3_000_000)")
    done = folder.traced(script, options=["-o", "x\x1b[2J\n\t.hlsnap"])
    assert r"written to " in done.err and r"/x\x1b[2J\x0a\x09.hlsnap" in done.err
    assert r"/a\x1b[31m\x0ab\xff.py:1" in done.err
    assert "\x1b" not in done.err and all(line.startswith(("heapledger: ", "  ")) for line in done.err.splitlines())


def test_file_that_cannot_be_read_back(folder):
    """A device, a pipe: there is nothing to say but where it went."""
    assert folder.traced("-c", "pass", options=["-o", "/dev/null"]).err == "heapledger: written to /dev/null\n"


def test_files_that_others_are_writing(folder):
    """A name that everything matches: what is not of this run is left alone, whatever it is."""
    (folder.path / "empty").touch()
    (folder.path / "short").write_bytes(b"\x89HLS\r\n\x1a\n")
    (folder.path / "folder").mkdir()
    os.mkfifo(folder.path / "fifo")
    name = folder.script("kept = bytes(3 << 20)")
    for _ in range(2):
        lines = folder.traced(name, options=["-o", "%p"]).err.splitlines()
        assert lines[1].startswith("heapledger: the lines that held most of ")
        assert lines[2].endswith(f"3.0 MiB  {folder.path / name}:1")


def test_commands_of_packages_are_not_the_programs_own(folder):
    """The script beside the interpreter only calls the package."""
    command = os.path.join(sysconfig.get_path("scripts"), "pytest")
    done = folder.traced(command, "--version")
    lines = done.err.splitlines()[-3:]
    assert all("/site-packages/" in line for line in lines), done
