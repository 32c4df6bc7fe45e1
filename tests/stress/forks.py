"""fork from a process whose threads are inside the hooks: by os.fork, by multiprocessing, and from a child again."""

import collections
import multiprocessing
import os
import sys
import tempfile
import time
import traceback

import heapledger
from common import Churn, choices, consistent, live, rounds, whole

HEADER = sys.getsizeof(b"")
MINE = range(7_000, 7_010)
CHILD_SECONDS = 30


def inherited():
    return [bytes(size - HEADER) for size in MINE for _ in range(3)]


def own(number):
    return [bytes(MINE[0] - HEADER) for _ in range(number)]


def in_child(churn, kept, folder, before, again):
    """The threads are gone; their blocks are there, but for those that were on their way into a slot."""
    assert heapledger.is_tracing()
    whole()
    counts, model = live(Churn.SIZES)[0], churn.model()
    assert not model - counts and (counts - model).total() <= len(churn.threads), (counts - model, model - counts)
    churn.free_all()
    left = live(Churn.SIZES)[0].total()
    assert left <= len(churn.threads), left
    assert live(MINE)[0] == collections.Counter({size: 3 for size in MINE}) + collections.Counter({MINE[0]: before})
    mine = own(5)
    snapshot = heapledger.take_snapshot()
    assert live(MINE, snapshot)[0][MINE[0]] == 8 + before
    snapshot.dump(os.path.join(folder, str(os.getpid())))
    consistent(heapledger.take_peak_snapshot(), heapledger.get_traced_memory()[1])
    if again:
        assert fork(lambda: in_child(churn, kept, folder, before + 5, False)) == 0
    whole()
    heapledger.clear_traces()
    assert live(MINE)[0].total() == 0
    heapledger.stop()
    heapledger.start(2)
    del mine[:], kept[:]
    new = own(4)
    assert live(MINE)[0].total() == len(new)
    whole()


def fork(function):
    """The status of a forked child that has called the function; one that hangs is killed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return wait(child)


def wait(child):
    deadline = time.monotonic() + CHILD_SECONDS
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            sys.exit("a forked child hangs")
        time.sleep(0.001)


def through_multiprocessing(churn, kept, folder):
    process = multiprocessing.get_context("fork").Process(target=in_child, args=(churn, kept, folder, 0, False))
    process.start()
    process.join(CHILD_SECONDS)
    return process.exitcode


def main():
    heapledger.start(3)
    kept = inherited()
    churn = Churn(3)
    for _ in rounds():
        with tempfile.TemporaryDirectory() as folder:
            churn.run()
            time.sleep(choices.random() * 0.01)
            if choices.random() < 0.8:
                assert fork(lambda folder=folder: in_child(churn, kept, folder, 0, True)) == 0
            else:
                assert through_multiprocessing(churn, kept, folder) == 0
            churn.rest()
            assert live(Churn.SIZES)[0] == churn.model()
            whole()
            # What parent and children share counts once, what each child has made for itself counts in full.
            children = [heapledger.Snapshot.load(os.path.join(folder, name)) for name in os.listdir(folder)]
            merged = heapledger.Snapshot.merge([heapledger.take_snapshot(), *children])
            wanted = collections.Counter({size: 3 for size in MINE}) + collections.Counter({MINE[0]: 5 * len(children)})
            assert live(MINE, merged)[0] == wanted, live(MINE, merged)[0]
    churn.free_all()
    churn.end()


if __name__ == "__main__":
    main()
