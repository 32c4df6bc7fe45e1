"""Code objects made and destroyed without end: their blocks name their own file and line, and tables stay flat."""

import gc
import sys
import threading

import heapledger
from common import choices, rounds, whole

SIZE = 5_500
KEPT = 300


def make(number, gap, depth):
    """A block allocated `depth` calls deep in code that exists once: (block, file, line)."""
    name, namespace = f"<code {number}>", {}
    source = "\n" * gap + "def f(n):\n    return f(n - 1) if n else bytes(%d)" % SIZE
    exec(compile(source, name, "exec"), namespace)
    return namespace["f"](depth), name, gap + 2


def check(kept, limit):
    for block, name, line in kept:
        found = heapledger.get_object_traceback(block)
        assert (found[-1].filename, found[-1].lineno) == (name, line), (found, name, line)
        assert all((frame.filename, frame.lineno) == (name, line) for frame in list(found)[-min(limit, 2) :])


def in_a_thread(numbers):
    for number in numbers:
        make(-number, number % 50, number % 4)


def main():
    made = 0
    for number in rounds(least=2):
        limit = choices.choice((1, 2, 30))
        heapledger.start(limit)
        thread = threading.Thread(target=in_a_thread, args=(range(400),))
        thread.start()
        kept, sizes = [], []
        for step in range(1500):
            made += 1
            kept.append(make(made, choices.randrange(60), choices.randrange(1, 5)))
            if len(kept) > KEPT:
                kept.pop(choices.randrange(KEPT))
            if step % 500 == 499:
                gc.collect(0)
                sizes.append(heapledger.memory()["total"])
        thread.join()
        check(kept, limit)
        whole()
        assert sizes[-1] < 40_000_000, sizes
        # The same code object under another name and elsewhere in memory.
        block = bytes(SIZE)
        assert heapledger.get_object_traceback(block)[-1].lineno == sys._getframe().f_lineno - 1
        heapledger.stop()
        del kept, number


if __name__ == "__main__":
    main()
