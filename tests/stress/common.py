"""What the stress programs share: seconds and seed, blocks whose number is known, and threads without the GIL.

A program is run as `python PROGRAM SECONDS SEED`, by test_stress.py or by hand. The same seed gives the same choices;
how threads interleave is the machine's affair.
"""

import collections
import ctypes
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

import heapledger

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
# A child forked from threads may find the sanitizer's allocator locked, and switched stacks are overflows to it.
UNDER_SANITIZER = "libasan" in os.environ.get("LD_PRELOAD", "")
choices = random.Random(SEED)
_end = time.monotonic() + SECONDS


def rounds(least=1):
    """0, 1, 2, ... until the seconds are over, but at least so many."""
    number = 0
    while number < least or time.monotonic() < _end:
        yield number
        number += 1


def whole():
    """The ledger's invariants hold, and nothing was lost."""
    assert heapledger._validate() is None, heapledger._validate()
    assert heapledger.lost_records() == 0, heapledger.lost_records()


def live(sizes, snapshot=None):
    """How many blocks of each of these sizes are alive, and the places where they were allocated."""
    counts, places = collections.Counter(), set()
    snapshot = snapshot or heapledger.take_snapshot()
    for trace in snapshot.traces:
        if trace.size in sizes:
            counts[trace.size] += 1
            places.add((trace.traceback[-1].filename, trace.traceback[-1].lineno))
    return counts, places


def consistent(snapshot, total=None):
    """Whatever one asks a snapshot for, the sums are the same."""
    sums = {sum(one.size for one in snapshot.statistics(key)) for key in ("filename", "lineno", "traceback")}
    assert len(sums) == 1 and (total is None or sums == {total}), (sums, total)


def build_churn():
    """The library of churn.c, compiled beside the interpreter's other temporary files unless it is there."""
    source = pathlib.Path(__file__).with_name("churn.c")
    folder = pathlib.Path(os.environ.get("HEAPLEDGER_STRESS_FOLDER", "/tmp"))
    library = folder / f"churn-{os.stat(source).st_mtime_ns}.so"
    if not library.exists():
        made = folder / f"churn-{os.getpid()}.so"
        command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", made, source]
        subprocess.run(command, check=True, capture_output=True, text=True)
        os.replace(made, library)
    return library


class Churn:
    """Threads that allocate, reallocate and free in the raw domain without the GIL, and can be made to rest."""

    SIZES = range(4_000, 4_040)  # what nothing else allocates for long
    SLOTS = 200
    BATCH = 2000

    def __init__(self, threads):
        library = ctypes.CDLL(str(build_churn()))
        self.slots = (ctypes.c_void_p * self.SLOTS)()
        self._churn, self._for_ever, self._hand_over = library.churn, library.churn_for_ever, library.hand_over
        self._hand_over.argtypes, self._hand_over.restype = [ctypes.c_bool], None
        common = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t]
        self._churn.argtypes = [ctypes.c_uint64, ctypes.c_size_t, *common]
        self._churn.restype = ctypes.c_size_t
        self._for_ever.argtypes, self._for_ever.restype = [ctypes.c_uint64, *common], None
        self._free = ctypes.CDLL(None).PyMem_RawFree
        self._free.argtypes, self._free.restype = [ctypes.c_void_p], None
        self._running, self._ended = threading.Event(), False
        self._resting = threading.Semaphore(0)
        self._go = [threading.Event() for _ in range(threads)]
        self.made = 0
        self._made_lock = threading.Lock()
        self.threads = [
            threading.Thread(target=self._work, args=(choices.getrandbits(60), go), daemon=True) for go in self._go
        ]
        for thread in self.threads:
            thread.start()

    def _arguments(self):
        return self.slots, self.SLOTS, self.SIZES.start, len(self.SIZES)

    def batch(self, seed):
        return self._churn(seed, self.BATCH, *self._arguments())

    def _work(self, seed, go):
        source = random.Random(seed)
        while True:
            go.wait()
            go.clear()
            if self._ended:
                return
            made = self.batch(source.getrandbits(60))
            while self._running.is_set():
                made += self.batch(source.getrandbits(60))
            with self._made_lock:
                self.made += made
            self._resting.release()

    def hand_over(self, is_wanted):
        """From now on a block may be another thread's before the call that frees it has returned. First called before
        the tracer is started.
        """
        is_plain = not sys.flags.dev_mode and "debug" not in os.environ.get("PYTHONMALLOC", "")
        if is_plain:
            self._hand_over(is_wanted)

    def for_ever(self):
        """In the calling thread; never returns."""
        self._for_ever(choices.getrandbits(60), *self._arguments())

    def run(self):
        self._running.set()
        for go in self._go:
            go.set()

    def rest(self):
        """All threads are between two batches when this returns."""
        self._running.clear()
        for _ in self.threads:
            self._resting.acquire()

    def model(self):
        """The blocks alive, by size. Only while all rest."""
        return collections.Counter(ctypes.c_size_t.from_address(block).value for block in self.slots if block)

    def free_all(self):
        for number, block in enumerate(self.slots):
            self._free(block)
            self.slots[number] = None

    def end(self):
        self._ended = True
        for go in self._go:
            go.set()
        for thread in self.threads:
            thread.join()


# Where blocks of a Churn come from.
CHURN_PLACE = (Churn.batch.__code__.co_filename, Churn.batch.__code__.co_firstlineno + 1)
