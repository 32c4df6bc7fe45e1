"""Bugs on record in the tracker of the standard library's tracemalloc, each a test that is named by its number.

Where it can be shown safely, the standard library is shown to hang, to crash or to answer wrong on releases with the
bug, in a child with a time limit; heapledger must do the same work and be right. Bugs of free-threaded builds cannot be
shown here; that a test without `shown` can fail, `make planted` shows by a like bug in heapledger. gh-150494 (slow) and
gh-121120 (slow files) are what `make bench` and `make bench-snapshots` measure.
"""

import pathlib
import platform
import subprocess
import sys
import textwrap

import extension
import pytest
from children import run

HANG = 2  # seconds after which a child that is known to hang is taken to do so
WRONG = 7  # the status of a child that has met a wrong answer

PRELUDE = f"""
WRONG = {WRONG}
import importlib, resource, sys, threading, time
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
engine = importlib.import_module(sys.argv[1])
sys.path.insert(0, sys.argv[2])

print("ready", flush=True)

def rounds(least, seconds=0.5):  # so many, however busy the machine is, and then until the time is over
    end = time.monotonic() + seconds
    while least > 0 or time.monotonic() < end:
        least -= 1
        yield

def consistent():
    if engine.__name__ == "heapledger":
        assert engine._validate() is None and engine.lost_records() == 0
"""

INTERPRETERS = """
try:
    import _interpreters
except ImportError:
    import _xxsubinterpreters as _interpreters
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the extension module of these tests."""
    source = pathlib.Path(__file__).with_name("bugs_on_record.c")
    return extension.build(tmp_path_factory.mktemp("bugs"), name="bugs_on_record", source=source)


def stdlib_ends(source, folder, *options):
    """How the standard library ends it: "well", "hangs", "crashed" by a signal, or "wrong", as the child has found."""
    command = [sys.executable, *options, "-c", PRELUDE + textwrap.dedent(source), "tracemalloc", str(folder)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        status = child.wait(timeout=HANG)
        return {0: "well", WRONG: "wrong"}.get(status, "crashed" if status < 0 else f"status {status}")
    except subprocess.TimeoutExpired:
        return "hangs"
    finally:
        child.kill()
        child.communicate()


def shown(endings, source, folder, *options):
    """The standard library ends it like this on the releases that `endings` names; on others nothing is claimed.

    "breaks": it crashes or hangs, as memory happens to be, at the latest at the fifth attempt."""
    expected = endings.get(platform.python_version())
    if expected == "breaks":
        assert any(stdlib_ends(source, folder, *options) in ("crashed", "hangs") for _ in range(5))
    elif expected is not None:
        assert stdlib_ends(source, folder, *options) == expected


def ours(source, folder, *options, **variables):
    """The same work with heapledger must be done in time and right."""
    run(PRELUDE + textwrap.dedent(source), "heapledger", folder, options=options, environment=variables)


# Deadlocks

WAIT_WITH_THE_GIL = """
    import bugs_on_record
    engine.start()
    sys.setswitchinterval(1000)  # nor is the GIL given up between the two calls
    bugs_on_record.begin("{kind}", 4)
    bugs_on_record.end(True)
    consistent()
"""


def test_gh_130093_reporting_without_the_gil(folder):
    """A thread without the GIL reports memory while the thread that has it waits for that one: Track wants the GIL."""
    source = WAIT_WITH_THE_GIL.format(kind="report")
    ours(source, folder)
    shown(dict.fromkeys(["3.11.7", "3.12.1", "3.13.0", "3.14.10"], "hangs"), source, folder)


def test_gh_130093_nobody_traces(folder):
    """The same hung on 3.12.9 though nobody was tracing. Nor may it once heapledger has traced and stopped."""
    source = WAIT_WITH_THE_GIL.format(kind="report").replace("engine.start()", "engine.start(); engine.stop()")
    ours(source, folder)


def test_gh_155725_allocating_without_the_gil(folder):
    """The same with the raw allocator, which may be called without the GIL and so must not wait for it."""
    source = WAIT_WITH_THE_GIL.format(kind="allocate")
    ours(source, folder)
    shown(dict.fromkeys(["3.11.7", "3.12.1", "3.13.0", "3.14.10"], "hangs"), source, folder)


def test_gh_139116_stopping_while_others_report(folder):
    """stop() held the tables' lock and waited for all threads to halt; one of them waited for that lock."""
    source = """
        import bugs_on_record
        bugs_on_record.begin("both for long", 3)
        for number in range(300):
            engine.start(number % 5 + 1)
            kept = [bytes(100) for _ in range(20)]
            engine.stop()
        bugs_on_record.end(False)
        consistent()
    """
    ours(source, folder)
    shown(dict.fromkeys(["3.11.7", "3.12.1", "3.13.0"], "breaks"), source, folder)


def test_gh_144763_the_gil_is_not_given_up(folder):
    """The cure for gh-139116 gave up the GIL inside an allocation, when the lock was taken: others ran in between."""
    ours(
        """
        import bugs_on_record
        engine.start(5)
        turns = 0
        def other():
            global turns
            while not done:
                turns += 1
                time.sleep(0)
        done = False
        thread = threading.Thread(target=other)
        thread.start()
        while turns < 10:
            time.sleep(0.001)
        bugs_on_record.begin("both for long", 3)   # the ledger's lock is in demand
        sys.setswitchinterval(1000)                # from here on nobody takes the GIL from us
        time.sleep(0.001)
        before, end = turns, time.monotonic() + 0.5
        while time.monotonic() < end:
            [bytes(n) for n in range(50)]
        assert turns == before, (before, turns)
        sys.setswitchinterval(0.005)
        done = True
        thread.join()
        bugs_on_record.end(False)
        consistent()
        """,
        folder,
    )


# Crashes


def test_gh_128679_stopped_while_a_report_waits(folder):
    """Track saw that it was tracing, waited for the GIL, and then wrote into tables that stop() had freed meanwhile."""
    source = """
        import bugs_on_record
        engine.start()
        sys.setswitchinterval(1000)
        bugs_on_record.begin("report", 50)
        engine.stop()
        bugs_on_record.end(False)
        consistent()
    """
    ours(source, folder)
    shown(dict.fromkeys(["3.11.7", "3.12.1", "3.13.0"], "breaks"), source, folder)


def test_gh_143143_threads_report_through_start_and_stop(folder):
    """The interpreter's own test of such races crashed: a thread's state was freed under it. Ours makes no states."""
    source = """
        import bugs_on_record
        bugs_on_record.begin("both for long", 8)
        for _ in rounds(20):
            engine.start()
            engine.clear_traces()
            engine.take_snapshot()
            engine.stop()
        bugs_on_record.end(False)
        consistent()
    """
    ours(source, folder)
    shown(dict.fromkeys(["3.11.7", "3.12.1", "3.13.0"], "breaks"), source, folder)


def test_gh_126314_snapshots_while_others_clear(folder):
    """take_snapshot() read traces that clear_traces() of another thread had freed. (Free-threaded builds.)"""
    ours(
        """
        engine.start(3)
        import inspect
        problems = []
        def snapshots():
            for _ in rounds(5):
                kept = [bytes(5000) for _ in range(10)]
                for trace in engine.take_snapshot().traces:
                    if not (trace.size >= 0 and len(trace.traceback) >= 1 and trace.traceback[-1].lineno >= 0):
                        problems.append(trace)
        def clears():
            for _ in rounds(20):
                engine.clear_traces()
        threads = [threading.Thread(target=target) for target in (snapshots, clears, snapshots, clears)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems, problems[:3]
        consistent()
        """,
        folder,
    )


def test_gh_126315_every_function_in_threads(folder):
    """Assertions failed when threads started, stopped and asked at once. (Free-threaded builds.)"""
    ours(
        """
        unexpected = []
        def bad_start():
            try:
                engine.start(memoryview(bytearray(b"abc\\xe9\\xff")))
            except TypeError:
                return
            unexpected.append("start() took a memoryview")
        calls = [bad_start, engine.start, engine.get_traceback_limit, engine.start, engine.stop, engine.reset_peak,
                 engine.get_tracemalloc_memory, engine.get_traced_memory, engine.is_tracing]
        def repeat(call):
            for _ in rounds(20):
                call()
                bytes(2000)
        threads = [threading.Thread(target=repeat, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not unexpected, unexpected
        consistent()
        """,
        folder,
    )


# Sub-interpreters


def test_gh_110029_stopping_with_an_interpreter_alive(folder):
    """stop() gives up the references that traces hold to file names, of which some belong to another interpreter."""
    source = f"""{INTERPRETERS}
engine.start()
interpreter = _interpreters.create()
assert engine.get_traced_memory()[0] > 0
engine.stop()
"""
    ours(source + "consistent()\n_interpreters.destroy(interpreter)\n", folder, "-W", "ignore")
    shown({"3.11.7": "hangs", "3.12.1": "breaks"}, source, folder)


def test_gh_134604_traced_from_the_start(folder):
    """With tracing on from the start, creating an interpreter crashed at exit."""
    source = f"{INTERPRETERS}\n_interpreters.create()\n"
    ours("assert engine.is_tracing()\n" + source, folder, "-W", "ignore", HEAPLEDGER="1")
    shown({"3.11.7": "hangs", "3.12.1": "breaks", "3.14.10": "breaks"}, source, folder, "-X", "tracemalloc")


def test_gh_144172_interpreters_destroyed_while_tracing(folder):
    """Traces kept pointers to file names that went away with the interpreter they belonged to."""
    source = f"""{INTERPRETERS}
engine.start(5)
for number in range(5):
    interpreter = _interpreters.create()
    execute = getattr(_interpreters, "exec", None) or _interpreters.run_string
    execute(interpreter, f"exec(compile('kept = [bytes(2000) for _ in range(50)]', '/made/{{number}}.py', 'exec'))")
    _interpreters.destroy(interpreter)
names = {{frame[0] for trace in engine._get_traces() for frame in trace[2]}}
assert all(isinstance(name, str) and name.isprintable() for name in names)
"""
    ours(source + "consistent()\n", folder, "-W", "ignore")
    shown(dict.fromkeys(["3.11.7", "3.12.1", "3.13.0", "3.14.10"], "breaks"), source, folder)


# Wrong or lost


def test_gh_125703_objects_that_die_in_specialised_instructions(folder):
    """Temporaries of arithmetic die without a word to the reference tracer; their blocks must leave all the same."""
    ours(
        """
        engine.start()
        def work(number, fraction, text):
            for _ in range(2000):
                number * number + number
                fraction * fraction - fraction
                (text + text)[3:-3]
        work(10**30, 1.5, "x" * 3000)
        count, size = len(engine._get_traces()), engine.get_traced_memory()[0]
        for _ in range(5):
            work(10**30, 1.5, "x" * 3000)
        assert len(engine._get_traces()) - count < 20
        assert engine.get_traced_memory()[0] - size < 5000
        consistent()
        """,
        folder,
    )


def test_gh_101430_instances_with_a_header_before_them(folder):
    """Plain instances have their dict and weak references before the object; 3.11 looks for the block elsewhere."""
    source = """
        class Plain:
            pass
        class Slotted:
            __slots__ = ("value",)
        class Both(Plain, dict):
            pass
        engine.start()
        made = [Plain(), Slotted(), Both(), type("Fresh", (), {})(), ValueError(), lambda: None]
        here = sys._getframe().f_lineno - 1
        for number, one in enumerate(made):
            found = engine.get_object_traceback(one)
            if found is None:
                sys.exit(WRONG)
            assert found[-1].lineno == here, (one, found)
        consistent()
    """
    ours(source, folder)
    shown({"3.11.7": "wrong"}, source, folder)


def test_gh_96612_frames_that_have_not_begun(folder):
    """A generator is allocated in a frame that no traceback shows yet: the newest frame is the caller's."""
    ours(
        """
        engine.start(3)
        def generator(argument):
            yield argument
        async def coroutine():
            pass
        async def asynchronous():
            yield 1
        def outer(function, *arguments):
            made = function(*arguments); line = sys._getframe().f_lineno
            frames = [(frame.filename, frame.lineno) for frame in engine.get_object_traceback(made)]
            assert frames == [(__file__, calling), (__file__, line)], frames
            made.close() if hasattr(made, "close") else None
        calling = sys._getframe().f_lineno + 1
        outer(generator, 1), outer(coroutine), outer(asynchronous)
        consistent()
        """,
        folder,
    )


def test_gh_79234_objects_from_freelists(folder):
    """An object has the traceback of its own allocation, whatever was in its memory before."""
    ours(
        """
        engine.start()
        def first():
            return {}, [], (first, 1), slice(first, 2)
        def second():
            return {}, [], (second, 1), slice(second, 2)
        held = [first() for number in range(300)]
        del held
        for _ in range(50):
            first()
            for one in second():
                assert engine.get_object_traceback(one)[-1].lineno == second.__code__.co_firstlineno + 1
        consistent()
        """,
        folder,
    )


# Slow


def test_gh_143057_reports_while_nobody_traces(folder):
    """Every report took a lock, tracing or not, so threads that made arrays waited for each other."""
    ours(
        """
        import bugs_on_record
        engine.start()
        engine.stop()
        alone, together = bugs_on_record.measure(1, 200_000), bugs_on_record.measure(4, 200_000)
        assert together < 10 * alone + 200, (alone, together)
        """,
        folder,
    )
