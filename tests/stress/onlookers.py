"""For stacks.py: trace, profile and monitoring functions that allocate themselves."""

import contextlib
import functools
import random
import sys
import threading

from walks import check

monitoring = getattr(sys, "monitoring", None)
TOOL = 4
_only_one = threading.Lock()


class Onlookers:
    """Kinds of frames for a random_stacks.Program."""

    def onlookers(self):
        return [self.traced, self.profiled, *([self.monitored] if monitoring else [])]

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
