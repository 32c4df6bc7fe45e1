"""Other tools in the process: whatever they do to allocators, references, frames and stacks, tracebacks are right.

Each test has a child of its own, in which random_stacks compares tracebacks with walks by sys._getframe.
"""

import sys
import textwrap

import pytest
from beside import LIMITS, beside, needs


@pytest.mark.parametrize("limit", LIMITS)
def test_alone(limit):
    """The program itself, so that a failure beside another tool can be told from one without."""
    beside("heapledger.start(limit); random_stacks.check(1); random_stacks.check(2)", limit=limit)


# The reference tracer


@pytest.mark.skipif(sys.version_info < (3, 13), reason="no reference tracer before 3.13")
@pytest.mark.parametrize("first", [False, True])
def test_reference_tracer(companion, first):
    """The one slot that there is for tracers of references is left to others."""
    beside(
        """
        import companion
        if sys.argv[4] == "True":
            companion.set_tracer()
        heapledger.start(limit)
        if sys.argv[4] == "False":
            companion.set_tracer()
        def told_of_objects():
            created, destroyed = companion.tracer_calls()
            for number in range(50):
                [float(str(number)), {}]
            return companion.tracer_calls()[0] - created >= 100 and companion.tracer_calls()[1] - destroyed >= 100
        assert told_of_objects()
        random_stacks.check(5)
        heapledger.take_snapshot()
        assert companion.tracer_is_on_top()
        heapledger.stop()
        assert companion.tracer_is_on_top() and told_of_objects()
        """,
        str(first),
        folder=companion,
    )


# Frame evaluation, the JIT


@pytest.mark.parametrize("limit", LIMITS)
def test_frame_evaluator(companion, limit):
    """Debuggers and compilers evaluate frames themselves (PEP 523): each call is then a call in C, too."""
    beside(
        """
        import companion
        heapledger.start(limit)
        for seed in range(4):
            companion.set_evaluator(seed % 2)
            random_stacks.check(seed)
        assert companion.set_evaluator(False) > 1000
        """,
        folder=companion,
        limit=limit,
    )


@pytest.mark.skipif(
    not (hasattr(sys, "_jit") and sys._jit.is_available()), reason="this interpreter was built without a JIT"
)
@pytest.mark.parametrize("limit", LIMITS)
def test_jit(limit):
    """Machine code made at run time keeps frames and instruction pointers only as far as it must."""
    beside(
        """
        assert sys._jit.is_enabled()
        heapledger.start(limit)
        for _ in range(3):
            random_stacks.check(7, rounds=60)   # the same again and again, until it is hot
        def hot(number):
            for turn in range(number):
                made = bytes(3000); line = sys._getframe().f_lineno
                if turn % 100 == 0:
                    assert heapledger.get_object_traceback(made)[-1].lineno == line
        hot(20_000)
        """,
        limit=limit,
        PYTHON_JIT="1",
    )


# Profilers and tracers

WATCHERS = {
    "setprofile": """
        def watch(frame, event, argument):
            seen.append(bytes(100))
            del seen[:-10]
        sys.setprofile(watch)
    """,
    "settrace": """
        def watch(frame, event, argument):
            seen.append([frame.f_lineno, event])
            del seen[:-10]
            frame.f_trace_opcodes = len(seen) % 2 == 0
            return watch
        sys.settrace(watch)
    """,
    "monitoring": """
        events = sys.monitoring.events
        sys.monitoring.use_tool_id(3, "test")
        wanted = [events.PY_START, events.PY_RETURN, events.LINE, events.INSTRUCTION, events.CALL]
        for event in wanted:
            sys.monitoring.register_callback(3, event, lambda *arguments: seen.append(bytes(100)))
        sys.monitoring.set_events(3, sum(wanted))
    """,
    "cProfile": """
        import cProfile
        profile = cProfile.Profile()
        profile.enable()
        seen.append(profile)
    """,
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("watcher", WATCHERS)
def test_profilers_and_tracers(watcher, limit):
    """Callbacks run between a frame's instructions, which are rewritten for them."""
    if watcher == "monitoring" and sys.version_info < (3, 12):
        pytest.skip("no sys.monitoring before 3.12")
    before = "heapledger.start(limit)\nrandom_stacks.check(8, rounds=10)\nseen = []\n"
    after = "random_stacks.check(9, rounds=15)\nassert seen\n"
    beside(before + textwrap.dedent(WATCHERS[watcher]) + after, limit=limit)


@needs("coverage")
@pytest.mark.parametrize("core", ["ctrace", "pytrace", "sysmon"])
def test_coverage(core, tmp_path):
    if core == "sysmon" and sys.version_info < (3, 12):
        pytest.skip("no sys.monitoring before 3.12")
    beside(
        """
        import coverage
        heapledger.start(limit)
        measured = coverage.Coverage(data_file=None, config_file=False)
        measured.start()
        import colorsys
        colorsys.rgb_to_hsv(1, 2, 3)
        random_stacks.check(10, rounds=15)
        measured.stop()
        lines = measured.get_data().lines(random_stacks.__file__)
        assert len(lines) > 50, lines
        """,
        COVERAGE_CORE=core,
    )


@needs("debugpy")
def test_debugger():
    """debugpy in the process, tracing this thread, with nobody connected."""
    beside(
        """
        import debugpy
        heapledger.start(limit)
        debugpy.listen(("127.0.0.1", 0), in_process_debug_adapter=True)
        debugpy.trace_this_thread(True)
        random_stacks.check(11, rounds=15)
        import os
        consistent()
        os._exit(0)  # the adapter's threads would keep the process waiting
        """
    )


@needs("sentry_sdk")
@pytest.mark.parametrize("profiler", ["of transactions", "continuous"])
def test_sentry(profiler):
    """A thread that looks at all threads' frames a hundred times a second, and keeps what it finds."""
    beside(
        """
        import sentry_sdk, threading, time
        sent = set()
        class Transport(sentry_sdk.transport.Transport):
            def capture_envelope(self, envelope):
                sent.update(item.type for item in envelope.items)
        rate = "profiles_sample_rate" if sys.argv[4] == "of transactions" else "profile_session_sample_rate"
        heapledger.start(limit)
        sentry_sdk.init("http://key@127.0.0.1:9/1", transport=Transport, traces_sample_rate=1.0, **{rate: 1.0},
                        default_integrations=False, auto_enabling_integrations=False)
        if sys.argv[4] == "continuous":
            sentry_sdk.profiler.start_profiler()
        other = threading.Thread(target=random_stacks.check, args=(14, 10))
        other.start()
        with sentry_sdk.start_transaction(name="work"):
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                random_stacks.check(13, rounds=3)
        other.join()
        if sys.argv[4] == "continuous":
            sentry_sdk.profiler.stop_profiler()
        sentry_sdk.flush(2)
        assert sent & {"profile", "profile_chunk"}, sent
        """,
        profiler,
    )


# Stacks that are switched


@needs("greenlet")
@pytest.mark.parametrize("limit", [1, 3, 12])
def test_greenlets(limit):
    """Greenlets copy the C stack and exchange the chain of frames at any moment, in several threads."""
    beside(
        """
        import functools, greenlet, random, threading
        heapledger.start(limit)

        def many(seed):
            source = random.Random(seed)
            running, problems, finished = [], [], []
            main = greenlet.getcurrent()
            def pause():
                # Looking at a sleeper's frames makes greenlet rewrite their links.
                other = source.choice(running)
                if other.gr_frame is not None and source.random() < 0.3:
                    other.gr_frame.f_back
                if source.random() < 0.1:
                    main.switch()
                elif not other.dead:
                    other.switch()
            def work(number):
                try:
                    finished.append(random_stacks.check(number, rounds=6, pause=pause))
                except BaseException as error:
                    problems.append(error)
                    raise
            running.extend(greenlet.greenlet(functools.partial(work, seed + number)) for number in range(6))
            while not problems and not all(one.dead for one in running):
                source.choice([one for one in running if not one.dead]).switch()
            assert len(finished) == 6, (finished, problems)

        many(0)
        threads = [threading.Thread(target=many, args=(number,)) for number in (100, 200)]
        failed = []
        threading.excepthook = lambda details: failed.append(details.exc_value)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed, failed
        """,
        limit=limit,
    )


@needs("gevent")
@pytest.mark.parametrize("limit", LIMITS)
def test_gevent(limit):
    """A loop of gevent that switches at every pause, with the standard library patched."""
    beside(
        """
        from gevent import monkey
        monkey.patch_all()
        import gevent, random, threading, time
        heapledger.start(limit)
        source = random.Random(1)
        def pause():
            gevent.sleep(0 if source.random() < 0.9 else 0.001)
        jobs = [gevent.spawn(random_stacks.check, seed, rounds=5, pause=pause) for seed in range(8)]
        patched = threading.Thread(target=random_stacks.check, args=(50, 5), kwargs={"pause": lambda: time.sleep(0)})
        patched.start()
        real = gevent.get_hub().threadpool.spawn(random_stacks.check, 60, rounds=5)
        gevent.joinall(jobs, raise_error=True)
        patched.join()
        assert real.get() > 5
        """,
        limit=limit,
    )


@needs("eventlet")
@pytest.mark.parametrize("limit", LIMITS)
def test_eventlet(limit):
    """Its hub, its pool of greenlets and its pool of real threads, with the standard library patched."""
    beside(
        """
        import eventlet
        eventlet.monkey_patch()
        import eventlet.tpool, random, threading, time
        heapledger.start(limit)
        source = random.Random(1)
        def pause():
            eventlet.sleep(0 if source.random() < 0.9 else 0.001)
        pool = eventlet.GreenPool(8)
        jobs = [pool.spawn(random_stacks.check, seed, rounds=5, pause=pause) for seed in range(8)]
        patched = threading.Thread(target=random_stacks.check, args=(50, 5), kwargs={"pause": lambda: time.sleep(0)})
        patched.start()
        assert eventlet.tpool.execute(random_stacks.check, 60, rounds=5) > 5
        assert all(job.wait() > 5 for job in jobs)
        patched.join()
        """,
        limit=limit,
    )
