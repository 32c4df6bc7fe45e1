"""For stacks.py: trace, profile and monitoring functions that allocate themselves and move frames."""

import contextlib
import functools
import random
import sys
import threading

from walks import check, leaf

monitoring = getattr(sys, "monitoring", None)
TOOL = 4
_only_one = threading.Lock()


class Onlookers:
    """Kinds of frames for a random_stacks.Program."""

    def onlookers(self):
        kinds = [self.traced, self.profiled, self.jumping]
        return kinds + [self.monitored, self.monitored_jump] if monitoring else kinds

    def traced(self, depth):
        before = sys.gettrace()

        def tracer(frame, event, argument):
            if self.random.random() < 0.05:
                check()
            frame.f_trace_opcodes = self.random.random() < 0.2
            return tracer if self.random.random() < 0.9 else None

        sys.settrace(tracer)
        try:
            self.step(depth - 1)
        finally:
            sys.settrace(before)
        self.allocate()

    def profiled(self, depth):
        before = sys.getprofile()

        def profiler(frame, event, argument):
            if self.random.random() < 0.05:
                check()

        sys.setprofile(profiler)
        try:
            self.step(depth - 1)
        finally:
            sys.setprofile(before)

    def straight(self, depth):
        self.allocate()
        self.step(depth - 2)
        self.allocate()
        leaf()
        self.allocate()

    def straight_generator(self, depth):
        self.allocate()
        yield
        self.allocate()
        yield
        self.allocate()

    def mover(self):
        """A function that moves frames of the two above to other lines, a few times, and allocates before and after.
        While the trace function still runs, the frame below it is at its new line already.
        """
        left = 6

        def move(frame):
            nonlocal left
            code = frame.f_code
            if code not in STRAIGHT or not left or self.random.random() < 0.5:
                return
            left -= 1
            check()
            with contextlib.suppress(ValueError):  # this line cannot be left
                frame.f_lineno = code.co_firstlineno + self.random.randrange(1, 6)
            check()

        return move

    def run_straight(self, depth):
        self.straight(depth)
        for _ in self.straight_generator(depth):
            self.allocate()

    def jumping(self, depth):
        before, move = sys.gettrace(), self.mover()

        def tracer(frame, event, argument):
            if event == "line":
                move(frame)
            return tracer

        sys.settrace(tracer)
        try:
            self.run_straight(depth)
        finally:
            sys.settrace(before)

    @contextlib.contextmanager
    def monitor(self, events, callback):
        """Call the callback for these events, in all threads; do nothing if another thread monitors already."""
        if not _only_one.acquire(blocking=False):
            yield
            return
        try:
            monitoring.use_tool_id(TOOL, "stacks")
            for event in events:
                monitoring.register_callback(TOOL, event, callback)
            monitoring.set_events(TOOL, functools.reduce(int.__or__, events))
            yield
        finally:
            monitoring.set_events(TOOL, 0)
            for event in events:
                monitoring.register_callback(TOOL, event, None)
            monitoring.free_tool_id(TOOL)
            _only_one.release()

    def monitored(self, depth):
        names = monitoring.events
        everywhere = [names.PY_START, names.PY_RESUME, names.PY_RETURN, names.PY_YIELD, names.LINE, names.CALL,
                      names.INSTRUCTION, names.JUMP]  # fmt: skip
        source = random.Random(self.random.random())  # called in other threads, too

        def callback(*arguments):
            if source.random() < 0.02:
                check()
            return monitoring.DISABLE if source.random() < 0.1 else None

        with self.monitor(self.random.sample(everywhere, 3), callback):
            self.step(depth - 1)
        monitoring.restart_events()

    def monitored_jump(self, depth):
        move, mine = self.mover(), threading.get_ident()

        def callback(code, line):
            if threading.get_ident() == mine:
                move(sys._getframe(1))

        with self.monitor([monitoring.events.LINE], callback):
            self.run_straight(depth)


STRAIGHT = {Onlookers.straight.__code__, Onlookers.straight_generator.__code__}
