"""HEAPLEDGER and -X heapledger: the tracer starts with the interpreter. Each test has children of its own.

The standard library's PYTHONTRACEMALLOC and -X tracemalloc are what ours are compared with.
"""

import importlib.metadata
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import sysconfig

import pytest
from environments import ELSEWHERE, TIMEOUT, Environment

SAY = "import {module} as t; print(t.is_tracing(), t.get_traceback_limit() if t.is_tracing() else 0)"
OURS = SAY.format(module="heapledger")
THEIRS = SAY.format(module="tracemalloc")


def python(*arguments, executable=sys.executable, **variables):
    """The finished child, with these variables and none that start a tracer besides."""
    environment = {name: value for name, value in os.environ.items() if name not in ("HEAPLEDGER", "PYTHONTRACEMALLOC")}
    return subprocess.run(
        [executable, *arguments],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=ELSEWHERE,
        check=False,
    )


def answer(*arguments, **variables):
    """What a child that must end well prints, and nothing goes to stderr."""
    done = python(*arguments, **variables)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.strip()


def test_files_are_installed_where_site_looks():
    """The wheel puts them beside the package, on their own, into a folder whose .pth files are executed."""
    folder = pathlib.Path(sysconfig.get_path("platlib")).resolve()
    files = {file.as_posix(): file.locate() for file in importlib.metadata.files("heapledger")}
    for name in ("heapledger.pth", "_heapledger_start.py"):
        assert pathlib.Path(files[name]).resolve().parent == folder


VALUES = ["1", "25", "65535", "0", "00", "", "07", "+5", " 5", "-0", "\t 3"]
BAD_VALUES = ["abc", "5x", "5 ", "-1", "1_0", "0x5", "+", " ", "\u0663", "65536", "2147483647", "2147483648", "9" * 30]


@pytest.mark.parametrize("value", VALUES)
def test_values_mean_what_they_mean_to_the_stdlib(value):
    expected = answer("-c", THEIRS, PYTHONTRACEMALLOC=value)
    assert answer("-c", OURS, HEAPLEDGER=value) == expected
    assert answer("-X", f"tracemalloc={value}", "-c", THEIRS) == expected
    assert answer("-X", f"heapledger={value}", "-c", OURS) == expected


@pytest.mark.parametrize("value", BAD_VALUES)
def test_bad_values_end_the_process_as_with_the_stdlib(value):
    for theirs, ours, named in (
        (
            python("-c", "pass", PYTHONTRACEMALLOC=value),
            python("-c", "print('ran')", HEAPLEDGER=value),
            f"HEAPLEDGER={value}",
        ),
        (
            python("-X", f"tracemalloc={value}", "-c", "pass"),
            python("-X", f"heapledger={value}", "-c", "print('ran')"),
            f"-X heapledger={value}",
        ),
    ):
        assert theirs.returncode == ours.returncode == 1
        problems = ("the number of frames must be in range [1; 65535]", "invalid number of frames")
        (problem,) = [problem for problem in problems if problem in theirs.stderr]
        assert ours.stderr == f"heapledger: {named}: {problem}\n"
        assert ours.stdout == ""


def test_option_without_a_value():
    assert answer("-X", "tracemalloc", "-c", THEIRS) == answer("-X", "heapledger", "-c", OURS) == "True 1"


NUMBERS = "import heapledger; print(heapledger.take_snapshot().metadata['numbers'], heapledger.get_traceback_limit())"


def test_numbers():
    for word, expected in (("5,numbers", "True 5"), ("5", "False 5")):
        assert answer("-c", NUMBERS, HEAPLEDGER=word) == answer("-X", f"heapledger={word}", "-c", NUMBERS) == expected
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {NUMBERS!r}])"
    assert answer("-X", "heapledger=5,numbers", "-c", child) == "True 5"
    for word in ("5,", "5,floats", "5,numbers,"):
        ours = python("-c", "pass", HEAPLEDGER=word)
        wrong = word.partition(",")[2]
        assert (ours.returncode, ours.stderr) == (1, f"heapledger: HEAPLEDGER={word}: {wrong!r} is not 'numbers'\n")


def test_option_beats_variable():
    for variable, option, expected in (("5", "heapledger=7", "True 7"), ("5", "heapledger=0", "False 0")):
        assert answer("-X", option, "-c", OURS, HEAPLEDGER=variable) == expected
        assert answer("-X", option.replace("heapledger", "tracemalloc"), "-c", THEIRS, PYTHONTRACEMALLOC=variable) == (
            expected
        )


def test_bad_variable_is_not_hidden_by_a_good_option():
    assert python("-X", "tracemalloc=7", "-c", "pass", PYTHONTRACEMALLOC="abc").returncode == 1
    ours = python("-X", "heapledger=7", "-c", "pass", HEAPLEDGER="abc")
    assert (ours.returncode, ours.stderr) == (1, "heapledger: HEAPLEDGER=abc: invalid number of frames\n")


@pytest.mark.parametrize("flag", ["-E", "-I"])
def test_ignoring_the_environment(flag):
    for value in ("5", "abc"):
        assert answer(flag, "-c", OURS, HEAPLEDGER=value) == "False 0"
    assert answer(flag, "-X", "heapledger=3", "-c", OURS, HEAPLEDGER="5") == "True 3"


def test_without_site_nothing_starts():
    assert answer("-S", "-X", "heapledger=abc", "-c", "print('ran')", HEAPLEDGER="abc") == "ran"


def test_bad_value_with_stderr_closed():
    command = [sys.executable, "-c", "pass"]
    environment = {**os.environ, "HEAPLEDGER": "abc"}
    assert subprocess.run(command, env=environment, timeout=TIMEOUT, preexec_fn=lambda: os.close(2)).returncode == 1


def test_what_is_imported_after_is_traced():
    """Tracing is on before the program's first line, and before its modules are imported."""
    script = """if True:
        import heapledger, argparse
        files = {trace[2][0][0] for trace in heapledger._get_traces()}
        assert any("importlib" in file for file in files), files
        assert heapledger.get_object_traceback(argparse.ArgumentParser) is not None
        assert heapledger._validate() is None and heapledger.lost_records() == 0
    """
    answer("-c", script, HEAPLEDGER="25")


def test_a_program_that_is_traced_need_not_load_the_package(environment):
    """The extension module suffices, and is the package's when that is imported after all."""
    show = "import sys; print(sorted(name for name in sys.modules if name.startswith('heapledger')))"
    done = python("-c", show, executable=environment.python, HEAPLEDGER="3")
    assert (done.stdout.strip(), done.stderr) == ("['heapledger._ledger']", "")
    use = "import sys; m = sys.modules['heapledger._ledger']; import heapledger as h; print(h._ledger is m); " + OURS
    done = python("-c", use, executable=environment.python, HEAPLEDGER="3")
    assert (done.stdout.split(), done.stderr) == (["True", "True", "3"], "")


def test_the_program_can_stop_and_start_again():
    script = """if True:
        import heapledger
        heapledger.stop()
        heapledger.start(2)
        assert heapledger.get_traceback_limit() == 2
    """
    answer("-c", script, HEAPLEDGER="25")


# --- children ---

CHILDREN = """
import multiprocessing, subprocess, sys
import heapledger

def say(queue):
    queue.put((heapledger.is_tracing(), heapledger.get_traceback_limit()))

if __name__ == "__main__":
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        queue = context.SimpleQueue()
        process = context.Process(target=say, args=(queue,))
        process.start()
        print(method, *queue.get())
        process.join()
    print("subprocess", subprocess.check_output([sys.executable, "-c", {say!r}], text=True).strip())
"""


@pytest.mark.parametrize("options, variables", [([], {"HEAPLEDGER": "4"}), (["-X", "heapledger=4"], {})])
def test_children_are_traced_too(tmp_path, options, variables):
    script = tmp_path / "script.py"
    script.write_text(CHILDREN.format(say=OURS), encoding="utf-8")
    expected = [f"{how} True 4" for how in ("spawn", "forkserver", "fork", "subprocess")]
    assert answer("-W", "ignore", *options, str(script), **variables).splitlines() == expected


def test_an_option_that_says_no_holds_for_children():
    script = f"import subprocess, sys; print(subprocess.check_output([sys.executable, '-c', {OURS!r}], text=True))"
    assert answer("-X", "heapledger=0", "-c", script, HEAPLEDGER="4") == "False 0"


def test_a_new_interpreter_does_not_start_the_tracer_again():
    script = """if True:
        try:
            import _interpreters
        except ImportError:
            import _xxsubinterpreters as _interpreters
        import os, heapledger
        heapledger.stop()
        _interpreters.destroy(_interpreters.create())
        assert not heapledger.is_tracing()
        os.environ["HEAPLEDGER"] = "abc"
        _interpreters.destroy(_interpreters.create())
        print("alive")
    """
    assert answer("-W", "ignore", "-c", script, HEAPLEDGER="4") == "alive"


# --- what it costs not to use it ---


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("startup") / "environment")


def test_nothing_is_imported_unless_asked_for(environment):
    script = "import sys; print(sorted(sys.modules))"
    line = environment.site_packages / "heapledger.pth"
    text = line.read_text(encoding="utf-8")
    try:
        for variables in ({}, {"HEAPLEDGER": ""}, {"HEAPLEDGER": "0"}):
            line.write_text(text, encoding="utf-8")
            found = answer("-c", script, executable=environment.python, **variables)
            line.write_text("# empty\n", encoding="utf-8")
            without = answer("-c", script, executable=environment.python, **variables)
            if variables:
                found = found.replace("'_heapledger_start', ", "")
            assert found == without
    finally:
        line.write_text(text, encoding="utf-8")


def test_what_the_interpreter_imports_for_any_file(environment):
    """From 3.13 on, a codec for the first .pth file that is not empty: that is no cost of our line."""
    script = "import sys; print(*sys.modules)"
    line = environment.site_packages / "heapledger.pth"
    text = line.read_text(encoding="utf-8")
    imported = {}
    try:
        for content in ("", "# a comment\n", text):
            line.write_text(content, encoding="utf-8")
            imported[content] = set(answer("-c", script, executable=environment.python).split())
    finally:
        line.write_text(text, encoding="utf-8")
    for_any = {"encodings.utf_8_sig"} if sys.version_info >= (3, 13) else set()
    assert imported["# a comment\n"] - imported[""] == for_any
    assert imported[text] == imported["# a comment\n"]


def test_the_line_takes_no_time(environment):
    """site compiles and executes the line; 0.2 ms is what it may take, 0.04 is what it takes."""
    script = f"""if True:
        import timeit
        line = open({str(environment.site_packages / "heapledger.pth")!r}).read()
        print(min(timeit.repeat(lambda: exec(line), number=20, repeat=20)) / 20)
    """
    assert float(answer("-c", script, executable=environment.python)) < 0.0002


def test_no_warning_of_the_interpreter():
    """A .pth file with an import line is still what a version wants, as far as it says."""
    assert answer("-W", "error", "-X", "dev", "-c", OURS, HEAPLEDGER="2") == "True 2"


# --- a package that does not work ---


def test_a_package_that_cannot_be_imported(tmp_path):
    environment = Environment(tmp_path / "environment")
    for library in environment.site_packages.glob("heapledger/_ledger*.so"):
        library.unlink()
    assert answer("-c", "print('ran')", executable=environment.python) == "ran"
    done = python("-c", "print('ran')", executable=environment.python, HEAPLEDGER="5")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("heapledger: cannot start: ") and done.stderr.count("\n") == 1, done.stderr


@pytest.fixture
def copied(tmp_path):
    """The package in a folder for PYTHONPATH, for an interpreter where it is not installed: what is not enough for
    heapledger.pth to be read."""
    installed = pathlib.Path(sysconfig.get_path("platlib"))
    shutil.copytree(installed / "heapledger", tmp_path / "heapledger")
    for name in ("heapledger.pth", "_heapledger_start.py"):
        shutil.copy(installed / name, tmp_path)
    return tmp_path


def elsewhere(*arguments, folder, **variables):
    return python(*arguments, executable=os.path.realpath(sys.executable), PYTHONPATH=str(folder), **variables)


def test_variable_where_nobody_reads_it(copied):
    """A line says so when the package is imported, and `status` does."""
    done = elsewhere("-c", OURS, folder=copied, HEAPLEDGER="5")
    reason = f"heapledger.pth is not in a folder where the interpreter reads it: the package is in {copied}"
    line = f"heapledger: HEAPLEDGER=5 has no effect: {reason}. python -m heapledger run works here\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "False 0\n", line)
    for value in ("0", "", "00"):
        assert elsewhere("-c", OURS, folder=copied, HEAPLEDGER=value).stderr == ""
    assert elsewhere("-c", OURS, folder=copied).stderr == ""
    done = elsewhere("-m", "heapledger", "status", folder=copied, HEAPLEDGER="5")
    assert "HEAPLEDGER         no effect: heapledger.pth is not in a folder that the interpreter reads\n" in done.stdout
    # It is not said to programs that do not import the package, nor where tracing was started by other means.
    assert elsewhere("-c", "pass", folder=copied, HEAPLEDGER="5").stderr == ""
    run = ("-m", "heapledger", "run", "-q", "-o", copied / "x.hlsnap", "-c", OURS)
    assert elsewhere(*run, folder=copied, HEAPLEDGER="5").stderr == line  # by the command, before it is the program


def test_package_without_what_is_installed_beside_it(copied):
    """Only the folder of the package was copied: `status` says so in one line."""
    (copied / "_heapledger_start.py").unlink()
    done = elsewhere("-m", "heapledger", "status", folder=copied)
    said = "the package without _heapledger_start.py: HEAPLEDGER has no effect, and no program can be enabled"
    assert (done.returncode, done.stderr) == (2, f"heapledger status: {copied} has {said}\n")


def test_variable_without_site():
    path = sysconfig.get_path("platlib")
    done = python("-S", "-c", f"import sys; sys.path.append({path!r}); {OURS}", HEAPLEDGER="5")
    assert done.stderr.startswith("heapledger: HEAPLEDGER=5 has no effect: the interpreter was started with -S. ")
    assert python("-ES", "-c", f"import sys; sys.path.append({path!r}); {OURS}", HEAPLEDGER="5").stderr == ""


def test_package_that_was_built_for_another_version(copied):
    (library,) = (copied / "heapledger").glob("_ledger.*.so")
    library.rename(library.with_name("_ledger.cpython-39-x86_64-linux-gnu.so"))
    done = elsewhere("-c", "import heapledger", folder=copied)
    last = done.stderr.splitlines()[-1]
    here = f"and this is CPython {platform.python_version()}"
    assert last == f"ImportError: heapledger in {copied}/heapledger was built for CPython 3.9, {here}"


def test_package_that_is_the_source():
    sources = pathlib.Path(__file__).resolve().parent.parent.parent / "python"
    last = elsewhere("-c", "import heapledger", folder=sources).stderr.splitlines()[-1]
    reason = "has no extension module: it is the source, not an installed package"
    assert last == f"ImportError: heapledger in {sources}/heapledger {reason}"
