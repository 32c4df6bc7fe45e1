"""fork, the end of the interpreter, allocators and limits, each in a process of its own."""

import sys

import pytest
from children import run

FORK = """
    import os, sys, threading, time, zlib
    import heapledger
    heapledger.start(3)
    stop = threading.Event()
    data = bytes(range(256)) * 200

    def work():
        kept = []
        while not stop.is_set():
            kept.append([bytearray(500), {"a": 1.5}, zlib.compressobj()])
            kept[-1][2].compress(data)
            if len(kept) > 20:
                kept.clear()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(int(sys.argv[1]))]
    for thread in threads:
        thread.start()
    mine, my_line = bytes(7777), sys._getframe().f_lineno
    for number in range(25):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                assert heapledger.is_tracing()
                block = bytes(8888)
                assert heapledger.get_object_traceback(block)[-1].lineno == sys._getframe().f_lineno - 1
                assert heapledger.get_object_traceback(mine)[-1].lineno == my_line
                assert any(trace.size == sys.getsizeof(block) for trace in heapledger.take_snapshot().traces)
                assert heapledger._validate() is None
                heapledger.stop()
                heapledger.start(1)
                assert heapledger.get_object_traceback(mine) is None
                status = 0
            except BaseException:
                import traceback
                traceback.print_exc()
            finally:
                os._exit(status)
        deadline = time.monotonic() + 20
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                break
            assert time.monotonic() < deadline, "the forked child hangs"
            time.sleep(0.002)
        assert status == 0
    stop.set()
    for thread in threads:
        thread.join()
    assert heapledger._validate() is None
"""


@pytest.mark.parametrize("threads", [0, 3])
def test_fork(threads):
    """With threads, some are inside a hook at the moment of the fork: the child must not find the lock taken."""
    run(FORK, threads, options=["-W", "ignore"])


HANDLER = """
    import ctypes, os, sys
    import heapledger
    kept = []
    handler = ctypes.CFUNCTYPE(None)(lambda: kept.append([bytearray(5000), dict.fromkeys(map(str, range(50)))]))
    handlers = [handler if sys.argv[1] == place else None for place in ("before", "in the parent", "in the child")]
    assert ctypes.CDLL(None).__getattr__("__register_atfork")(*handlers, None) == 0
    heapledger.start(3)
    child = os.fork()
    if child == 0:
        os._exit(0 if heapledger._validate() is None and heapledger.lost_records() == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(kept) == (sys.argv[1] != "in the child")
    for block, _ in kept:
        assert heapledger.get_object_traceback(block)[-1].filename == __file__
    assert heapledger._validate() is None
"""


@pytest.mark.parametrize("place", ["before", "in the parent", "in the child"])
def test_fork_with_a_handler_that_allocates(place):
    """Registered before ours, it runs while the forking thread holds our locks."""
    run(HANDLER, place, timeout=20)


WAITING_HANDLER = """
    import ctypes, os, sys, threading, time
    def wait():
        time.sleep(0.4)               # gives up the GIL; another thread may need a moment
        if asked is not None:
            asked.wait(20)
    def use():
        # The child has one thread. It must not wait for the event or the GIL: another thread may have held their locks.
        held = [bytearray(500) for _ in range(100)]
        if asked is not None:
            heapledger.take_snapshot(), heapledger.get_traced_memory(), heapledger.get_object_traceback(held[0])
    place = sys.argv[1]
    if place == "in the child":
        sys.setswitchinterval(1000)   # no thread asks for the GIL in the parent: the child would wait for that thread
    handler = ctypes.CFUNCTYPE(None)(use if place == "in the child" else wait)
    handlers = [handler if place == here else None for here in ("before", "in the parent", "in the child")]
    assert ctypes.CDLL(None).__getattr__("__register_atfork")(*handlers, None) == 0
    import heapledger
    heapledger.start(3)
    asked = threading.Event() if sys.argv[2] == "asks" else None
    stop = threading.Event()
    old = [bytearray(1500) for _ in range(3000)]

    def work():
        kept = []
        while not stop.is_set():
            kept.append([bytearray(500), {"a": 1.5}])
            if len(kept) > 20:
                kept.clear()
            if old:
                old.pop()
            time.sleep(0)

    def ask():
        while not stop.is_set():
            asked.set()
            heapledger.take_snapshot(), heapledger.get_traced_memory(), heapledger.get_object_traceback(stop)
            time.sleep(0)

    threads = [threading.Thread(target=work, daemon=True)]
    if asked is not None:
        threads.append(threading.Thread(target=ask, daemon=True))
    for thread in threads:
        thread.start()
    mine = bytes(7777)
    for _ in range(2):
        child = os.fork()
        if child == 0:
            block = bytes(8888)
            known = [heapledger.get_object_traceback(one) is not None for one in (mine, block)]
            os._exit(0 if known == [True, True] and heapledger._validate() is None else 1)
        assert os.waitpid(child, 0)[1] == 0
    stop.set()
    for thread in threads:
        thread.join()
    sizes = [trace.size for trace in heapledger.take_snapshot().traces]
    assert 1501 not in sizes or old, "blocks that were freed during the fork are still in the ledger"
    assert heapledger._validate() is None
    last = bytes(9999)
    assert heapledger.get_object_traceback(last) is not None
    print(heapledger.lost_records())
"""


@pytest.mark.parametrize("asks", ["allocates", "asks"])
@pytest.mark.parametrize("place", ["before", "in the parent", "in the child"])
def test_fork_with_a_handler_that_gives_up_the_gil(place, asks):
    """Registered before ours, it runs while we hold the ledger. Nobody who gets the GIL then may sleep with it.

    In the child, the handler itself uses Python and asks us.
    """
    run(WAITING_HANDLER, place, asks, options=["-W", "ignore"], timeout=40)


def test_no_handler_of_others_runs_while_we_hold_the_ledger():
    """Handlers that are registered after heapledger was imported run before ours: nothing is lost then."""
    source = WAITING_HANDLER.replace("    place = sys.argv[1]", "    import heapledger\n    place = sys.argv[1]")
    assert run(source, "before", "allocates", options=["-W", "ignore"], timeout=40) == "0\n"


def test_thread_of_a_child_handler(companion):
    """Another library's handler starts a thread in the child, before ours has given the locks back."""
    run(
        """
        import os, sys, time
        sys.path.insert(1, sys.argv[1])
        import companion
        companion.start_threads_in_children()
        import heapledger
        heapledger.start(3)
        child = os.fork()
        if child == 0:
            deadline = time.monotonic() + 10
            while not companion.child_thread_is_done() and time.monotonic() < deadline:
                time.sleep(0.001)
            os._exit(0 if companion.child_thread_is_done() and heapledger._validate() is None else 1)
        assert os.waitpid(child, 0)[1] == 0
        """,
        companion,
        options=["-W", "ignore"],
    )


EXITS = {
    "plain": "",
    "in atexit": "import atexit; atexit.register(lambda: print(len(heapledger._get_traces()) > 0))",
    "finalizers that allocate and ask": """
class Late:
    def __init__(self):
        self.me = self
    def __del__(self, heapledger=heapledger):
        self.more = [bytes(n) for n in range(200)]
        heapledger.get_traced_memory(), heapledger.get_object_traceback(self), heapledger._validate()
late = [Late() for _ in range(10)]
import builtins; builtins.late = Late()
""",
    "daemon threads that allocate": """
def work():
    kept = []
    while True:
        kept = [bytearray(3000), {"a": 1.5}, zlib.compress(bytes(100000))]
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
""",
    "threads that still run": """
def work():
    time.sleep(0.2)
    kept = [bytearray(size) for size in range(2000)]
    heapledger.take_snapshot().statistics("traceback")
for _ in range(3):
    threading.Thread(target=work).start()
""",
    "started by a thread": """
heapledger.stop()
def work():
    heapledger.start(7)
    heapledger.kept = [bytearray(size) for size in range(2000)]
thread = threading.Thread(target=work); thread.start(); thread.join()
""",
    "with snapshots alive": """
snapshot = heapledger.take_snapshot(); import builtins
first = snapshot.traces[0]
builtins.kept = [snapshot, snapshot.statistics("traceback"), first, list(snapshot.traces), first.traceback]
cycle = [snapshot]; cycle.append(cycle); snapshot.cycle = cycle
""",
    "by sys.exit in a callback": """
import atexit
class Asking(heapledger.BaseFilter):
    def _match(self, trace):
        sys.exit(0)
heapledger.take_snapshot().filter_traces([Asking(True)])
""",
    "installed": "heapledger.install(); import tracemalloc; tracemalloc.take_snapshot()",
    "beside the stdlib": "import tracemalloc; tracemalloc.start(3)",
    "after os.fork": """
import os
pid = os.fork()
kept = [bytes(n) for n in range(1000)]
if pid:
    assert os.waitpid(pid, 0)[1] == 0
""",
    "module dropped": """
del sys.modules["heapledger"], sys.modules["heapledger._ledger"]
del heapledger
import gc; gc.collect()
kept = [bytes(n) for n in range(1000)]
import heapledger
assert heapledger.is_tracing()
""",
}


@pytest.mark.parametrize("case", EXITS)
def test_exit_while_tracing(case):
    source = "import sys, threading, time, zlib\nimport heapledger\nheapledger.start(5)\n"
    source += "kept = [bytes(n) for n in range(3000)]\n"
    output = run(source + EXITS[case], options=["-W", "ignore"])
    assert output == ("True\n" if case == "in atexit" else "")


@pytest.mark.parametrize("allocator", ["malloc", "pymalloc", "debug", "malloc_debug", "pymalloc_debug"])
def test_other_allocators(allocator):
    """PYTHONMALLOC=debug checks block borders: a hook that passes a wrong pointer or size on is found."""
    run(
        """
        import sys, zlib, heapledger
        for limit in (1, 10):
            heapledger.start(limit)
            kept = []
            for number in range(3000):
                kept.append([bytes(number), bytearray(number % 50), {"a": 1.5}, zlib.compress(bytes(number))])
                line = sys._getframe().f_lineno - 1
                kept[-1][1].extend(bytes(number % 900))
                if number % 10 == 0:
                    del kept[::2]
            assert heapledger.get_object_traceback(kept[-1][0])[-1].lineno == line
            assert heapledger._validate() is None and heapledger.lost_records() == 0
            heapledger.take_snapshot().statistics("traceback")
            heapledger.stop()
    """,
        environment={"PYTHONMALLOC": allocator},
    )


def test_little_address_space():
    """Under ulimit -v the tables are as large as they need to be."""
    run("""
        import resource, heapledger
        resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
        heapledger.start(5)
        kept = [bytes(n % 700) for n in range(50000)]
        assert heapledger.get_object_traceback(kept[-1])[-1].lineno == 4
        assert heapledger.take_snapshot().statistics("lineno")[0].count > 40000
        assert heapledger._validate() is None
        heapledger.stop()
    """)


def test_no_address_space_left():
    """Out of memory is the program's MemoryError; the ledger counts what it could not enter and stays whole."""
    run("""
        import resource, heapledger
        heapledger.start(5)
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), used + (100 << 20)))
        kept = []
        try:
            while True:
                kept.append(bytes(100 + len(kept) % 100))
        except MemoryError:
            pass
        number = len(kept)
        del kept
        assert number > 1000
        assert heapledger._validate() is None
        heapledger.lost_records()
        block = bytes(3000)
        heapledger.stop()
        heapledger.start()
        heapledger.stop()
    """)


def test_a_program_that_lowers_its_own_address_limit():
    """It has about as many allocations left as without us: we take addresses for what we hold, no more."""
    left = {}
    for engine in ("none", "heapledger"):
        answer = run(
            """
            import resource, sys, heapledger

            def addresses():
                with open("/proc/self/statm") as file:
                    return int(file.read().split()[0]) * resource.getpagesize()

            kept, made = [None] * 5000, 0
            before = addresses()
            if sys.argv[1] == "heapledger":
                heapledger.start(25)
            taken = addresses() - before
            resource.setrlimit(resource.RLIMIT_AS, (before + (64 << 20),) * 2)
            try:
                while True:
                    kept[made] = bytearray(100_000)
                    made += 1
            except MemoryError:
                kept = None
            if heapledger.is_tracing():
                assert heapledger.lost_records() == 0
                assert heapledger._validate() is None
            print(made, taken)
        """,
            engine,
        )
        left[engine], taken = map(int, answer.split())
        assert taken < 8 << 20
    assert left["heapledger"] > 0.85 * left["none"] > 500


def test_options_of_the_interpreter():
    for options in (["-X", "dev"], ["-E", "-s"], ["-O"], ["-OO"], ["-X", "importtime"], ["-X", "tracemalloc=3"]):
        run(
            """
            import sys, heapledger
            heapledger.start(3)
            block = bytes(3000)
            assert heapledger.get_object_traceback(block)[-1].lineno == 3, heapledger.get_object_traceback(block)
            heapledger.take_snapshot()
            heapledger.stop()
        """,
            options=options,
        )


def test_static_interpreter_symbols():
    """The extension imports without a warning and says what it is."""
    assert run("import heapledger, sys; print(heapledger.__name__)", options=["-W", "error"]) == "heapledger\n"
    assert sys.version_info >= (3, 11)
