"""Sub-interpreters made and destroyed, with the GIL they share and with one of their own, all allocating at once."""

import collections
import sys
import textwrap
import threading

import heapledger
from common import choices, consistent, live, rounds, whole

try:
    import _interpreters
except ImportError:
    import _xxsubinterpreters as _interpreters

SIZES = range(6_000, 6_016)


def create(own_gil):
    if sys.version_info >= (3, 13):
        return _interpreters.create("isolated" if own_gil else "legacy")
    return _interpreters.create(isolated=own_gil)


def execute(interpreter, source):
    if sys.version_info >= (3, 13):
        problem = _interpreters.exec(interpreter, source)
        assert problem is None, problem
    else:
        _interpreters.run_string(interpreter, source)


# The file name says whose block it is.
SOURCE = textwrap.dedent("""
    import sys
    header = sys.getsizeof(b"")
    code = compile("def make(size): return bytes(size)", "<interpreter %d>", "exec")
    exec(code)
    kept = [make(size - header) for size in %r]
    for number in range(%d):
        passing = [bytes(number %% 600), {"k": number * 1.5}]
        if number %% 40 == 0:
            exec(compile(f"x = bytes({number})", f"<passing {number}>", "exec"), {})
    del kept[%d:]
    del passing
""")


class Interpreter:
    number = 0

    def __init__(self):
        Interpreter.number += 1
        self.name = f"<interpreter {Interpreter.number}>"
        self.id = create(choices.random() < 0.6)
        sizes = [choices.choice(SIZES) for _ in range(choices.randrange(1, 12))]
        keep = choices.randrange(1, len(sizes) + 1)
        self.kept = collections.Counter(sizes[:keep])
        self.source = SOURCE % (Interpreter.number, sizes, choices.randrange(200, 2000), keep)
        self.failure = None

    def run(self):
        try:
            execute(self.id, self.source)
        except BaseException as error:
            self.failure = error

    def destroy(self):
        _interpreters.destroy(self.id)


def main():
    heapledger.start(2)
    alive = []
    for _ in rounds(least=2):
        new = [Interpreter() for _ in range(choices.randrange(1, 4))]
        threads = [threading.Thread(target=one.run) for one in new]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            consistent(heapledger.take_snapshot())
            whole()
        for thread in threads:
            thread.join()
        assert not any(one.failure for one in new), [one.failure for one in new]
        alive += new
        model = sum((one.kept for one in alive), collections.Counter())
        counts, places = live(SIZES)
        assert counts == model, (counts, model)
        assert places == {(one.name, 1) for one in alive}, places
        while len(alive) > 3 or (alive and choices.random() < 0.5):
            alive.pop(choices.randrange(len(alive))).destroy()
        model = sum((one.kept for one in alive), collections.Counter())
        assert live(SIZES)[0] == model
        whole()
    for one in alive[1:]:  # the interpreter's end finds one
        one.destroy()


if __name__ == "__main__":
    main()
