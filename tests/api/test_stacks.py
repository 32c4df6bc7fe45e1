"""The traceback of an object is the stack that made it, however the stack came to be: against a walk of the frames.

Random programs call down through functions of many shapes, far beyond the frame limit, allocate on some frames and not
on others, and return, so that frames die and others take their places, mostly with no allocation in between.
"""

import gc
import io
import pdb
import random
import sys
import threading
import types

import heapledger
import pytest


class Block:
    """No freelist, no cycle collector's business: each is allocated where it is made."""

    __slots__ = ("number",)


class Walker:
    def __init__(self, seed, limit, checks):
        self.dice = random.Random(seed)
        self.limit = limit
        self.checks = checks
        self.wrong = []

    def check(self):
        """Allocate here, and compare the traceback with the frames."""
        block, frame, found = Block(), sys._getframe(), []
        line = frame.f_lineno - 1
        while frame is not None and len(found) < self.limit:
            found.append((frame.f_code.co_filename, frame.f_lineno if found else line))
            frame = frame.f_back
        said = [(frame.filename, frame.lineno) for frame in reversed(heapledger.get_object_traceback(block))]
        if said != found:
            self.wrong.append((said, found))
        self.checks -= 1

    def go(self, depth):
        """One frame: a few steps, each of which goes deeper, allocates, or does both in some other way."""
        for _ in range(self.dice.choice((1, 1, 2, 3))):
            if self.checks <= 0:
                return
            if depth == 0 or self.dice.random() < 0.2:
                self.check()
            if depth > 0:
                self.dice.choice(WAYS)(self, depth - 1)

    def straight(self, depth):
        self.go(depth)

    def two_lines(self, depth):
        if self.dice.random() < 0.5:
            self.go(depth)
        else:
            self.go(depth)

    def many_locals(self, depth):
        a = b = c = d = e = f = g = h = depth
        self.go(depth)
        return a + b + c + d + e + f + g + h

    def through_c(self, depth):
        for _ in map(self.go, (depth,)):
            pass

    def sorting(self, depth):
        sorted((1,), key=lambda number: self.go(depth) or number)

    def generator(self, depth):
        for _ in self.steps(depth):
            self.go(depth // 2)

    def steps(self, depth):
        self.go(depth)
        yield 1
        if self.dice.random() < 0.5:
            self.check()
        yield 2

    def raising(self, depth):
        try:
            self.failing(depth)
        except LookupError:
            if self.dice.random() < 0.5:
                self.check()

    def failing(self, depth):
        self.go(depth)
        raise LookupError

    def nested(self, depth):
        def inner():
            if depth % 2:
                self.check()
            self.go(depth)

        inner()

    def a_class(self, depth):
        class Body:
            self.go(depth)

        return Body

    def executed(self, depth):
        exec("go(depth)", {"go": self.go, "depth": depth})


WAYS = [
    Walker.straight,
    Walker.two_lines,
    Walker.two_lines,
    Walker.many_locals,
    Walker.through_c,
    Walker.sorting,
    Walker.generator,
    Walker.raising,
    Walker.nested,
    Walker.a_class,
    Walker.executed,
]


def walk(walker):
    while walker.checks > 0 and not walker.wrong:
        try:
            walker.go(walker.dice.randrange(60))
        except LookupError:
            pass


@pytest.mark.parametrize("limit", [1, 2, 5, 25, 100])
@pytest.mark.parametrize("seed", range(3))
def test_random_calls(seed, limit):
    walker = Walker(seed, limit, 500)
    heapledger.start(limit)
    walk(walker)
    assert walker.wrong == []


def in_threads(walkers):
    threads = [threading.Thread(target=walk, args=(walker,)) for walker in walkers]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert all(walker.checks <= 0 for walker in walkers)


def test_threads():
    walkers = [Walker(seed, 25, 500) for seed in range(3)]
    heapledger.start(25)
    in_threads(walkers)
    assert [walker.wrong for walker in walkers] == [[]] * 3


def maker(name):
    """A new function that makes a block, with a file name by which the block is found in a snapshot."""

    def make():
        return Block()

    return types.FunctionType(make.__code__.replace(co_filename=name), globals())


class Counter(Walker):
    """Notes how deep stacks are. Calls end by exceptions, too, which leave in memory what a frame had on its stack."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.depths = {}
        self.kept = []  # a code object that dies makes the tracer forget more than we want it to

    def check(self):
        """A stack that was never seen before: its newest frame is that of a new function."""
        name = f"<{id(self)} {len(self.depths)}>"
        make = maker(name)
        self.kept.append((make, make()))
        frame, depth = sys._getframe(), 1
        while frame is not None:
            frame, depth = frame.f_back, depth + 1
        self.depths[name] = depth
        self.checks -= 1

    def go(self, depth):
        super().go(depth)
        if self.dice.random() < 0.05:
            raise LookupError


def totals():
    """What the tracer says of the stacks, by the file names of the newest frames."""
    tracebacks = [trace.traceback for trace in heapledger.take_snapshot().traces]
    return {traceback[-1].filename: traceback.total_nframe for traceback in tracebacks}


@pytest.mark.parametrize("limit", [1, 2, 25])
@pytest.mark.parametrize("seed", range(3))
def test_totals(seed, limit):
    walker = Counter(seed, limit, 2000)
    heapledger.start(limit)
    walk(walker)
    assert walker.depths.items() <= totals().items()


@pytest.mark.parametrize("limit", [2, 25, 3000])
def test_totals_of_stacks_deeper_than_what_is_kept_of_them(limit):
    counter = Counter(0, limit, 1000)

    def down(depth):
        if depth % 97 == 0:
            counter.check()
        if depth > 0:
            down(depth - 1)
        if depth % 89 == 0:
            counter.check()

    recursion = sys.getrecursionlimit()
    sys.setrecursionlimit(12_000)
    try:
        heapledger.start(limit)
        for depth in (9_000, 50, 9_000, 4_000):
            down(depth)
        assert counter.depths.items() <= totals().items()
    finally:
        sys.setrecursionlimit(recursion)


def test_totals_of_threads():
    walkers = [Counter(seed, 3, 1000) for seed in range(3)]
    heapledger.start(3)
    in_threads(walkers)
    found = totals().items()
    assert all(walker.depths.items() <= found for walker in walkers)


class Answer:
    """A number that allocates blocks of some sizes when somebody asks for it."""

    def __init__(self, number, sizes):
        self.number, self.sizes = number, sizes

    def __index__(self):
        self.blocks = tuple(map(bytes, self.sizes))
        return self.number


def test_a_frame_that_goes_on_where_it_has_called():
    """By way of C it stays at the instruction. With very many sites, the one that came next last time comes first."""
    source = "".join(f"def line{n}(size):\n    return bytes(size)\n" for n in range(1200))
    space = {}
    exec(compile(source, "<many>", "exec"), space)
    functions = [space[f"line{n}"] for n in range(1200)]

    def make_many():
        return [function(size) for function in functions for size in range(100, 200)]

    def ask(number, sizes):
        answer = Answer(number, sizes)
        return answer, bytes(answer)

    heapledger.start(25)
    here, kept = (__file__, ask.__code__.co_firstlineno + 2), []
    for last, sizes in ((5000, 2), (1000, 1)):
        for _ in range(3):
            many = make_many()
        for number in range(3000, 3100):
            kept.append(ask(number + last, (number, number + 1000)[:sizes]))
            newest = heapledger.get_object_traceback(kept[-1][1])[-1]
            assert (newest.filename, newest.lineno) == here
    del many


def test_a_frame_that_lives_on_while_its_callers_change():
    def make_blocks():
        while True:
            yield Block()

    def one_way():
        return next(blocks)

    def another_way():
        return next(blocks)

    heapledger.start(5)
    blocks = make_blocks()
    made = [one_way(), another_way(), one_way()]
    names = [heapledger.get_object_traceback(block)[-2].name.split(".")[-1] for block in made]
    assert names == ["one_way", "another_way", "one_way"]


class Jumper:
    """Sets the line of the frame that waits for it, once, and allocates before and after."""

    def __init__(self, code):
        self.code, self.blocks = code, []

    def act(self, frame):
        first = self.code.co_firstlineno
        if frame.f_code is self.code and frame.f_lineno == first + 2 and not self.blocks:
            self.blocks.append(Block())
            frame.f_lineno = first + 4
            self.blocks.append(Block())

    def lines(self):
        """Where the tracer saw the frame that jumped."""
        name = self.code.co_qualname
        frames = [frame for block in self.blocks for frame in heapledger.get_object_traceback(block)]
        return [frame.lineno - self.code.co_firstlineno for frame in frames if frame.name == name]


def by_settrace(jumper, function):
    def trace(frame, event, argument):
        if event == "line":
            jumper.act(frame)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)


def by_monitoring(jumper, function):
    monitoring = sys.monitoring
    monitoring.use_tool_id(monitoring.DEBUGGER_ID, "jumper")
    try:
        line = monitoring.events.LINE
        monitoring.register_callback(monitoring.DEBUGGER_ID, line, lambda code, line: jumper.act(sys._getframe(1)))
        monitoring.set_local_events(monitoring.DEBUGGER_ID, jumper.code, line)
        function()
    finally:
        monitoring.free_tool_id(monitoring.DEBUGGER_ID)


@pytest.mark.parametrize("debug", [by_settrace, by_monitoring])
def test_a_frame_that_is_moved_while_it_waits(debug):
    if debug is by_monitoring and sys.version_info < (3, 12):
        pytest.skip("no sys.monitoring before 3.12")
    made = []

    def jumps():
        made.append("first")
        made.append("left out")
        made.append("left out")
        made.append("last")

    jumper = Jumper(jumps.__code__)
    heapledger.start(25)
    debug(jumper, jumps)
    assert made == ["first", "last"]
    assert jumper.lines() == [2, 4]


@pytest.mark.parametrize("backend", ["settrace", "monitoring"])
def test_jumps_in_pdb(backend):
    options = {"backend": backend} if sys.version_info >= (3, 14) else {}
    if not options and backend != "settrace":
        pytest.skip("pdb has one backend before 3.14")
    blocks, made = [], []

    def stops():
        debugger.set_trace()
        made.append("first")
        made.append("left out")
        made.append("last")
        return blocks

    first = stops.__code__.co_firstlineno
    allocate = "!blocks.append(Block())"
    commands = [f"until {first + 3}", allocate, f"jump {first + 4}", allocate, "continue\n"]
    debugger = pdb.Pdb(
        stdin=io.StringIO("\n".join(commands)), stdout=io.StringIO(), nosigint=True, readrc=False, **options
    )
    heapledger.start(50)
    before = sys.gettrace()
    try:
        stops()
    finally:
        sys.settrace(before)
    assert made == ["first", "last"]
    frames = [frame for block in blocks for frame in heapledger.get_object_traceback(block)]
    found = [frame.lineno - first for frame in frames if frame.name == stops.__qualname__]
    assert found == [3, 4]


def test_local_variables_are_what_they_were():
    """A frame that was looked at answers questions for its variables like any other."""
    heapledger.start(5)

    def function(argument):
        block = Block()
        import json as module  # passes its locals on

        found = dict(locals())
        found["frame"] = dict(sys._getframe().f_locals)
        exec("made = argument", globals(), locals())
        return found, module, block

    found, module, block = function("value")
    assert found["argument"] == found["frame"]["argument"] == "value"
    assert found["block"] is block and found["module"] is module


def test_frames_that_are_kept():
    """A frame object outlives its frame, with variables and all."""
    heapledger.start(5)

    def function():
        block = Block()
        return sys._getframe(), block

    frame, block = function()
    assert frame.f_locals["block"] is block
    frame.clear()
    assert frame.f_locals == {}


def test_what_frames_refer_to():
    """docs/compat.md: where the mark on a frame can be seen."""

    def outlived():
        block = Block()
        return sys._getframe(), block

    untraced, _ = outlived()
    heapledger.start(2)
    traced, _ = outlived()
    marks = [gc.get_referents(frame).count(None) for frame in (untraced, traced)]
    assert marks == ([0, 1] if sys.version_info >= (3, 13) else [0, 0])
