"""heapledger run and signals: files of processes that a signal ends, and files that a signal or a timer asks for."""

import os
import signal
import sys
import time

import heapledger
import pytest
from running import Folder, size_at

QUIET = ("-q",)
DEADLY = ["SIGHUP", "SIGQUIT", "SIGALRM", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGVTALRM", "SIGPROF"]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def wait_for_line(child, line="ready"):
    assert child.stdout.readline() == f"{line}\n"


def end_by(folder, name, number, **more):
    """Start, wait until it is ready, send the signal."""
    child = folder.start_traced(name, options=QUIET, **more)
    wait_for_line(child)
    child.send_signal(number)
    return folder.finish(child)


READY = "import resource, time\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"


@pytest.mark.parametrize("name", DEADLY)
def test_signals_that_end_a_process(folder, name):
    """Sent to a process that is blocked: the status is the signal's, and the file is whole."""
    number = getattr(signal, name)
    kept = "kept = [bytes(9000) for _ in range(1000)]"
    script = folder.script(f"{READY}{kept}\nprint('ready', flush=True)\ntime.sleep(60)\n")
    # A shell lets what it starts in the background ignore some.
    done = end_by(folder, script, number, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    assert (done.status, done.out, done.err) == (-number, "", "")
    (capture,) = folder.captures().values()
    assert size_at(capture.live, script, 3)[1] >= 1000
    assert sum(statistic.size for statistic in capture.peak.statistics("filename")) == capture.metadata["peak"]
    process = capture.metadata["process_at_dump"]
    assert (process["pymalloc_arenas"], process["malloc"]) == (None, None)  # cannot be asked in a signal handler
    assert process["pages"] is None or process["pages"]["Rss"] > 9_000_000
    assert process["tables"]["total"] > 0
    assert folder.leftovers() == []


BUSY = {
    "allocating": "while True: kept = [[bytes(n), {n: n}] for n in range(100)]",
    "large blocks": "while True: kept = bytearray(100000); kept += bytes(200000)",
    "in C": "sum(range(10**12))",
    "in threads": """
import threading
def work():
    while True: kept = [[bytes(n), {n: n}] for n in range(100)]
for _ in range(3): threading.Thread(target=work).start()
work()""",
    "taking snapshots": "import heapledger\nwhile True: heapledger.take_snapshot().statistics('lineno')",
    "writing": "import heapledger\nwhile True: heapledger.take_capture().dump('/dev/null')",
    "forking": "import os\nwhile True:\n pid = os.fork()\n if not pid: os._exit(0)\n os.waitpid(pid, 0)",
}


@pytest.mark.parametrize("what", BUSY)
def test_signal_interrupts_anything(folder, what):
    """Inside the hooks, the C library's allocator, our own functions: the process ends, and the file is whole."""
    script = folder.script(f"print('ready', flush=True)\n{BUSY[what]}\n")
    for delay in (0.0, 0.03, 0.11):
        child = folder.start_traced(script, options=["-n", "5", "-o", "only.hlsnap"], start_new_session=True)
        wait_for_line(child)
        time.sleep(delay)
        began = time.monotonic()
        child.send_signal(signal.SIGTERM)
        done = folder.finish(child)
        assert done.status == -signal.SIGTERM
        assert time.monotonic() - began < 10
        assert "heapledger: the lines that held most of " in done.err
        capture = heapledger.Capture.load(folder.path / "only.hlsnap")
        assert sum(statistic.size for statistic in capture.peak.statistics("filename")) == capture.metadata["peak"]
        folder.clear()
    assert folder.leftovers() == []


def test_killed(folder):
    """SIGKILL leaves nothing, and no half file, even while one is being written."""
    script = folder.script("print('ready', flush=True)\nwhile True: kept = [bytes(n) for n in range(100)]\n")
    for delay in (0.0, 0.02, 0.05):
        child = folder.start_traced(script, options=["-q", "--every", "0.001"])
        wait_for_line(child)
        time.sleep(delay)
        child.kill()
        assert folder.finish(child).status == -signal.SIGKILL
    for path in folder.files():
        assert heapledger.Capture.load(path).moments == ("live", "peak")


@pytest.mark.parametrize("given", [[], ["--on-signal", "SIGTERM"]])
def test_signal_during_the_interpreters_end(folder, given):
    """The file has been written by then, with what was there before the interpreter began to clear up."""
    script = folder.script("""\
        import os, signal
        kept = [bytes(9000) for _ in range(1000)]
        class Last:
            def __del__(self, kill=os.kill, me=os.getpid(), number=signal.SIGTERM):
                kept.clear()
                kill(me, number)
        last = Last()
        """)
    done = folder.traced(script, options=[*QUIET, *given])
    assert (done.status, done.err) == (0 if given else -signal.SIGTERM, "")
    (capture,) = folder.captures().values()
    assert size_at(capture.live, script, 2)[1] >= 1000


def test_programs_own_handlers_are_its_own(folder):
    """One that sets a handler has it; what it finds is the default; ignored signals stay ignored."""
    script = folder.script("""\
        import os, signal, sys, time
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGHUP)
        print("ready", flush=True)
        for _ in range(600):
            time.sleep(0.1)  # Python's handler may have to wait for the end of one
        """)
    done = end_by(folder, script, signal.SIGTERM, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert (done.status, done.err) == (5, "")
    assert len(folder.files()) == 1


# How servers end: they set the default back and send themselves the signal that they were stopped by.
RESETS = {
    "raise_signal": "signal.signal(number, signal.SIG_DFL); signal.raise_signal(number)",
    "kill": "signal.signal(number, signal.Handlers.SIG_DFL); os.kill(os.getpid(), number)",
    "restored": "signal.signal(number, before); os.kill(os.getpid(), number)",
    "from outside": "signal.signal(number, signal.SIG_DFL)\nsubprocess.run(['kill', f'-{number:d}', str(os.getpid())])",
    "asyncio": "loop = asyncio.new_event_loop(); loop.add_signal_handler(number, print)\n"
    "loop.remove_signal_handler(number); signal.signal(number, signal.SIG_DFL); signal.raise_signal(number)",
    "wakeup": "signal.set_wakeup_fd(os.open('/dev/null', os.O_WRONLY | os.O_NONBLOCK), warn_on_full_buffer=False)\n"
    "signal.signal(number, signal.SIG_DFL); signal.siginterrupt(number, True); signal.raise_signal(number)",
    "in C": "ctypes.CDLL(None).signal(int(number), None); signal.raise_signal(number)",
}


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGQUIT", "SIGPIPE"])
@pytest.mark.parametrize("how", RESETS)
def test_default_that_is_set_back(folder, how, name):
    if (how, name) in (("restored", "SIGINT"), ("restored", "SIGPIPE")):
        pytest.skip("Python's own handling, not the default")
    script = folder.script(
        "import asyncio, ctypes, os, resource, signal, subprocess\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        "kept = [bytes(9000) for _ in range(1000)]\n"
        f"number = signal.{name}\n"
        "before = signal.signal(number, lambda *_: print('handled'))\n"
        f"{RESETS[how]}\n"
    )
    plain = folder.plain(script)
    assert plain.status == -getattr(signal, name)
    assert folder.traced(script, options=QUIET) == plain
    (capture,) = folder.captures().values()
    assert size_at(capture.live, script, 3)[1] >= 1000


def test_default_that_is_set_back_is_what_the_program_sees(folder):
    script = folder.script("""\
        import signal
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGPIPE, signal.SIGCHLD):
            before = signal.signal(number, signal.SIG_DFL)
            print(before, signal.getsignal(number), signal.signal(number, print), signal.getsignal(number))
            print(signal.signal(number, signal.SIG_IGN), signal.getsignal(number))
            signal.raise_signal(number)
        for wrong in ((0, 0), (999, 0), (2**70, 0), ("x", 0), (9, print), (15, "x"), ()):
            try:
                signal.signal(*wrong)
            except (TypeError, ValueError, OSError, OverflowError) as error:
                print(error)
        """)
    assert folder.traced(script, options=QUIET) == folder.plain(script)


def test_file_that_cannot_be_written(folder):
    """A line says why, from a signal handler too."""
    (folder.path / "out").mkdir()
    code = "import os, shutil; shutil.rmtree('out'); os.kill(os.getpid(), 15)"
    done = folder.traced("-c", code, options=["-o", "out/x.hlsnap"])
    assert done.status == -signal.SIGTERM
    assert done.err == f"heapledger: cannot write {folder.path}/out/x.hlsnap: No such file or directory\n"


def test_closing_words_of_a_process_that_a_signal_ends(folder):
    """As of one that ends by itself: all files, and the lines that held most."""
    script = folder.script("""\
        import os, signal, time
        large = bytes(7 << 20)
        if os.fork() == 0:
            larger = bytes(10 << 20)
            os._exit(0)
        os.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        """)
    done = folder.traced(script)
    assert done.status == -signal.SIGTERM
    lines = done.err.splitlines()
    assert "heapledger: 2 files of 2 processes: " in lines[1]
    assert [line.split()[::2] for line in lines[3:5]] == [
        ["10.0", f"{folder.path / script}:4"],
        ["7.0", f"{folder.path / script}:2"],
    ], done


def test_blocked_and_waited_for_signals(folder):
    name = folder.script("""\
        import os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
        os.kill(os.getpid(), signal.SIGTERM)
        print(signal.sigwait([signal.SIGTERM]), signal.sigpending())
        """)
    assert folder.traced(name, options=QUIET) == folder.plain(name)


def test_children_inherit_no_handlers(folder):
    """What another program is started with is what it would be."""
    script = folder.script("""\
        import subprocess
        command = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"]
        subprocess.run(command, close_fds=False)
        subprocess.run(command, restore_signals=False)
        """)
    assert folder.traced(script, options=["-q", "--every", "0.05", "--on-signal", "USR2"]) == folder.plain(script)


def test_killed_children(folder):
    """A forked child and a started one; the parent sees what it would see."""
    script = folder.script("""\
        import multiprocessing, os, signal, subprocess, sys, time
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
        time.sleep(0.1)
        os.kill(pid, signal.SIGTERM)
        print(os.waitpid(pid, 0)[1])
        child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); import time; time.sleep(60)"], stdout=-1)
        child.stdout.readline()
        child.terminate()
        print(child.wait())
        """)
    done = folder.traced(script, options=QUIET)
    assert (done.status, done.out, done.err) == (0, "15\n-15\n", "")
    assert len(folder.captures()) == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGRTMIN + 7])
def test_signal_that_comes_before_a_child_has_run(folder, number):
    """It is in no hurry: the child knows first that it is one, and then writes."""
    script = folder.script(f"""\
        import os, time
        for _ in range(30):
            pid = os.fork()
            if pid == 0:
                time.sleep(0.2)
                os._exit(0)
            os.kill(pid, {number})
            os.waitpid(pid, 0)
        """)
    assert folder.traced(script, options=["-q", "-o", "%p-x.hlsnap"]).status == 0
    assert len(series(folder)) == (0 if number == signal.SIGTERM else 30)
    assert len(folder.files()) - len(series(folder)) == 31


def test_children_that_are_not_followed_die_alone(folder):
    script = folder.script("""\
        import os, signal, time
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
        os.kill(pid, signal.SIGTERM)
        print(os.waitpid(pid, 0)[1])
        """)
    assert folder.traced(script, options=["-q", "--no-children"]).out == "15\n"
    assert len(folder.files()) == 1


# A file on demand


def series(folder):
    return [path for path in folder.files() if path.stem[:-4].endswith("-x-")]


def test_on_signal(folder):
    """Each signal writes one file more; the program goes on and does not notice, asleep or not."""
    script = folder.script("""\
        import os, sys, time
        for line in sys.stdin:
            kept = [bytes(9000) for _ in range(int(line))]
            os.kill(os.getpid(), 12)
            before = time.monotonic()
            time.sleep(0.2)
            assert time.monotonic() - before >= 0.2
            print(line, end="", flush=True)
        """)
    given = "1000\n3000\n2000\n"
    done = folder.traced(script, options=["-q", "--on-signal", "SIGUSR2", "-o", "%p-x.hlsnap"], stdin=given)
    assert (done.status, done.out, done.err) == (0, "1000\n3000\n2000\n", "")
    assert [path.stem[-4:] for path in series(folder)] == ["0001", "0002", "0003"]
    for path, count in zip(series(folder), (1000, 3000, 2000), strict=True):
        capture = heapledger.Capture.load(path)
        assert count <= size_at(capture.live, script, 3)[1] < count + 10
        assert capture.peak is not None
    assert len(folder.files()) == 4


IDLE_OR_NOT = {
    "idle": "time.sleep(1)",
    "allocating": "end = time.monotonic() + 1\nwhile time.monotonic() < end: [[] for _ in range(99)]",
}


@pytest.mark.parametrize("what", IDLE_OR_NOT)
def test_every(folder, what):
    """Files come while it is idle and while it allocates; there is no thread, and fork does not warn."""
    script = folder.script(f"""\
import os, time
{IDLE_OR_NOT[what]}
print(len(os.listdir("/proc/self/task")))
pid = os.fork()
if pid == 0:
    time.sleep(0.3)
    os._exit(0)
os.waitpid(pid, 0)
""")
    done = folder.traced(script, flags=["-W", "error"], options=["-q", "--every", "0.1", "-o", "%p-x.hlsnap"])
    assert (done.status, done.out, done.err) == (0, "1\n", "")
    processes = {path.name.split("-")[0] for path in folder.files()}
    assert len(processes) == 2
    assert 6 <= len(series(folder)) <= 20
    for path in folder.files():
        assert heapledger.Capture.load(path).moments == ("live", "peak")


def test_every_does_not_disturb_calls(folder):
    """Calls that block come back with what they would come back with, when they would."""
    script = folder.script("""\
        import os, queue, select, socket, subprocess, sys, threading, time
        began = time.monotonic()
        assert select.select([], [], [], 0.1) == ([], [], [])
        poll = select.epoll()
        assert poll.poll(0.1) == []
        one, other = socket.socketpair()
        threading.Timer(0.1, lambda: other.send(b"x")).start()
        assert one.recv(1) == b"x"
        try:
            queue.Queue().get(timeout=0.1)
        except queue.Empty:
            pass
        assert subprocess.run(["sleep", "0.1"]).returncode == 0
        assert sys.stdin.readline() == "line"
        assert time.monotonic() - began >= 0.5
        """)
    done = folder.traced(script, options=["-q", "--every", "0.01"], stdin="line")
    assert (done.status, done.err) == (0, "")
    assert len(folder.files()) > 10


MISTAKES = [
    *(["--every", time] for time in ("0", "x", "inf", "nan")),
    *(["--on-signal", name] for name in ("KILL", "SIGX")),
]


@pytest.mark.parametrize("given", MISTAKES)
def test_mistakes(folder, given):
    done = folder.traced("-c", "pass", options=given)
    assert done.status == 2
    assert given[0] in done.err


def test_signal_for_a_file_unless_another_is_given(folder):
    """Without any option; with one, the default means what it means to others."""
    program = ("-c", "import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 7)")
    assert folder.traced(*program, options=QUIET).status == 0
    assert len(folder.files()) == 2
    folder.clear()
    assert folder.traced(*program, options=["-q", "--on-signal", "USR2"]).status == -(signal.SIGRTMIN + 7)


@pytest.mark.parametrize("options, number", [([], int(signal.SIGRTMIN + 7)), (["--on-signal", "USR2"], 12)])
def test_signal_that_the_program_handles_itself(folder, options, number):
    """It does, and a line says that there will be no file."""
    code = f"import os, signal\nfor _ in range(2): signal.signal({number}, print)\nos.kill(os.getpid(), {number})"
    done = folder.traced("-c", code, options=options)
    assert done.status == 0 and done.out.startswith(f"{number} ")
    assert done.err.startswith(
        f"heapledger: the program handles signal {number} itself, so no file is written on it: choose another with "
        "--on-signal\nheapledger: written to "
    ), done
    assert len(folder.files()) == 1


@pytest.mark.parametrize("how", ["SIGUSR1", "usr1", str(int(signal.SIGUSR1)), "SIGRTMIN+3", "rtmax-4", "36"])
def test_names_of_signals(folder, how):
    number = {"SIGRTMIN+3": int(signal.SIGRTMIN) + 3, "rtmax-4": int(signal.SIGRTMAX) - 4, "36": 36}.get(how, 10)
    program = ("-c", f"import os; os.kill(os.getpid(), {number})")
    assert folder.traced(*program, options=["-q", "--on-signal", how]).status == 0
    assert len(folder.files()) == 2


FULL = {
    "large blocks": "while True: kept.append(bytes(1 << 20))",
    "small blocks": "while True: kept.append([object() for _ in range(100)])",
    "many sites": "n = 0\nwhile True: n += 1; kept.append(bytes(n % 20_000))",
}
FULL_ENDS = {
    "exception": "",
    "_exit": "import os; os._exit(1)",
    "signal": "import os; os.kill(os.getpid(), 15)",
}


@pytest.mark.parametrize("end", FULL_ENDS)
@pytest.mark.parametrize("what", FULL)
def test_out_of_memory(folder, what, end):
    """A program that runs into its own limit ends as it would, and its file has what filled the memory."""
    body = f"try: grow()\nexcept MemoryError: {FULL_ENDS[end]}\n" if FULL_ENDS[end] else "grow()\n"
    script = folder.script(
        "import resource\nkept = []\ndef grow():\n    "
        + FULL[what].replace("\n", "\n    ")
        + "\nlimit = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize() + (150 << 20)\n"
        + f"resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n{body}"
    )
    done = folder.traced(script, options=["-q", "-o", "x.hlsnap"])
    assert done.status == (-15 if end == "signal" else 1), done
    assert ("MemoryError" in done.err) == (end == "exception"), done
    capture = heapledger.Capture.load(folder.path / "x.hlsnap")
    assert size_at(capture.peak, script)[0] > 0.8 * capture.metadata["peak"] > 50 << 20
    assert folder.leftovers() == []


def test_out_of_memory_from_the_start(folder):
    """The same under ulimit -v."""
    script = folder.script("kept = []\nwhile True: kept.append(bytes(1 << 20))\n")
    shell = f"ulimit -v {600 << 10}; exec {sys.executable} -m heapledger run -q -o x.hlsnap {script}"
    done = folder.finish(folder.start(["sh", "-c", shell]))
    assert done.status == 1 and "MemoryError" in done.err, done
    capture = heapledger.Capture.load(folder.path / "x.hlsnap")
    assert size_at(capture.peak, script)[0] > 0.8 * capture.metadata["peak"] > 50 << 20


@pytest.mark.parametrize("limit", [60, 120, 300])
def test_limited_from_the_start(folder, limit):
    """ulimit -v, as low as the interpreter itself starts with."""
    script = folder.script("print(len(bytes(1000)))")
    shell = f"ulimit -v {limit * 1024}; exec {sys.executable} -m heapledger run -q {script}"
    plain = f"ulimit -v {limit * 1024}; exec {sys.executable} {script}"
    done = folder.finish(folder.start(["sh", "-c", shell]))
    if folder.finish(folder.start(["sh", "-c", plain])).status == 0:
        assert (done.status, done.out) == (0, "1000\n")
    for path in folder.files():
        assert heapledger.Capture.load(path).moments == ("live", "peak")
    assert os.listdir(folder.path).count("core") == 0
