"""A stack fuzzer: random programs of frames of every kind, each traceback compared with a walk by sys._getframe.

Generators, coroutines and asynchronous generators, exceptions whose tracebacks are kept, code made at run time, calls
through C and back, trace, profile and monitoring functions that allocate themselves and move frames to other lines,
signal handlers, threads, greenlets, finalizers, frames that are looked at, cleared and collected; at 2, 25 and 300
frames. The rest of the kinds is in tests/api/random_stacks.py.

    python stacks.py SECONDS SEED
"""

import asyncio
import collections
import contextlib
import ctypes
import functools
import gc
import inspect
import signal
import sys
import threading
import traceback

import heapledger
import walks
from common import UNDER_SANITIZER, choices, rounds, whole
from onlookers import Onlookers
from walks import LEAF, SIZE, check, leaf, walk

try:
    import greenlet
except ImportError:
    greenlet = None

LIMITS = (2, 25, 300)
MOST = 2000  # tracebacks that one program compares, more or less
SUSPENDABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


class Plain:
    """Nothing of it comes from a freelist."""


# Programs


class Hot:
    """Calls that the interpreter makes without C in between, once they are hot."""

    def __init__(self, program, depth):
        self.program, self.depth = program, depth
        program.step(depth)

    @property
    def value(self):
        return self.program.step(self.depth - 1)

    def __getitem__(self, key):
        return self.program.step(self.depth - 1)

    def __getattr__(self, name):
        return self.program.step(self.depth - 1)

    def __add__(self, other):
        return self.program.step(self.depth - 1)

    def __enter__(self):
        self.program.allocate()

    def __exit__(self, *details):
        self.program.step(self.depth - 1)


class Dying:
    def __init__(self, program, depth):
        self.program, self.depth, self.me = program, depth, None

    def __del__(self):
        self.program.step(self.depth - 1)


class Program(Onlookers, walks.Program):
    def __init__(self, seed):
        super().__init__(seed, self.disturb)
        self.errors, self.frames = collections.deque(maxlen=8), collections.deque(maxlen=8)
        self.kinds += [self.asynchronous, self.abandoned, self.raising, self.catching, self.replaced, self.evaluated,
                       self.class_body, self.foreign, self.hot, self.looping,
                       self.threaded, self.switched, self.cleared, self.dying, self.far_down, self.managed]  # fmt: skip
        self.kinds += self.onlookers()

    def step(self, depth):
        if self.checked < MOST:
            super().step(depth)

    # What happens at random moments, and changes no frame of the program

    def disturb(self):
        self.random.choice((self.collect, self.look, self.signal, self.switch, self.forget, self.clear, self.recheck))()

    def collect(self):
        gc.collect(self.random.randrange(3))

    def look(self):
        """Whoever looks at frames makes objects of them, and gathers their variables."""
        frame = sys._getframe(self.random.randrange(3))
        for _ in range(10):
            if frame is None:
                break
            frame.f_locals, frame.f_lasti, gc.get_referents(frame)
            if not frame.f_code.co_flags & SUSPENDABLE:  # clearing such a frame would end the generator
                self.frames.append(frame)
            frame = frame.f_back
        sys._current_frames()

    def signal(self):
        signal.raise_signal(signal.SIGUSR1)

    def switch(self):
        if greenlet and greenlet.getcurrent().parent is not None:
            greenlet.getcurrent().parent.switch()

    def forget(self):
        self.frames.clear()
        self.errors.clear()

    def clear(self):
        for frame in [*self.frames]:
            with contextlib.suppress(RuntimeError):  # it is running, or suspended
                frame.clear()

    def recheck(self):
        kept = [*walks.current.kept]  # other threads change it
        for made, frames in self.random.sample(kept, min(len(kept), 20)):
            walks.current.compare(made, frames)

    # Allocating

    def compare(self, made, frames):
        walks.current.compare(made, frames)
        self.checked += 1
        if self.random.random() < 0.1:
            walks.current.kept.append((made, frames))

    def allocate(self):
        if self.random.random() < 0.3:
            self.pause()
        way = self.random.randrange(5)
        if way == 0:
            self.compare(bytearray(SIZE), walk())
        elif way == 1:
            self.compare(Plain(), walk())
        elif way == 2:
            self.compare({*range(20)}, walk())
        elif way == 3:
            self.compare(lambda: None, walk())
        else:
            # No walk, which makes objects of frames, before the last of these.
            below, first, second, here = leaf(), bytes(SIZE), Plain(), walk()
            self.compare(below, [LEAF, *here])
            self.compare(first, here)
            self.compare(second, here)

    # Kinds of frames

    async def values(self, depth):
        try:
            for number in range(2):
                self.step(depth - 1)
                yield number
        finally:
            self.allocate()

    async def iterating(self, depth):
        async for _ in self.values(depth):
            self.step(depth - 2)
        return [number async for number in self.values(depth - 2)]

    def asynchronous(self, depth):
        try:
            self.iterating(depth).send(None)
        except StopIteration:
            self.allocate()

    def abandoned(self, depth):
        """An asynchronous generator that is begun, thrown into, and left to the collector."""
        made = self.values(depth)
        with contextlib.suppress(StopIteration):
            made.asend(None).send(None)
        if self.random.random() < 0.5:
            with contextlib.suppress(KeyError, StopIteration):
                made.athrow(KeyError).send(None)
        self.allocate()

    def failing(self, depth, more):
        try:
            if more:
                self.failing(depth, more - 1)
            self.step(depth - 1)
            raise KeyError(depth)
        finally:
            self.allocate()

    def raising(self, depth):
        try:
            self.failing(depth - 1, self.random.randrange(5))
        except KeyError as error:
            self.errors.append(error)  # with its traceback, and so with its frames
            self.step(depth - 2)
        self.allocate()

    def catching(self, depth):
        """A signal's handler raises, in the middle of a line."""
        if threading.current_thread() is not threading.main_thread():
            return self.step(depth - 1)
        try:
            signal.raise_signal(signal.SIGUSR2)
            self.step(depth - 1)
        except InterruptedError as error:
            self.errors.append(error)
            self.step(depth - 1)

    def replaced(self, depth):
        """A function that gets another code object: another file, other lines."""

        def function():
            self.step(depth - 1)
            self.allocate()

        function()
        code = function.__code__
        function.__code__ = code.replace(co_filename=f"<other {depth}>", co_firstlineno=code.co_firstlineno + 1000)
        function()

    def evaluated(self, depth):
        lines = "\n" * self.random.randrange(300)
        eval(f"({lines}program.step(depth), {lines} program.allocate())", {"program": self, "depth": depth - 1})

    def class_body(self, depth):
        class Made:
            self.step(depth - 1)
            made = self.allocate()

        return Made

    def foreign(self, depth):
        """Through C, and back by a way that knows nothing of the interpreter's stack."""
        CALLBACK(lambda number: self.step(number) or 0)(depth - 1)
        functools.reduce(lambda one, other: self.step(depth - 2), [1, 2])

    def hot(self, depth):
        for _ in range(self.random.choice((1, 20))):
            hot = Hot(self, depth - 3)
            with hot:
                hot.value, hot.missing, hot[0], hot + 1
            depth = 0

    def dying(self, depth):
        made = Dying(self, depth - 1)
        if self.random.random() < 0.5:
            made.me = made  # for the collector
        del made
        self.allocate()

    def far_down(self, depth):
        """Beyond every limit."""
        self.deep(depth - 2, self.random.choice((3, 24, 330)))

    @contextlib.contextmanager
    def manager(self, depth):
        self.step(depth - 1)
        try:
            yield
        finally:
            self.step(depth - 1)

    def managed(self, depth):
        with contextlib.suppress(KeyError), self.manager(depth - 1):
            self.step(depth - 2)
            raise KeyError

    def looping(self, depth):
        """asyncio, if no loop is running in this thread."""
        if asyncio._get_running_loop() is not None:
            return self.step(depth)
        asyncio.run(self.iterating(depth - 1))

    def cleared(self, depth):
        """Frames that are cleared while something still holds them."""
        made = self.yielding(depth - 1)
        next(made)
        try:
            made.gi_frame.clear()  # closes the generator, up to 3.12
        except RuntimeError:
            made.close()
        try:
            self.failing(depth - 2, 2)
        except KeyError as error:
            traceback.clear_frames(error.__traceback__)
        self.allocate()

    # Threads and greenlets

    def threaded(self, depth):
        thread = threading.Thread(target=self.step, args=(depth - 2,))
        thread.start()
        thread.join()

    def switched(self, depth):
        if greenlet is None or UNDER_SANITIZER:
            return self.step(depth)
        running = [greenlet.greenlet(functools.partial(self.step, depth - 2)) for _ in range(2)]
        while running:
            one = self.random.choice(running)
            one.switch()
            self.allocate()
            if one.dead:
                running.remove(one)


# Rounds


def on_interrupt(number, frame):
    check()
    raise InterruptedError


def on_timer(number, frame, running=[]):  # noqa: B006 - handlers may come while one runs
    if not running:
        running.append(True)
        check()
        running.clear()


def run(seed):
    program = Program(seed)
    for _ in range(6):
        program.step(7)


def guarded(seed):
    try:
        run(seed)
    except BaseException as error:
        walks.current.failed(error)


def remember(details):
    """For exceptions that nobody catches: in finalizers, callbacks and threads."""
    walks.current.failed(details.exc_value)


def main():
    sys.setrecursionlimit(20_000)
    threading.stack_size(64 << 20)
    sys.unraisablehook = threading.excepthook = remember
    signal.signal(signal.SIGUSR1, lambda number, frame: check())
    signal.signal(signal.SIGUSR2, on_interrupt)
    signal.signal(signal.SIGALRM, on_timer)
    checked = 0
    for number in rounds(least=len(LIMITS)):
        current = walks.begin(LIMITS[number % len(LIMITS)])
        heapledger.start(current.limit)
        sys.setswitchinterval(choices.choice((0.00001, 0.005)))
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        threads = [
            threading.Thread(target=guarded, args=(choices.getrandbits(40),)) for _ in range(number % 4 // 2 * 2)
        ]
        for thread in threads:
            thread.start()
        guarded(choices.getrandbits(40))
        for thread in threads:
            thread.join()
        signal.setitimer(signal.ITIMER_REAL, 0)
        current.end()
        checked += current.checked
        whole()
        heapledger.stop()
    print(f"{checked} tracebacks compared in {number + 1} rounds")


if __name__ == "__main__":
    main()
