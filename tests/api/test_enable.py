"""heapledger enable, disable and status: tracemalloc means heapledger in every program of an environment.

All of it happens in a virtual environment of its own; every test begins with nothing enabled.
"""

import ctypes
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys

import pytest
from environments import ELSEWHERE, TIMEOUT, Environment


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("enable") / "environment")


@pytest.fixture
def environment(made):
    yield made
    made.command("disable")


@pytest.fixture
def enabled(environment):
    environment.command("enable")
    return environment


def run(environment, *arguments, **variables):
    """What a program in the environment prints. It must end well and say nothing on stderr."""
    given = {name: value for name, value in os.environ.items() if name not in ("HEAPLEDGER", "PYTHONTRACEMALLOC")}
    done = subprocess.run(
        [environment.python, *arguments],
        env={**given, **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=ELSEWHERE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.strip()


# --- the commands ---


def contents(environment):
    """Every file of the environment, with what is in it."""
    root = environment.site_packages.parent.parent.parent
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and not path.is_symlink()}


def test_disable_leaves_nothing_behind(environment):
    before = contents(environment)
    environment.command("enable")
    environment.command("enable")
    added = set(contents(environment)) - set(before)
    assert [path.name for path in added] == ["heapledger-enabled.pth"]
    run(environment, "-X", "tracemalloc", "-c", "import tracemalloc")
    run(environment, "-c", "import tracemalloc", HEAPLEDGER="2")
    environment.command("disable")
    assert contents(environment) == before
    environment.command("disable")
    assert contents(environment) == before


def test_status(environment):
    text = environment.command("status", expect=1)
    assert "tracemalloc means the standard library's module\n" in text
    environment.command("enable")
    text = environment.command("status")
    assert "tracemalloc means heapledger\n" in text
    assert str(environment.site_packages.resolve()) in text and environment.python in text
    assert "%d.%d.%d" % sys.version_info[:3] in text
    environment.command("disable")
    environment.command("status", expect=1)


def test_status_says_what_variables_do(enabled):
    def said(variable, **variables):
        text = run(enabled, "-m", "heapledger", "status", **variables)
        return re.search(rf"^  {variable} +(.*)$", text, re.MULTILINE).group(1)

    assert said("HEAPLEDGER") == said("PYTHONTRACEMALLOC") == "not set"
    assert said("HEAPLEDGER", HEAPLEDGER="1") == "1: heapledger starts with 1 frame"
    assert said("HEAPLEDGER", HEAPLEDGER="9,numbers") == "9,numbers: heapledger starts with 9 frames, and for numbers"
    assert said("HEAPLEDGER", HEAPLEDGER="0") == "0: no effect"
    assert said("PYTHONTRACEMALLOC", PYTHONTRACEMALLOC="25") == "25: heapledger starts with 25 frames"
    enabled.command("disable")
    done = subprocess.run(
        [enabled.python, "-E", "-m", "heapledger", "status"],
        env={**os.environ, "PYTHONTRACEMALLOC": "25", "HEAPLEDGER": "abc"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=ELSEWHERE,
    )
    assert "25: the standard library's tracemalloc starts with 25 frames" in done.stdout
    assert "abc: no program starts: invalid number of frames" in done.stdout


def drop_override():
    """Let a child of root respect permissions: CAP_DAC_OVERRIDE leaves its bounding set."""
    if os.geteuid() == 0:
        assert ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) == 0


def test_a_folder_that_cannot_be_written(environment):
    before = contents(environment)
    command = [environment.python, "-I", "-m", "heapledger"]
    os.chmod(environment.site_packages, 0o555)
    try:
        for how in ("enable", "disable"):
            done = subprocess.run(
                [*command, how], capture_output=True, text=True, timeout=TIMEOUT, preexec_fn=drop_override
            )
            # There is nothing to remove, so disable has nothing to complain about.
            assert done.returncode == (2 if how == "enable" else 0), done
            if how == "enable":
                assert done.stderr.startswith("heapledger enable: cannot write ")
                assert "Permission denied" in done.stderr and done.stderr.count("\n") == 1
    finally:
        os.chmod(environment.site_packages, 0o755)
    assert contents(environment) == before


def test_a_file_that_cannot_be_replaced(environment):
    before = contents(environment)
    in_the_way = environment.site_packages / "heapledger-enabled.pth"
    in_the_way.mkdir()
    try:
        assert environment.command("enable", expect=2).startswith("heapledger enable: cannot write ")
        assert environment.command("disable", expect=2).startswith("heapledger disable: cannot remove ")
        environment.command("status", expect=1)
    finally:
        in_the_way.rmdir()
    assert contents(environment) == before


def test_a_folder_that_the_interpreter_does_not_read(environment, tmp_path):
    shutil.copytree(environment.site_packages / "heapledger", tmp_path / "heapledger")
    done = subprocess.run(
        [environment.python, "-m", "heapledger", "enable"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=ELSEWHERE,
    )
    assert done.returncode == 2 and "not from a site-packages folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["heapledger"]


def test_help_and_mistakes(environment):
    text = environment.command("--help")
    for name in ("enable", "disable", "status"):
        assert re.search(rf"^  {name} ", text, re.MULTILINE)
        described = environment.command(name, "--help")
        assert f"usage: heapledger {name}" in described and "example:\n  heapledger " in described
        environment.command(name, "--nonsense", expect=2)
    environment.command(expect=2)
    environment.command("nonsense", expect=2)


def test_only_the_subcommand_asked_for_is_imported(environment):
    script = """if True:
        import sys
        from heapledger.command import main
        main(["status"])
        print(sorted(name for name in sys.modules if name.startswith("heapledger.command.")))
    """
    assert run(environment, "-c", script).splitlines()[-1] == (
        "['heapledger.command._environment', 'heapledger.command.status']"
    )


def test_the_command_is_installed():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="heapledger")
    assert script.value == "heapledger.command:main" and callable(script.load())


# --- programs in an enabled environment ---

SAY = "import tracemalloc as t; print(t.__name__, t.is_tracing(), t.get_traceback_limit())"


def test_tracing_from_the_start_is_taken_over(enabled):
    assert run(enabled, "-X", "tracemalloc", "-c", SAY) == "heapledger True 1"
    assert run(enabled, "-X", "tracemalloc=7", "-c", SAY) == "heapledger True 7"
    assert run(enabled, "-I", "-X", "tracemalloc=7", "-c", SAY) == "heapledger True 7"
    assert run(enabled, "-c", SAY, PYTHONTRACEMALLOC="10") == "heapledger True 10"
    assert run(enabled, "-E", "-c", SAY, PYTHONTRACEMALLOC="10") == "heapledger False 1"
    assert run(enabled, "-c", SAY, PYTHONTRACEMALLOC="0") == "heapledger False 1"
    assert run(enabled, "-c", SAY) == "heapledger False 1"
    assert run(enabled, "-S", "-c", SAY) == "tracemalloc False 1"


def test_the_limit_of_the_program_s_own_option_counts(enabled):
    assert run(enabled, "-X", "tracemalloc=7", "-c", SAY, HEAPLEDGER="3") == "heapledger True 7"
    assert run(enabled, "-c", SAY, HEAPLEDGER="3") == "heapledger True 3"


def test_only_one_tracer_runs(enabled):
    """heapledger traces before the program's first line, and the standard library's tracer has stopped."""
    script = """if True:
        block = bytes(3000)
        import tracemalloc
        assert tracemalloc.get_object_traceback(block)[-1].lineno == 2
        import heapledger
        heapledger.stop()
        heapledger.uninstall()
        import _tracemalloc
        assert not _tracemalloc.is_tracing()
    """
    run(enabled, "-X", "tracemalloc=7", "-c", script)


def test_a_program_without_tracemalloc_does_not_load_heapledger(enabled):
    script = "import sys, json, logging; print([name for name in sys.modules if 'ledger' in name or 'malloc' in name])"
    for variables in ({}, {"PYTHONTRACEMALLOC": "0"}):
        assert run(enabled, "-c", script, **variables) == "['_heapledger_start']"


@pytest.mark.parametrize(
    "how",
    [
        "import tracemalloc",
        "from tracemalloc import start",
        "import _tracemalloc",
        "import heapledger",
        "import heapledger; heapledger.install()",
        "import heapledger.command.status",
        "import importlib; importlib.import_module('tracemalloc')",
        "import importlib.util; assert importlib.util.find_spec('tracemalloc').origin.endswith('tracemalloc.py')",
    ],
)
def test_every_way_to_import_it(enabled, how):
    """Whoever comes first: afterwards every name is ours, nothing of the machinery is left, and it can be undone."""
    script = f"""if True:
        {how}
        import sys, tracemalloc, _tracemalloc, heapledger, importlib.util
        assert tracemalloc is heapledger and sys.modules["tracemalloc"] is heapledger
        from tracemalloc import start, Filter
        assert start is heapledger.start is _tracemalloc.start and Filter is heapledger.Filter
        assert not any(type(finder).__module__ == "_heapledger_start" for finder in sys.meta_path)
        assert "_heapledger_start" not in repr(heapledger.__spec__), heapledger.__spec__
        assert heapledger.__spec__.name == "heapledger"
        heapledger.uninstall()
        import tracemalloc
        assert tracemalloc is not heapledger and tracemalloc.start is _tracemalloc.start is not heapledger.start
        for module in (tracemalloc, _tracemalloc):
            assert "_heapledger_start" not in repr((module.__spec__, module.__loader__)), module.__spec__
    """
    run(enabled, "-c", script)


def test_the_engine_s_names_are_ours_without_the_module(enabled):
    script = """if True:
        import sys, _tracemalloc
        assert _tracemalloc.start is sys.modules["heapledger"].start
        print(_tracemalloc.get_traceback_limit())
    """
    assert run(enabled, "-c", script) == "1"
    assert run(enabled, "-X", "tracemalloc=3", "-c", script) == "3"


def test_threads_that_import_it_at_once(enabled):
    """One of them loads it; the others may get the old module object, in which every name is ours as well."""
    script = """if True:
        import threading
        from concurrent.futures import ThreadPoolExecutor
        barrier = threading.Barrier(9)
        def load():
            barrier.wait()
            import tracemalloc
            return tracemalloc.start, tracemalloc.Snapshot, tracemalloc._get_traces
        with ThreadPoolExecutor(9) as pool:
            found = [future.result() for future in [pool.submit(load) for _ in range(9)]]
        import tracemalloc, heapledger
        assert tracemalloc is heapledger
        assert set(found) == {(heapledger.start, heapledger.Snapshot, heapledger._get_traces)}
    """
    for _ in range(5):
        run(enabled, "-c", script)


PROGRAM = """
import linecache, sys, tracemalloc
if len(sys.argv) > 1:
    tracemalloc.start(int(sys.argv[1]))

def make(number):
    return [bytes(1000 + number) for _ in range(number)]

before = tracemalloc.take_snapshot()
kept = [make(number) for number in range(10, 20)]
after = tracemalloc.take_snapshot()
mine = tracemalloc.Filter(True, __file__)
print(tracemalloc.get_traceback_limit(), after.traceback_limit, tracemalloc.is_tracing())
# Small ones may be numbers from a freelist.
for trace in sorted(after.filter_traces([mine]).traces, key=lambda trace: trace.size):
    if trace.size > 1000:
        print(trace.size, trace.domain, trace.traceback)
for difference in after.filter_traces([mine]).compare_to(before.filter_traces([mine]), "lineno"):
    if difference.size_diff > 100_000:
        print(difference.traceback)
for line in tracemalloc.get_object_traceback(kept[3][0]).format():
    print(line)
tracemalloc.stop()
print(tracemalloc.is_tracing(), tracemalloc.get_traced_memory())
try:
    tracemalloc.take_snapshot()
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    "options, arguments, variables", [([], ["3"], {}), (["-X", "tracemalloc=5"], [], {}), ([], [], {"frames": "2"})]
)
def test_a_program_says_the_same_as_with_the_stdlib(environment, tmp_path, options, arguments, variables):
    script = tmp_path / "script.py"
    script.write_text(PROGRAM, encoding="utf-8")
    given = {"PYTHONTRACEMALLOC": variables["frames"]} if variables else {}
    theirs = run(environment, *options, str(script), *arguments, **given)
    environment.command("enable")
    assert run(environment, *options, str(script), *arguments, **given) == theirs
    assert theirs.count("\n") > 6


LEAK = """
import sys
sys.stderr = sys.stdout

def leak():
    file = open(__file__)

leak()
"""


@pytest.mark.parametrize("options", [[], ["-X", "tracemalloc=5"]])
def test_resource_warnings(environment, tmp_path, options):
    script = tmp_path / "script.py"
    script.write_text(LEAK, encoding="utf-8")
    theirs = run(environment, "-W", "always", *options, str(script))
    environment.command("enable")
    assert run(environment, "-W", "always", *options, str(script)) == theirs
    assert ("Object allocated at" if options else "Enable tracemalloc") in theirs


def test_multiprocessing(enabled, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, tracemalloc\n"
        "def say(queue):\n"
        "    queue.put((tracemalloc.__name__, tracemalloc.is_tracing(), tracemalloc.get_traceback_limit()))\n"
        "if __name__ == '__main__':\n"
        "    for method in ('spawn', 'forkserver'):\n"
        "        context = multiprocessing.get_context(method)\n"
        "        queue = context.SimpleQueue()\n"
        "        process = context.Process(target=say, args=(queue,))\n"
        "        process.start()\n"
        "        print(*queue.get())\n"
        "        process.join()\n",
        encoding="utf-8",
    )
    assert run(enabled, "-X", "tracemalloc=3", str(script)) == "heapledger True 3\nheapledger True 3"


def test_interpreters_with_and_without_their_own_gil(enabled):
    """One with its own GIL has no tracemalloc; in the others it is heapledger."""
    script = """if True:
        try:
            import _interpreters
        except ImportError:
            import _xxsubinterpreters as _interpreters
        execute = getattr(_interpreters, "exec", _interpreters.run_string)
        def create_shared():
            if hasattr(_interpreters, "exec"):
                return _interpreters.create("legacy")
            return _interpreters.create(isolated=False)
        check = "import tracemalloc, heapledger; assert tracemalloc is heapledger"
        for create, source in ((_interpreters.create, "import heapledger"), (create_shared, check)):
            interpreter = create()
            problem = execute(interpreter, source)
            assert problem is None, problem
            _interpreters.destroy(interpreter)
        import tracemalloc
        print(tracemalloc.__name__, tracemalloc.is_tracing())
    """
    assert run(enabled, "-W", "ignore", "-c", script) == "heapledger False"
    assert run(enabled, "-W", "ignore", "-X", "tracemalloc", "-c", script) == "heapledger True"


def test_the_package_is_removed_while_enabled(tmp_path):
    """pip does not know the file. It does nothing then, silently."""
    environment = Environment(tmp_path / "environment")
    environment.command("enable")
    shutil.rmtree(environment.site_packages / "heapledger")
    for name in ("heapledger.pth", "_heapledger_start.py"):
        (environment.site_packages / name).unlink()
    assert run(environment, "-X", "tracemalloc=4", "-c", SAY) == "tracemalloc True 4"


def test_a_package_that_does_not_work_harms_no_program(tmp_path):
    environment = Environment(tmp_path / "environment")
    environment.command("enable")
    for library in environment.site_packages.glob("heapledger/_ledger*.so"):
        library.unlink()
    for options, expected in (([], "tracemalloc False 1"), (["-X", "tracemalloc=4"], "tracemalloc True 4")):
        done = subprocess.run(
            [environment.python, *options, "-c", SAY],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            cwd=ELSEWHERE,
            check=True,
        )
        assert done.stdout.strip() == expected
        assert done.stderr.startswith("heapledger: cannot take the place of tracemalloc: ")
        assert done.stderr.count("\n") == 1
