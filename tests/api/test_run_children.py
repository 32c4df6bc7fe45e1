"""heapledger run follows the program's processes, each of which writes a file; merged, they add up."""

import os
import pathlib
import shutil
import subprocess
import sys

import heapledger
import pytest
from running import Folder, size_at

QUIET = ("-q",)
CHILD = "import sys; kept = bytes(123456); print('child', *sys.argv[1:])"


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


WAYS = {
    "subprocess": "subprocess.run([sys.executable, '-c', code])",
    "isolated": "subprocess.run([sys.executable, '-I', '-S', '-c', code])",
    "without vfork": "subprocess.run([sys.executable, '-c', code], preexec_fn=lambda: None)",
    "posix_spawn": "os.waitpid(os.posix_spawn(sys.executable, [sys.executable, '-c', code], os.environ), 0)",
    "system": "os.environ['CODE'] = code; os.system(f'{sys.executable} -c \"$CODE\"')",
    "shell in between": "os.environ['CODE'] = code; "
    "subprocess.run(['bash', '-c', f'true; ls > /dev/null; {sys.executable} -c \"$CODE\"; true'])",
    "fork and exec": "os.fork() or os.execv(sys.executable, [sys.executable, '-c', code]); os.wait()",
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_start_a_child(folder, way):
    name = folder.script(f"import os, subprocess, sys\ncode = {CHILD!r}\n{WAYS[way]}\n")
    assert folder.traced(name, options=["-q", "-o", "%p.hlsnap"]) == folder.plain(name)
    captures = [capture for path, capture in load_all(folder) if "-exec" not in path.name]
    assert len(captures) == 2
    sizes = [size_at(capture.live, "<string>")[0] > 123456 for capture in captures]
    assert sorted(sizes) == [False, True]
    # The image that exec replaced has a file of its own.
    assert len(folder.files()) == 2 + (way == "fork and exec")
    assert folder.leftovers() == []


def load_all(folder):
    return [(path, heapledger.Capture.load(path)) for path in folder.files()]


def test_exec_in_the_first_process(folder):
    """Same process, one file for each image; what could not be replaced goes on and writes one."""
    name = folder.script("""\
        import os, sys
        kept = bytes(234567)
        for wrong in ("/nonexistent", "/", __file__):
            try:
                os.execv(wrong, [wrong])
            except OSError as error:
                print(type(error).__name__, flush=True)
        os.execvp(sys.executable, [sys.executable, "-c", sys.argv[1], "x"])
        """)
    assert folder.traced(name, CHILD, options=["-q", "-o", "y.hlsnap"]) == folder.plain(name, CHILD)
    assert [path.name for path in folder.files()] == ["y-exec1.hlsnap", "y.hlsnap"]
    before, after = [capture for _, capture in load_all(folder)]
    assert before.metadata["pid"] == after.metadata["pid"]
    assert size_at(before.live, name)[0] > 234567
    assert size_at(after.live, "<string>")[0] > 123456


def test_exec_that_fails(folder):
    (folder.path / "no program").write_bytes(b"\x7fnothing")
    (folder.path / "no program").chmod(0o755)
    name = folder.script("""\
        import os
        try:
            os.execve("./no program", ["x"], {})
        except OSError as error:
            print(error)
        """)
    assert folder.traced(name, options=["-q", "-o", "y.hlsnap"]) == folder.plain(name)
    assert [path.name for path in folder.files()] == ["y.hlsnap"]


def test_without_children(folder):
    name = folder.script("""\
        import os, subprocess, sys
        subprocess.run([sys.executable, "-c", "pass"])
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        """)
    assert folder.traced(name, options=["-q", "--no-children"]).status == 0
    assert len(folder.files()) == 1


def test_names_of_children(folder):
    name = folder.script("import os\nif os.fork() == 0:\n print(os.getpid(), flush=True)\n os._exit(0)\nos.wait()\n")
    child = folder.traced(name, options=["-q", "-o", "a.b.hlsnap"]).out.strip()
    assert [path.name for path in folder.files()] == sorted(["a.b.hlsnap", f"a.b-{child}.hlsnap"])


# multiprocessing

POOL = """\
    import multiprocessing, os, sys, time
    shared = [bytes(9000) for _ in range(1000)]

    def work(number):
        global kept
        kept = [bytes(7000) for _ in range(50)]
        time.sleep(0.02)
        return os.getpid()

    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[1])
        with context.Pool(8) as pool:
            seen = set(pool.map(work, range(80), chunksize=1))
            if sys.argv[2] == "close":
                pool.close()
                pool.join()
        print(len(seen))
"""


@pytest.mark.parametrize(
    "method, end",
    [
        ("fork", "close"),
        ("fork", "terminate"),
        ("spawn", "terminate"),
        pytest.param("spawn", "close", marks=pytest.mark.slow),
        pytest.param("forkserver", "close", marks=pytest.mark.slow),
        pytest.param("forkserver", "terminate", marks=pytest.mark.slow),
    ],
)
def test_pool(folder, method, end):
    """One file for each process, whether workers end by themselves or are ended; what they inherited counts once."""
    name = folder.script(POOL)
    done = folder.traced(name, method, end, flags=["-W", "ignore"], options=QUIET)
    assert (done.status, done.err) == (0, ""), done
    assert 1 <= int(done.out) <= 8
    captures = [capture for _, capture in load_all(folder)]
    # Besides the program and its workers there are spawn's resource tracker and the fork server.
    assert len(captures) == 9 + {"fork": 0, "spawn": 1, "forkserver": 2}[method]
    workers = [capture for capture in captures if size_at(capture.live, name, 6)[1] >= 50]
    assert len(workers) == int(done.out)
    merged = heapledger.Capture.merge(captures)
    assert size_at(merged.live, name, 6)[1] == sum(size_at(capture.live, name, 6)[1] for capture in captures)
    # Some versions' fork server has imported the program beforehand, and its workers inherit that.
    holders = sum(size_at(capture.live, name, 2)[1] >= 1000 for capture in captures)
    assert holders == 9 or (method, holders) == ("forkserver", 10)
    copies = {"fork": 1, "spawn": 9, "forkserver": 9 if holders == 9 else 2}[method]
    assert 1000 * copies <= size_at(merged.live, name, 2)[1] < 1000 * copies + 100
    if method == "fork":
        assert all(size_at(capture.live, name, 2)[1] >= 1000 for capture in captures)
    assert folder.leftovers() == []


def test_totals_add_up(folder):
    """The parent's, and of each child what it did not inherit."""
    name = folder.script("""\
        import os
        kept = [bytes(9000) for _ in range(1000)]
        for number in range(3):
            if os.fork() == 0:
                more = [bytes(8000 + number) for _ in range(100)]
                os._exit(0)
            os.wait()
        """)
    assert folder.traced(name, options=QUIET).status == 0
    captures = [capture for _, capture in load_all(folder)]
    assert len(captures) == 4
    merged = heapledger.Capture.merge(captures)
    assert size_at(merged.live, name, 2) == max(size_at(capture.live, name, 2) for capture in captures)
    bytes_, count = size_at(merged.live, name, 5)
    assert count >= 300
    assert bytes_ == sum(size_at(capture.live, name, 5)[0] for capture in captures)


# Processes that are none of ours


def test_children_that_are_no_python(folder):
    script = folder.script("""\
        import subprocess
        for command in (["true"], ["sh", "-c", "exit 3"], ["ls", "/nonexistent"], ["env", "-i", "echo", "x"]):
            done = subprocess.run(command, capture_output=True, text=True)
            print(done)
        """)
    assert folder.traced(script, options=QUIET) == folder.plain(script)
    assert len(folder.files()) == 1


def other_pythons():
    """Interpreters of other minor versions on this machine."""
    own = "%d.%d" % sys.version_info[:2]
    installed = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv", "versions")
    for candidate in [*installed.glob("3.*/bin/python3"), *pathlib.Path("/usr/bin").glob("python3.*[0-9]")]:
        say = [candidate, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(say, capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip() != own:
            yield str(candidate)


def test_python_of_another_version(folder):
    """The library is loaded there and does nothing."""
    other = next(other_pythons(), None)
    if other is None:
        pytest.skip("there is no other interpreter")
    source = "import sys; print('_ledger' in open('/proc/self/maps').read(), sys.version_info[:2])"
    script = folder.script(f"import subprocess\nsubprocess.run([{other!r}, '-I', '-c', {source!r}])\n")
    done = folder.traced(script, options=QUIET)
    assert done == folder.plain(script)
    assert done.out.startswith("False")
    assert len(folder.files()) == 1


def test_another_environment_of_the_same_python(folder):
    """heapledger is not installed there, and the process is traced all the same."""
    base = os.path.realpath(sys.executable)
    source = "import importlib.util; print(importlib.util.find_spec('heapledger'))"
    script = folder.script(f"import subprocess\nsubprocess.run([{base!r}, '-I', '-c', {source!r}])\n")
    done = folder.traced(script, options=QUIET)
    assert (done.out, done.err) == ("None\n", "")
    assert len(folder.captures()) == 2


def test_privileged_programs(folder, tmp_path):
    """With more rights than its caller, a program does not listen to the variable."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a set-uid program")
    probe = subprocess.run(["findmnt", "-no", "OPTIONS", "-T", str(tmp_path)], capture_output=True, text=True)
    if "nosuid" in probe.stdout:
        pytest.skip("the file system knows no set-uid")
    copy = pathlib.Path(tmp_path, "python")
    shutil.copy(os.path.realpath(sys.executable), copy)
    os.chmod(tmp_path, 0o755)
    os.chown(copy, 65534, 65534)
    os.chmod(copy, 0o4755)
    libraries = {"LD_LIBRARY_PATH": ""}
    script = folder.script(f"""\
        import subprocess
        code = "print('_preload' in open('/proc/self/maps').read())"
        done = subprocess.run([{str(copy)!r}, "-I", "-S", "-c", code], capture_output=True, text=True)
        print(done.stdout, end="")
        """)
    done = folder.traced(script, options=QUIET, environment=libraries)
    assert done.out in ("False\n", "")  # a library that it needs may not be found there
    assert len(folder.files()) == 1
