"""A random program that allocates in frames of every kind, and compares each traceback with a walk by sys._getframe.

check(seed, rounds) is what others run beside whatever might disturb the tracer. `pause` is called at random moments and
may do anything to the thread that leaves the program's own frames as they were: switch stacks, let others run.
"""

import random
import sys

import heapledger

SIZE = 3000  # no freelist has such blocks


def walk():
    """The (file, line) of each frame of the caller, newest first. An instruction of no line counts as line 0."""
    frames, frame = [], sys._getframe(1)
    while frame is not None:
        frames.append((frame.f_code.co_filename, frame.f_lineno or 0))
        frame = frame.f_back
    return frames


class Program:
    def __init__(self, seed, pause=lambda: None):
        self.random = random.Random(seed)
        self.pause = pause
        self.checked = 0
        self.kinds = [self.function, self.loop, self.generator, self.delegation, self.instance, self.callback,
                      self.coroutine, self.exception, self.generated, self.comprehension, self.deep]  # fmt: skip

    def allocate(self):
        if self.random.random() < 0.3:
            self.pause()
        self.compare(bytearray(SIZE), walk())
        made = [bytes(SIZE), walk()]
        if self.random.random() < 0.3:
            self.pause()
        self.compare(*made)

    def compare(self, made, frames):
        found = heapledger.get_object_traceback(made)
        limit = heapledger.get_traceback_limit()
        expected = list(reversed(frames[:limit]))
        assert [(frame.filename, frame.lineno) for frame in found] == expected, (list(found), expected)
        self.checked += 1

    def step(self, depth):
        if depth <= 0 or self.random.random() < 0.2:
            self.allocate()
        else:
            self.random.choice(self.kinds)(depth - 1)

    def function(self, depth):
        self.step(depth)
        self.allocate()

    def loop(self, depth):
        for _ in range(self.random.randrange(3)):
            self.allocate()
            self.step(depth - 2)

    def yielding(self, depth):
        self.allocate()
        received = yield depth
        self.step(depth - 1)
        try:
            yield received
        finally:
            self.allocate()

    def generator(self, depth):
        made = self.yielding(depth)
        next(made)
        self.allocate()
        if self.random.random() < 0.5:
            made.send(1)
        made.close()

    def delegating(self, depth):
        yield from self.yielding(depth)
        self.allocate()

    def delegation(self, depth):
        for _ in self.delegating(depth):
            self.step(depth - 2)

    def instance(self, depth):
        program = self

        class Made:
            def __init__(self):
                program.step(depth)
                program.allocate()

        Made()

    def callback(self, depth):
        sorted([2, 1], key=lambda number: self.step(depth - 1) or number)

    async def awaited(self, depth):
        self.step(depth)
        return depth

    async def awaiting(self, depth):
        self.allocate()
        await self.awaited(depth)
        self.allocate()

    def coroutine(self, depth):
        try:
            self.awaiting(depth).send(None)
        except StopIteration:
            self.allocate()

    def exception(self, depth):
        try:
            self.step(depth)
            raise KeyError(depth)
        except KeyError:
            self.allocate()
        finally:
            self.allocate()

    def generated(self, depth):
        lines = "\n" * self.random.randrange(50)
        code = compile(lines + "program.step(depth - 1)\nprogram.allocate()", f"<made {depth}>", "exec")
        exec(code, {"program": self, "depth": depth})

    def comprehension(self, depth):
        return [self.step(depth - 2) for _ in range(2)]

    def deep(self, depth, more=15):
        if more:
            self.deep(depth, more - 1)
        else:
            self.step(depth - 1)


def check(seed, rounds=40, depth=6, pause=lambda: None):
    """How many tracebacks were compared; all were right."""
    program = Program(seed, pause)
    for _ in range(rounds):
        program.step(depth)
    assert program.checked > rounds
    return program.checked
