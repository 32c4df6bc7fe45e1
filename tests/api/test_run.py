"""heapledger run: the program is what it would be without it, and its files hold what it allocated."""

import json
import os
import pathlib
import re
import socket
import sys
import sysconfig

import heapledger
import pytest
from running import PRELOAD, Folder, size_at

QUIET = ("-q",)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


# What a program can find out about itself.
SELF = """
    import os, signal, sys
    print("argv", sys.argv)
    print("orig_argv", sys.orig_argv)
    print("main", __name__, sorted(globals()))
    print("path", sys.path)
    print("flags", sys.flags, sys._xoptions, sys.warnoptions)
    print("executable", sys.executable, sys.prefix)
    print("modules", sorted(sys.modules))
    print("signals", [(number, signal.getsignal(number)) for number in signal.valid_signals()])
    print("environment", sorted(item for item in os.environ.items() if item[0] not in ("HEAPLEDGER_RUN", "LD_PRELOAD")))
    print("directory", os.getcwd())
    print("files", sorted(os.listdir("/proc/self/fd")))
    print("stdin", repr(sys.stdin.read()))
    print("threads", len(os.listdir("/proc/self/task")))
"""
FORMS = {
    "script": ["script.py", "-q", "--peak", "--", "-m", "a b"],
    "module": ["-m", "script", "-n", "7", "-c", "--", "-q", "--"],
    "code": ["-c", "import script", "--", "-o", "x"],
    "glued module": ["-mscript", "-q", "--help", "--", "-n", "7"],
    "glued code": ["-cimport script", "-o", "-m"],
}


@pytest.mark.parametrize(
    "form, flags, option",
    [
        ("script", [], "--children"),
        ("module", [], "--children"),
        ("code", [], "--children"),
        ("glued module", [], "--children"),
        ("glued code", [], "--children"),
        ("script", ["-I"], "--no-children"),
        ("code", ["-E", "-s", "-B", "-OO", "-u"], "--no-children"),
        ("script", ["-X", "dev", "-W", "ignore", "-bb"], "--no-children"),
        ("module", ["-S"], "--no-children"),
    ],
)
def test_program_sees_what_it_would_see(folder, form, flags, option):
    folder.script(SELF)
    given = {"flags": flags, "stdin": "line\nrest"}
    given["environment"] = {"PYTHONPATH": str(pathlib.Path(heapledger.__file__).parent.parent)}  # for -S
    expected = folder.plain(*FORMS[form], **given)
    assert "stdin 'line" in expected.out
    assert folder.traced(*FORMS[form], options=["-q", option], **given) == expected
    assert len(folder.files()) == 1


ENDS = {
    "end": "pass",
    "exit": "sys.exit(3)",
    "message": "sys.exit('why')",
    "exception": "1 / 0",
    "in a thread": "import threading; threading.Thread(target=lambda: 1 / 0).start()",
    "interrupt": "raise KeyboardInterrupt",
    "SIGINT": "os.kill(os.getpid(), 2)",
    "_exit": "sys.stdout.flush(); os._exit(7)",
    "_exit in a thread": "import threading; sys.stdout.flush(); threading.Thread(target=os._exit, args=(8,)).start()",
    "atexit": "import atexit; atexit.register(print, 'later')",
    "syntax": "exec('(')",
    "atexit fails": "import atexit; atexit.register(lambda: 1 / 0)",
    "recursion": "f = lambda: f(); f()",
}


@pytest.mark.parametrize("end", ENDS)
def test_ends(folder, end):
    """Exit status, output and traceback are the same, and there is one file."""
    name = folder.script(f"import os, sys\nkept = [bytes(9000) for _ in range(1000)]\nprint(1)\n{ENDS[end]}\n")
    assert folder.traced(name, options=QUIET) == folder.plain(name)
    (capture,) = folder.captures().values()
    assert size_at(capture.live, name, 2)[1] >= 1000
    assert size_at(capture.peak, name, 2)[1] >= 1000
    assert folder.leftovers() == []


def test_exit_from_c(folder):
    name = folder.script("import ctypes\nkept = [bytes(9000) for _ in range(1000)]\nctypes.CDLL(None).exit(3)\n")
    assert folder.traced(name, options=QUIET) == folder.plain(name)
    (capture,) = folder.captures().values()
    assert size_at(capture.live, name, 2)[1] >= 1000


def test_exit_without_exit_functions(folder):
    """There is nothing to write when the C library's come, and a line says so."""
    done = folder.traced("-c", "import atexit; atexit._clear()")
    reason = "because the program has cleared the functions of atexit"
    assert (done.status, done.err) == (0, f"heapledger: nothing is written, {reason}\n")
    assert folder.files() == []


@pytest.mark.parametrize("flag", ["--version", "-h"])
def test_interpreter_that_runs_nothing(folder, flag):
    variables = {"LD_PRELOAD": PRELOAD, "HEAPLEDGER_RUN": f"frames=1,moments=l,id=0,file={folder.path}/x.hlsnap"}
    assert folder.plain(flag, environment=variables) == folder.plain(flag)
    assert folder.files() == []


@pytest.mark.parametrize("how", ["os.abort()", "os.kill(os.getpid(), 9)", "import ctypes; ctypes.string_at(0)"])
def test_ends_that_leave_nothing(folder, how):
    """Crashes and SIGKILL: the status is the same, and there is no file."""
    name = folder.script(f"import os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n{how}\n")
    done = folder.traced(name, options=QUIET)
    assert done.status < 0
    assert done == folder.plain(name)
    assert folder.files() == []
    assert folder.leftovers() == []


@pytest.mark.parametrize(
    "options, moments",
    [
        ([], ("live", "peak")),
        (["--peak"], ("peak",)),
        (["--exit"], ("live",)),
        (["--exit", "--peak"], ("live", "peak")),
    ],
)
def test_moments(folder, options, moments):
    name = folder.script("""\
        kept = [bytes(9000) for _ in range(100)]
        gone = [bytes(9000) for _ in range(900)]
        del gone
        """)
    assert folder.traced(name, options=["-q", *options]).status == 0
    (capture,) = folder.captures().values()
    assert capture.moments == moments
    for moment, lost in (("live", 0), ("peak", 900)):
        if moment in moments:
            snapshot = getattr(capture, moment)
            assert size_at(snapshot, name, 1)[1] >= 100
            assert size_at(snapshot, name, 2)[1] >= lost
            assert size_at(snapshot, name, 2)[1] < lost + 10
    if "peak" in moments:
        assert sum(statistic.size for statistic in capture.peak.statistics("filename")) == capture.metadata["peak"]


@pytest.mark.parametrize("nframe", [None, 1, 7])
def test_frames(folder, nframe):
    name = folder.script("""\
        def deep(n):
            return deep(n - 1) if n else bytes(5000)
        kept = deep(20)
        """)
    assert folder.traced(name, options=["-q", *([] if nframe is None else ["-n", str(nframe)])]).status == 0
    (capture,) = folder.captures().values()
    assert capture.live.traceback_limit == (nframe or 256)
    (trace,) = [trace for trace in capture.live.traces if trace.size == sys.getsizeof(bytes(5000))]
    assert len(trace.traceback) == (nframe or 22)


def test_numbers(folder):
    name = folder.script("""\
        kept = []
        for number in range(500):
            number * 1.5, number * 1_000_000
            kept.append((number * 2.5, number * 1_000_001 + 300))
        """)
    for numbers in (False, True):
        assert folder.traced(name, options=["-q", *["--numbers"] * numbers]).status == 0
        (capture,) = folder.captures().values()
        folder.clear()
        assert capture.metadata["numbers"] is numbers
    assert size_at(capture.live, name, 4)[1] >= 1500  # tuples, floats and ints


def test_metadata(folder):
    """What Python would say, found out without it."""
    name = folder.script("import os, sys\nprint(os.getpid(), sys.executable, sys.version, sep='|')\n")
    done = folder.traced(name, "\udcff\u00e4\U0001f600", options=["-q", "-n", "3"])
    (capture,) = folder.captures().values()
    facts = capture.metadata
    pid, executable, version = done.out.split("|", 2)
    assert (facts["pid"], facts["executable"], facts["python"]) == (int(pid), executable, version.rstrip("\n"))
    assert facts["host"] == os.uname().nodename
    assert facts["command"] == [sys.executable, name, "\udcff\u00e4\U0001f600"]
    assert facts["implementation"] == "cpython"
    assert (facts["traceback_limit"], facts["moment"], facts["lost_records"]) == (3, "live", 0)
    assert 0 < facts["traced"] <= facts["peak"] < facts["rss"]
    assert facts["tables"] > 0


def test_what_the_process_is_made_of(folder):
    """The same facts as in a file that the program itself saves; those of a moment later are not far off."""
    name = folder.script("""\
        import heapledger
        kept = [bytes(100) for _ in range(100_000)] + [bytes(9000) for _ in range(1000)]
        heapledger.take_capture().dump("own")
        """)
    assert folder.traced(name, options=["-q", "-o", "x.hlsnap"]).status == 0
    ours, own = (heapledger.Capture.load(folder.path / file).metadata for file in ("x.hlsnap", "own"))
    ours, own = ours["process_at_dump"], own["process_at_dump"]
    assert list(ours) == list(own) == ["time", "pages", "pymalloc_arenas", "malloc", "tables"]
    assert own["time"] < ours["time"] < own["time"] + 60 * 10**9
    for key in ("pages", "malloc", "tables"):
        assert (ours[key] and list(ours[key])) == (own[key] and list(own[key]))
    assert own["pymalloc_arenas"] > 100 * 100_000
    assert ours["pymalloc_arenas"] - own["pymalloc_arenas"] in (0, 1 << 20)  # an arena may have filled up meanwhile
    if ours["pages"] is not None:
        assert ours["pages"]["Rss"] == pytest.approx(own["pages"]["Rss"], rel=0.2)
        assert ours["pages"]["Anonymous"] > 19_000_000
    if ours["malloc"] is not None:
        assert ours["malloc"]["used"] + ours["malloc"]["mapped"] > 9_000_000
    assert ours["tables"]["total"] == sum(ours["tables"][key] for key in ours["tables"] if key != "total") > 0


def test_summary_explains_the_resident_memory(folder):
    """The command has in such a file all that it can explain."""
    assert folder.traced("-c", "kept = bytes(10**7)", options=["-q", "-o", "x.hlsnap"]).status == 0
    done = folder.plain("-m", "heapledger", "summary", "--json", "x.hlsnap")
    parts = json.loads(done.out)["resident"]["parts"]
    assert list(parts) == ["traced", "tables", "files", "untraced", "free", "other"]


def test_interpreters_own_start_is_in_the_ledger(folder):
    """What is older than `site`, and with it HEAPLEDGER, has an entry; and the ledger is sound."""
    name = folder.script("""\
        import sys
        import heapledger
        assert heapledger.is_tracing() and heapledger.get_traceback_limit() == 5
        for old in (sys.modules, sys.__dict__, sys.path, sys.orig_argv):
            print(heapledger.get_object_traceback(old) is not None)
        heapledger.start(9)
        assert heapledger.get_traceback_limit() == 5
        assert heapledger._validate() is None and heapledger.lost_records() == 0
        """)
    early = folder.traced(name, options=["-q", "-n", "5"])
    assert (early.status, early.err) == (0, "")
    assert early.out.split().count("True") == 4
    late = folder.plain(name, environment={"HEAPLEDGER": "5"})
    assert (late.status, late.err) == (0, "")
    assert late.out.split().count("True") == 0


@pytest.mark.parametrize("variables", [{"PYTHONMALLOC": "malloc"}, {"PYTHONMALLOC": "debug"}, {"PYTHONDEVMODE": "1"}])
def test_interpreter_replaces_the_allocators(folder, variables):
    """The hooks are put back, and the ledger has nothing that was freed meanwhile."""
    name = folder.script("""\
        import heapledger
        kept = bytes(5000)
        print(heapledger.get_object_traceback(kept) is not None, heapledger._validate(), heapledger.lost_records())
        """)
    assert folder.traced(name, options=QUIET, environment=variables).out == "True None 0\n"
    (capture,) = folder.captures().values()
    assert size_at(capture.live, name)[0] > 5000


def test_stopped_by_the_program(folder):
    name = folder.script("import heapledger; heapledger.stop()")
    done = folder.traced(name)
    assert (done.status, done.out) == (0, "")
    assert done.err == "heapledger: the program has stopped tracing: nothing is written\n"
    assert folder.files() == []


def test_started_again_by_the_program(folder):
    name = folder.script("import heapledger; heapledger.stop(); heapledger.start(2); kept = bytes(5000)")
    assert folder.traced(name, options=QUIET).err == ""
    (capture,) = folder.captures().values()
    assert capture.live.traceback_limit == 2


# Names of files

NAMES = {
    "x.hlsnap": r"x\.hlsnap",
    "x": "x",
    "%p": r"\d+",
    "a-%p-%h.b.c": rf"a-\d+-{re.escape(socket.gethostname())}\.b\.c",
    "%t.x": r"\d{8}-\d{6}\.x",
    "r%r.x": r"r\d+\.x",
    "%%p-%%h%%%p": r"%p-%h%\d+",
    "a,file=b %q \u00e4": "a,file=b %q \u00e4",
    ".hidden": r"\.hidden",
}


@pytest.mark.parametrize("template", NAMES)
def test_names(folder, template):
    assert folder.traced("-c", "pass", options=["-q", "-o", template]).status == 0
    (path,) = folder.path.iterdir()
    assert re.fullmatch(NAMES[template], path.name)
    assert heapledger.Capture.load(path).moments == ("live", "peak")


@pytest.mark.parametrize("name", ["100%pure", "50%%x", "time%t", "process%p"])
@pytest.mark.parametrize("template", ["x.hlsnap", "%p.hlsnap", "{}/x.hlsnap"])
def test_folder_with_a_percent_sign(folder, name, template):
    """What stands in the current folder's name is no code."""
    (folder.path / name / name).mkdir(parents=True)
    inner = Folder(folder.path / name)
    assert inner.traced("-c", "pass", options=["-q", "-o", template.format(name.replace("%", "%%"))]).status == 0
    assert len([path for path in inner.path.rglob("*.hlsnap") if heapledger.Capture.load(path)]) == 1


def test_folder_that_is_gone(folder):
    name = folder.script("""\
        import os, subprocess, sys
        os.mkdir("gone")
        os.chdir("gone")
        os.rmdir("../gone")
        run = [sys.executable, "-m", "heapledger", "run", "-q"]
        print(subprocess.run([*run, "-c", "pass"]).returncode)
        print(subprocess.run([*run, "-o", sys.argv[1], "-c", "pass"]).returncode)
        """)
    done = folder.plain(name, folder.path / "x.hlsnap")
    assert done.out == "2\n0\n" and done.err == (
        "heapledger run: the current folder no longer exists: give -o an absolute path\n"
    )
    assert len(folder.files()) == 1


SCRIPT = os.path.join(sysconfig.get_path("scripts"), "heapledger")


@pytest.mark.parametrize(
    "command, flags",
    [
        ([SCRIPT], []),
        ([sys.executable, SCRIPT], []),
        ([sys.executable, "-B", "-OO", SCRIPT], ["-B", "-OO"]),
        ([sys.executable, "-B", "-OOmheapledger"], ["-B", "-OO"]),
        ([sys.executable, "-B", "-OOm", "heapledger"], ["-B", "-OO"]),
        ([sys.executable, "-mheapledger"], []),
    ],
)
def test_ways_to_call_it(folder, command, flags):
    name = folder.script("import sys; print(sys.orig_argv[1:])")
    done = folder.finish(folder.start([*command, "run", "-q", name]))
    assert (done.out, done.err) == (f"{[*flags, name]}\n", "")


def test_program_changes_its_folder(folder):
    assert folder.traced("-c", "import os; os.chdir('/')", options=QUIET).status == 0
    assert len(folder.files()) == 1


def test_old_file_is_replaced(folder):
    (folder.path / "x.hlsnap").write_text("old")
    assert folder.traced("-c", "pass", options=["-q", "-o", "x.hlsnap"]).status == 0
    assert heapledger.Capture.load(folder.path / "x.hlsnap").moments == ("live", "peak")


def test_file_that_cannot_be_written(folder):
    """The program's status is its own; a line says what went wrong."""
    name = folder.script("import os, shutil; shutil.rmtree('out'); os._exit(5)")
    (folder.path / "out").mkdir()
    done = folder.traced(name, options=["-o", "out/x.hlsnap"])
    assert done.status == 5
    assert done.err == f"heapledger: cannot write {folder.path}/out/x.hlsnap: No such file or directory\n"


# Mistakes

MISTAKES = {
    "no program": ([], "no program"),
    "no module": (["-m"], "argument expected for -m"),
    "no folder": (["-o", "missing/x", "-c", "pass"], "there is no folder"),
    "a folder": (["-o", ".", "-c", "pass"], "is a folder"),
    "%p in a folder": (["-o", "%p/x", "-c", "pass"], "%p can be in the name of the file, not in the folder's"),
    "no code": (["-qc"], "argument expected for -c"),
    "no frames": (["-n", "0", "-c", "pass"], "must be a whole number from 1 to 65535, not '0'"),
    "too many frames": (["-n", "65536", "-c", "pass"], "must be a whole number from 1 to 65535"),
    "no number": (["-n", "x", "-c", "pass"], "must be a whole number from 1 to 65535, not 'x'"),
    "no time": (["--every", "x", "-c", "pass"], "must be a number of seconds from 0.001 to"),
    "too long": (["--every", "1e30", "-c", "pass"], "must be a number of seconds from 0.001 to"),
    "unknown option": (["--nonsense", "-c", "pass"], "unrecognized"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(folder, mistake):
    arguments, message = MISTAKES[mistake]
    done = folder.traced(options=arguments)
    assert done.status == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert folder.files() == []


@pytest.mark.parametrize(
    "options, file",
    [
        (["-qn5", "-omc", "-cpass"], "mc"),
        (["-n", "5", "-q", "--output", "m", "-cpass"], "m"),
        (["-n5", "--out=x", "-qcpass"], "x"),
        (["-n", "5", "-qo", "x", "--", "-cpass"], "x"),
        (["-n5", "-ox", "--no-children", "-qc", "pass"], "x"),
    ],
)
def test_options_before_a_program_in_one_word(folder, options, file):
    """Letters of values and of other options are not taken for the program."""
    done = folder.traced("-mx", options=options)
    assert (done.status, done.err) == (0, "")
    assert heapledger.Capture.load(folder.path / file).live.traceback_limit == 5


@pytest.mark.parametrize("program", [["missing.py"], ["-m", "nosuch"], ["-mnosuch.inner"]])
def test_program_that_is_not_there(folder, program):
    """Python says so, and no file is left that nobody wants."""
    assert folder.traced(*program) == folder.plain(*program)
    assert folder.files() == []


def test_program_that_needs_another_word(folder):
    done = folder.traced("pytest", "-x")
    assert (done.status, done.err) == (2, "heapledger run: there is no file pytest: did you mean -m pytest?\n")
    (folder.path / "some-command").write_text(f"#!{sys.executable}\nprint(1)\n")
    (folder.path / "some-command").chmod(0o755)
    inner = Folder(folder.path / "inner")
    inner.path.mkdir()
    done = inner.traced("some-command", environment={"PATH": f"{folder.path}:{os.environ['PATH']}"})
    hint = f"did you mean {folder.path}/some-command?"
    assert (done.status, done.err) == (2, f"heapledger run: there is no file some-command: {hint}\n")
    assert inner.files() == folder.files() == []


def test_help_is_complete(folder):
    """It points to nothing that is not installed."""
    done = folder.plain("-m", "heapledger", "help", "run")
    assert done == folder.plain("-m", "heapledger", "run", "--help")
    assert done.status == 0 and "SIGKILL" in done.out and ".md" not in done.out
    assert folder.plain("-m", "heapledger", "help") == folder.plain("-m", "heapledger", "--help")


# The variables

SHOW = "import os; print(os.environ.get('LD_PRELOAD'), os.environ.get('HEAPLEDGER_RUN'))"


def test_environment_is_what_children_need(folder):
    shown = folder.traced("-c", SHOW, options=QUIET).out.split()
    assert shown[0] == PRELOAD
    assert shown[1].startswith("frames=256,")


@pytest.mark.parametrize("there", [None, "/nonexistent-preload.so"])
def test_environment_without_children(folder, there):
    variables = {} if there is None else {"LD_PRELOAD": there}
    done = folder.traced("-c", SHOW, options=["-q", "--no-children"], environment=variables)
    assert done.out == f"{there} None\n"
    assert len(folder.files()) == 1


@pytest.mark.parametrize(
    "value",
    ["", "x", "file=", "frames=5,file=relative", "frames=0,moments=l,file=/tmp/x", "frames=5,moments=l", "," * 9]
    + ["frames=99999,moments=l,file=/x", "frames=5,moments=,file=/x", "frames=5,moments=l,file=/" + "x" * 5000],
)
def test_variable_that_makes_no_sense(folder, value):
    """A process that finds it runs as if it were not there."""
    done = folder.plain(
        "-c",
        "import heapledger; print(heapledger.is_tracing())",
        environment={"HEAPLEDGER_RUN": value, "LD_PRELOAD": PRELOAD},
    )
    assert (done.status, done.out, done.err) == (0, "False\n", "")
