"""The whole API at once: random calls by several threads, by finalizers, by signal handlers and in forked children.

Whatever is called whenever, it raises only the exceptions that the documentation names. Whenever the process is quiet,
the ledger is whole and holds no block that is gone, and the next start finds it as good as new. In every other round
another tool (the standard library's tracemalloc) starts and stops in between; in the others, threads without the GIL
allocate.
"""

import _tracemalloc
import collections
import contextlib
import copy
import ctypes
import gc
import os
import pickle
import random
import signal
import sys
import tempfile
import threading
import traceback
import tracemalloc

import heapledger
from common import UNDER_SANITIZER, Churn, build_churn, choices, consistent, live, rounds, whole
from forks import fork

HEADER = sys.getsizeof(b"")
SIZES = range(6_200, 6_220)
DOMAIN = 77
THREADS = 3
# As they are before any install().
THEIRS = {name: getattr(_tracemalloc, name) for name in ("start", "stop", "is_tracing", "clear_traces")}
THEIR_SNAPSHOT = tracemalloc.take_snapshot

blocks = collections.deque(maxlen=300)  # the program's own: bytes of SIZES
snapshots = collections.deque(maxlen=6)
captures = collections.deque(maxlen=3)
windows = collections.deque()
reported = collections.deque(maxlen=50)
failures = []
ran = collections.Counter()


# What can be called

ACTIONS = {}  # function: the exceptions that it may raise
FOREIGN = {}


def action(*allowed, group=ACTIONS):
    def add(function):
        group[function] = allowed
        return function

    return add


def some(pool, source):
    """One of a pool that other threads change meanwhile, or None."""
    try:
        return source.choice(pool)
    except (IndexError, RuntimeError):
        return None


@action()
def start(source):
    heapledger.start(source.choice((1, 2, 10, 100)))


@action(ValueError)
def start_wrongly(source):
    heapledger.start(source.choice((0, -1, 70_000)))


@action()
def stop(source):
    if source.random() < 0.3:
        heapledger.stop()


@action()
def clear(source):
    heapledger.clear_traces()


@action()
def reset_peak(source):
    heapledger.reset_peak()


@action()
def ask(source):
    now, peak = heapledger.get_traced_memory()
    assert 0 <= now <= peak
    assert 1 <= heapledger.get_traceback_limit() <= 100
    assert heapledger.get_tracemalloc_memory() >= 0
    assert min(heapledger.allocated()) >= 0
    memory = heapledger.memory()
    assert memory["total"] == sum(memory.values()) - memory["total"], memory
    assert heapledger.lost_records() >= 0
    block = some(blocks, source)
    found = heapledger.get_object_traceback(block)
    if found is not None and block is not None:
        assert found[-1].filename == __file__, found.format()
        assert found.format()
    assert heapledger._validate() is None


@action(RuntimeError)
def take(source):
    ways = (heapledger.take_snapshot, heapledger.take_peak_snapshot, heapledger.take_allocation_snapshot)
    snapshots.append(source.choice(ways)())


@action(RuntimeError)
def take_capture(source):
    captures.append(heapledger.take_capture())


class Own(heapledger.BaseFilter):
    def _match(self, trace):
        return trace[1] % 2 == 0


@action()
def analyse(source):
    one, other = some(snapshots, source), some(snapshots, source)
    if one is None or other is None:
        return
    key = source.choice(("filename", "lineno", "traceback"))
    cumulative = key != "traceback" and source.random() < 0.3
    consistent(one)
    one.compare_to(other, key, cumulative)[:3]
    filters = [
        heapledger.Filter(source.random() < 0.5, "*chaos*", lineno=source.choice((None, 5)), all_frames=True),
        heapledger.DomainFilter(source.random() < 0.5, DOMAIN),
        Own(True),
    ]
    filtered = one.filter_traces(source.sample(filters, source.randrange(1, 4)))
    assert len(filtered.traces) <= len(one.traces)
    for statistic in filtered.statistics(key, cumulative)[:2]:
        str(statistic), statistic.traceback.format(3, True)
    if len(one.traces):
        repr(one.traces[source.randrange(len(one.traces))])
    one.metadata  # noqa: B018


@action(ValueError)  # live blocks and peaks are not added up
def merge(source):
    given = [one for one in (some(snapshots, source), some(snapshots, source)) if one]
    if given:
        snapshots.append(heapledger.Snapshot.merge(given if source.random() < 0.5 else iter(given)))


@action()
def merge_captures(source):
    given = [one for one in (some(captures, source), some(captures, source)) if one]
    if given:
        captures.append(heapledger.Capture.merge(given))
        captures[-1].select("live")


@action()
def files(source):
    path = os.path.join(FOLDER, f"{os.getpid()}-{threading.get_ident()}-{source.random()}")
    one, capture = some(snapshots, source), some(captures, source)
    if one is not None:
        one.dump(path, format=source.choice(("hlsnap", "tracemalloc")))
        back = heapledger.Snapshot.load(path)
        assert len(back.traces) == len(one.traces) and back.traceback_limit == one.traceback_limit
        os.unlink(path)
    if capture is not None:
        capture.dump(path)
        assert heapledger.Capture.load(path).moments == capture.moments
        os.unlink(path)


@action(heapledger.SnapshotFormatError)
def damaged_file(source):
    one = some(snapshots, source)
    if one is None:
        return
    path = os.path.join(FOLDER, f"{os.getpid()}-{threading.get_ident()}-{source.random()}")
    one.dump(path, format="hlsnap")
    with open(path, "r+b") as file:
        file.truncate(source.randrange(os.path.getsize(path)))
    try:
        heapledger.Snapshot.load(path)
    finally:
        os.unlink(path)


@action()
def copies(source):
    one = some(snapshots, source)
    if one is not None and len(one.traces) < 20_000:
        assert len(pickle.loads(pickle.dumps(one)).traces) == len(copy.copy(one).traces)


@action()
def open_window(source):
    window = heapledger.trace(source.choice((1, 5)))
    window.__enter__()
    windows.append(window)


@action(RuntimeError)
def close_window(source):
    """Maybe one that another thread has opened; maybe the tracer was stopped meanwhile."""
    try:
        window = windows.popleft() if source.random() < 0.5 else windows.pop()
    except IndexError:
        return
    window.__exit__(None, None, None)
    for one in (window.start, window.peak, window.allocated, window.leaked):
        consistent(one)
    repr(window)


@action(RuntimeError)  # stopped by another thread
def track_leaks(source):
    heapledger.track_leaks(lambda: work(source), rounds=source.randrange(1, 3), warmup=0, nframe=3)


@action()
def install(source):
    heapledger.install()


@action()
def uninstall(source):
    heapledger.uninstall()


@action()
def report(source):
    address = source.randrange(1 << 40) << 4
    REPORT(DOMAIN, address, source.randrange(1 << 20))
    reported.append(address)
    if len(reported) > 30:
        with contextlib.suppress(IndexError):
            WITHDRAW(DOMAIN, reported.popleft())


@action()
def work(source):
    blocks.extend([bytes(source.choice(SIZES) - HEADER) for _ in range(10)])
    [[bytes(number), {"a": 1.5}] for number in range(100)]
    for _ in range(source.randrange(5)):
        with contextlib.suppress(IndexError):
            blocks.popleft()


class Cycle:
    """A finalizer that calls whatever there is."""

    def __init__(self, source):
        self.me, self.source = self, random.Random(source.random())

    def __del__(self):
        act(self.source, FROM_FINALIZERS)


@action()
def garbage(source):
    Cycle(source)
    if source.random() < 0.3:
        gc.collect(source.randrange(3))


@action()
def thread(source):
    one = threading.Thread(target=act, args=(random.Random(source.random()), FROM_FINALIZERS))
    one.start()
    one.join()


@action()
def fork_now(source):
    if source.random() < 0.2 and not UNDER_SANITIZER:
        assert fork(lambda: in_child(random.Random(source.random()))) == 0


@action()
def raise_signal(source):
    signal.raise_signal(signal.SIGUSR1)


@action(group=FOREIGN)
def start_theirs(source):
    THEIRS["start"](source.choice((1, 7)))


@action(group=FOREIGN)
def stop_theirs(source):
    THEIRS["stop"]()


@action(group=FOREIGN)
def clear_theirs(source):
    THEIRS["clear_traces"]()


FROM_FINALIZERS = {
    function: allowed
    for function, allowed in ACTIONS.items()
    if function not in (garbage, thread, fork_now, raise_signal, track_leaks)
}


# Calling


def act(source, actions):
    function = source.choice([*actions])
    ran[function.__name__] += 1
    try:
        function(source)
    except actions[function]:
        pass
    except BaseException as error:
        failures.append(f"{function.__name__}: " + "".join(traceback.format_exception(error)))


def act_often(source, actions, number):
    for _ in range(number):
        act(source, actions)


def on_signal(number, frame, running=[], source=random.Random(choices.random())):  # noqa: B006, B008
    if not running:
        running.append(True)
        act(source, FROM_FINALIZERS)
        running.clear()


def quiet(is_child=False, is_foreign=False):
    """Nothing else runs. A child has blocks of threads that are gone; the other tool may have taken our hooks along."""
    gc.collect()
    while windows:
        with contextlib.suppress(RuntimeError):
            windows.pop().__exit__(None, None, None)
    heapledger.uninstall()
    THEIRS["stop"]()
    assert sys.modules["tracemalloc"] is tracemalloc
    assert all(getattr(tracemalloc, name) is function for name, function in THEIRS.items())
    assert tracemalloc.take_snapshot is THEIR_SNAPSHOT
    gc.collect()
    assert not failures, failures[0]
    assert heapledger._validate() is None, heapledger._validate()
    assert is_child or is_foreign or heapledger.lost_records() == 0, heapledger.lost_records()
    if heapledger.is_tracing():
        consistent(heapledger.take_peak_snapshot(), heapledger.get_traced_memory()[1])
        assert is_child or is_foreign or not phantoms(), phantoms()
    good_as_new()


def model():
    return collections.Counter(len(block) + HEADER for block in blocks)


def phantoms():
    """Blocks that are gone, and in the ledger all the same."""
    return live(SIZES)[0] - model()


def hooks_that_go():
    """The other tool was first and goes, and takes our hooks along: what is freed then must not stay in the ledger for
    ever, unless the ledger says that it has lost records.
    """
    heapledger.stop()
    THEIRS["start"](1)
    start(choices)
    for _ in range(5):
        work(choices)
    THEIRS["stop"]()
    for _ in range(choices.randrange(len(blocks))):
        blocks.popleft()
    act_often(choices, {take_capture: (), ask: (), analyse: ()}, 3)
    assert heapledger._validate() is None, heapledger._validate()
    assert not phantoms() or heapledger.lost_records() > 0, phantoms()
    assert not failures, failures[0]
    good_as_new()


def good_as_new():
    heapledger.stop()
    blocks.clear()
    heapledger.start(2)
    work(choices)
    counts, places = live(SIZES)
    assert counts == model(), (counts, model())
    assert {file for file, _ in places} == {__file__}, places
    whole()


def in_child(source):
    """What a forked child inherits may be in the middle of anything in other threads, but those are gone."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    failures.clear()
    act_often(source, FROM_FINALIZERS, 5)
    quiet(is_child=True)


def main():
    signal.signal(signal.SIGUSR1, on_signal)
    signal.signal(signal.SIGALRM, on_signal)
    sys.unraisablehook = threading.excepthook = lambda details: failures.append(repr(details))
    churn = Churn(2)
    for number in rounds(least=2):
        is_foreign = number % 2 == 1
        sys.setswitchinterval(choices.choice((0.00001, 0.0005, 0.005)))
        if choices.random() < 0.5:
            heapledger.stop()  # so that who hooks first is open
        actions = {**ACTIONS, **FOREIGN} if is_foreign else ACTIONS
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        if not is_foreign:
            churn.run()
        threads = [
            threading.Thread(target=act_often, args=(random.Random(choices.random()), actions, 30))
            for _ in range(THREADS)
        ]
        for one in threads:
            one.start()
        act_often(random.Random(choices.random()), actions, 30)
        for one in threads:
            one.join()
        if not is_foreign:
            churn.rest()
        signal.setitimer(signal.ITIMER_REAL, 0)
        quiet(is_foreign=is_foreign)
        if is_foreign:
            hooks_that_go()
    churn.free_all()
    churn.end()
    print(f"{ran.total()} calls in {number + 1} rounds: {dict(ran)}")


if __name__ == "__main__":
    library = ctypes.PyDLL(str(build_churn()))
    REPORT, WITHDRAW = library.report, library.withdraw
    REPORT.argtypes = [ctypes.c_uint, ctypes.c_size_t, ctypes.c_size_t]
    WITHDRAW.argtypes = [ctypes.c_uint, ctypes.c_size_t]
    memory_file_system = "/dev/shm"  # writing to a disk, which dump waits for, would take most of the time
    with tempfile.TemporaryDirectory(
        dir=memory_file_system if os.access(memory_file_system, os.W_OK) else None
    ) as FOLDER:
        main()
