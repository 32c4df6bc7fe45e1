"""heapledger.trace() and track_leaks(): to the block, nested and overlapping, and the program's own peak untouched."""

import asyncio
import contextlib
import functools
import gc
import inspect
import random
import threading

import heapledger
import pytest
from children import run
from histories import HEADER, Player, blocks_in, compare, line_of, replay, size_of, total, write_history
from tracing import line

MILLION = 10**6


def sizes_at(snapshot, lineno):
    here = heapledger.Frame((__file__, lineno))
    return sorted(trace.size for trace in snapshot.traces if trace.traceback[-1] == here and trace.size >= 1000)


def tuples(snapshot):
    return sorted(snapshot.traces._traces)


def nothing(*snapshots):
    return all(tuples(snapshot) == [] for snapshot in snapshots)


# One trace


@pytest.mark.parametrize("tracing", [False, True])
def test_an_empty_block(tracing):
    with heapledger.trace():
        pass  # after a debugger was there, the interpreter prepares code anew when it runs next, ours too
    if tracing:
        heapledger.start(3)
    for _ in range(3):
        with heapledger.trace(5) as t:
            pass
        assert (tuples(t.allocated), tuples(t.leaked)) == ([], [])
        assert tuples(t.peak) == tuples(t.start)
        assert heapledger.is_tracing() == tracing
        assert t.peak.traceback_limit == (3 if tracing else 5)


@pytest.mark.parametrize("tracing", [False, True])
def test_what_is_made_in_a_block(tracing):
    older = bytes(2 * MILLION)
    if tracing:
        heapledger.start()
        older = bytes(2 * MILLION)
    smaller, larger = 1000, 3 * MILLION
    made = line() + 2
    with heapledger.trace() as t:
        kept = b"0" * MILLION  # bytes() would have a tuple of arguments, too
        passing = b"0" * larger
        del passing
        small = b"0" * smaller
    passed, last = made + 1, made + 3
    assert sizes_at(t.start, made) == []
    assert (sizes_at(t.peak, made), sizes_at(t.peak, passed)) == ([MILLION + HEADER], [3 * MILLION + HEADER])
    assert sizes_at(t.peak, last) == []
    assert [size for _, size, _, _ in tuples(t.allocated)] == [1000 + HEADER, MILLION + HEADER, 3 * MILLION + HEADER]
    assert [size for _, size, _, _ in tuples(t.leaked)] == [1000 + HEADER, MILLION + HEADER]
    assert (2 * MILLION + HEADER in [size for _, size, _, _ in tuples(t.start)]) == tracing
    # Where the interpreter makes a bound method of __enter__, that is alive at the start, and nowhere else.
    assert 4 * MILLION + 2 * HEADER - (total(t.peak) - total(t.start)) in ((0, 64, 72) if tracing else (0,))
    assert t.peak.compare_to(t.start, "lineno")[0].size_diff == 3 * MILLION + HEADER
    del kept, older, small


def test_what_is_freed_in_a_block_is_no_negative_leak():
    heapledger.start()
    older = [bytes(1000) for _ in range(10)]
    made = line() + 3
    with heapledger.trace() as t:
        older.clear()
        block = bytes(5000)
    assert [size for _, size, _, _ in tuples(t.leaked)] == [5000 + HEADER]
    assert sizes_at(t.leaked, made) == [5000 + HEADER]
    assert total(t.peak) == total(t.start)  # never higher than at the start
    del block


def test_ends_by_an_exception_and_runs_again():
    reports = []
    t = heapledger.trace(report=reports.append)
    with pytest.raises(KeyError):
        with t:
            block = bytes(5000)
            raise KeyError
    assert not heapledger.is_tracing() and reports == []
    assert 5000 + HEADER in [size for _, size, _, _ in tuples(t.leaked)]
    with t:
        pass
    assert nothing(t.leaked) and reports == [t]
    del block


def test_states_and_their_messages():
    t = heapledger.trace()
    assert "has not run yet" in repr(t)
    with pytest.raises(RuntimeError, match="has not run yet"):
        t.start  # noqa: B018
    with t:
        assert tuples(t.start) == [] and "is still running" in repr(t)
        with pytest.raises(RuntimeError, match="is still running"):
            t.peak  # noqa: B018
        with pytest.raises(RuntimeError, match="running already"):
            t.__enter__()
    assert "allocated" in repr(t)
    with t:
        heapledger.stop()
    for name in ("peak", "allocated", "leaked"):
        with pytest.raises(RuntimeError, match="tracing was stopped"):
            getattr(t, name)
    assert "tracing was stopped" in repr(t)
    with pytest.raises(AttributeError):
        t.peak = None
    for wrong in (0, -1, 65536, 2**70):
        with pytest.raises((ValueError, OverflowError)):
            heapledger.trace(wrong).__enter__()
    with pytest.raises(TypeError):
        heapledger.trace("1").__enter__()
    with pytest.raises(TypeError, match="report"):
        heapledger.trace(report=1)
    assert not heapledger.is_tracing()


def test_who_starts_and_who_stops():
    with heapledger.trace(7) as t:
        assert heapledger.get_traceback_limit() == 7
        heapledger.start(2)  # the program wants it on; too late for another limit
    assert heapledger.is_tracing() and heapledger.get_traceback_limit() == 7
    with heapledger.trace(3):
        pass
    assert heapledger.is_tracing()
    heapledger.stop()
    first, second = heapledger.trace(), heapledger.trace()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert heapledger.is_tracing()  # the second goes on
    block = bytes(5000)
    second.__exit__(None, None, None)
    assert not heapledger.is_tracing()
    assert nothing(first.allocated) and len(second.leaked.traces) == 1
    abandoned = heapledger.trace()
    abandoned.__enter__()
    del abandoned
    gc.collect()
    assert not heapledger.is_tracing()
    del block, t


def test_clear_traces_inside():
    """What was forgotten does not count; the rest does, and nothing is compared with what is no more."""
    heapledger.start()
    with heapledger.trace() as t:
        first = bytes(2 * MILLION)
        heapledger.clear_traces()
        second = bytes(MILLION)
        made = line() - 1
    assert sizes_at(t.leaked, made) == sizes_at(t.allocated, made) == sizes_at(t.peak, made) == [MILLION + HEADER]
    assert total(t.peak) < 2 * MILLION
    del first, second


# Several traces, and the program's own peak


def test_the_peak_of_the_program_survives():
    heapledger.start()
    block = bytes(3 * MILLION)
    high = line() - 1
    del block
    before = heapledger.get_traced_memory()[1], tuples(heapledger.take_peak_snapshot())
    with heapledger.trace() as t:
        block = bytes(MILLION)
        low = line() - 1
        del block
        assert heapledger.get_traced_memory()[1] == before[0]
    assert (heapledger.get_traced_memory()[1], tuples(heapledger.take_peak_snapshot())) == before
    assert sizes_at(heapledger.take_peak_snapshot(), high) == [3 * MILLION + HEADER]
    assert tuples(heapledger.take_capture().peak) == before[1]
    assert sizes_at(t.peak, low) == [MILLION + HEADER] and sizes_at(t.peak, high) == []
    with heapledger.trace() as t:
        block = bytes(4 * MILLION)
        higher = line() - 1
        del block
        heapledger.reset_peak()
        assert heapledger.get_traced_memory()[1] < MILLION
    assert sizes_at(t.peak, higher) == [4 * MILLION + HEADER]  # the program's reset is not the trace's
    assert heapledger.get_traced_memory()[1] < MILLION


def test_an_inner_trace_leaves_no_trace_in_the_outer():
    made = line() + 2
    with heapledger.trace() as outer:
        with heapledger.trace() as inner:
            pass
    # The interpreter's bound methods __enter__ and __exit__, on the line of the with statement, and gone by now.
    assert nothing(outer.leaked, inner.allocated)
    assert {trace.traceback[-1].lineno for trace in outer.allocated.traces} <= {made}
    assert len(outer.allocated.traces) <= 2


class Traces:
    """A history of blocks, with traces that begin and end at random places of it, in any order."""

    def __init__(self, source, history):
        self.plan = {}
        self.found = []
        for _ in range(8):
            first, last = sorted(source.sample(range(len(history)), 2))
            one = (heapledger.trace(), first, last)
            self.plan.setdefault(first, []).append((one[0].__enter__, ()))
            self.plan.setdefault(last, []).append((one[0].__exit__, (None, None, None)))
            self.found.append(one)

    def at(self, place):
        for call, arguments in self.plan.get(place, ()):
            call(*arguments)


def counts(numbers):
    return {(line_of(number), size_of(number)): count for number, count in numbers.items() if count > 0}


def expected(history, first, last):
    """What a trace from before event `first` to before event `last` must find: start, peak, allocated, leaked."""
    moments, _, made = replay(history[:last])
    start = replay(history[:first])[0][-1] if first else frozenset()
    made_before = replay(history[:first])[2]
    cleared = any(event[0] == "clear" for event in history[first:last])
    inside = moments if cleared else moments[len(moments) - 1 - (last - first) :]
    peak = max(inside, key=lambda alive: sum(map(size_of, alive)))
    allocated = made if cleared else made - made_before
    grown = moments[-1] if cleared else moments[-1] - start
    return [counts(dict.fromkeys(numbers, 1)) for numbers in (start, peak)] + [
        counts(allocated),
        counts(dict.fromkeys(grown, 1)),
    ]


@pytest.mark.parametrize("seed", range(6))
def test_random_histories(seed):
    """Traces in any order; and the program's own peak is right at each look, whatever they do meanwhile."""
    source = random.Random(seed)
    history = write_history(source, 250, clears=seed % 2 == 0)
    player, traces = Player(), Traces(source, history)
    heapledger.start(2)
    for place, event in enumerate(history):
        traces.at(place)
        player.play(event)
    heapledger.stop()
    for t, first, last in traces.found:
        found = [blocks_in(snapshot) for snapshot in (t.start, t.peak, t.allocated, t.leaked)]
        assert found == expected(history, first, last), (seed, first, last)
    compare(history, player.looks)


def test_threads_count_too():
    ready, go = threading.Event(), threading.Event()
    kept = []

    def work():
        ready.set()
        go.wait(30)
        kept.append(bytes(MILLION))

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(30)
    with heapledger.trace() as t:
        go.set()
        thread.join(30)
    assert sizes_at(t.leaked, work.__code__.co_firstlineno + 3) == [MILLION + HEADER]


def test_traces_in_many_threads():
    """Each finds its own blocks at the least; nobody's trace ends with another's."""
    kept, wrong = [], []

    def work(number):
        for round_ in range(20):
            with heapledger.trace() as t:
                mine = bytes(MILLION + number)
                kept.append(mine)
            if MILLION + number + HEADER not in {trace.size for trace in t.leaked.traces}:
                wrong.append((number, round_))
            kept.remove(mine)
            del mine  # or the next round would free it, and not have grown

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == [] and not heapledger.is_tracing()


def test_fork_inside():
    """The child's trace goes on in the child, the parent's in the parent."""
    run("""
        import os, heapledger

        with heapledger.trace() as t:
            first = bytes(10**6)
            child = os.fork()
            second = bytes(2 * 10**6 if child else 3 * 10**6)
        sizes = sorted(trace.size // 10**6 for trace in t.leaked.traces if trace.size > 10**6)
        assert sizes == ([1, 2] if child else [1, 3]), sizes
        if child:
            assert os.waitpid(child, 0)[1] == 0
    """)


def test_a_trace_that_never_ends():
    run("""
        import heapledger

        t = heapledger.trace()
        t.__enter__()
        kept = bytes(10**6)
    """)


# Decorated functions


def test_decorated_function():
    reports = []

    @heapledger.trace(2, report=reports.append)
    def make(size, *, twice=False):
        """Makes blocks."""
        return [bytes(size) for _ in range(1 + twice)]

    assert make.__name__ == "make" and make.__doc__ == "Makes blocks." and make.last is None
    first = make(MILLION)
    assert make.last is reports[0]
    second = make(2 * MILLION, twice=True)
    assert len(first) == 1 and len(second) == 2 and not heapledger.is_tracing()
    made = make.__wrapped__.__code__.co_firstlineno + 3
    assert [sizes_at(t.leaked, made) for t in reports] == [[MILLION + HEADER], [2 * MILLION + HEADER] * 2]


def test_decorated_function_that_calls_itself():
    reports = []

    @heapledger.trace(report=reports.append)
    def descend(depth):
        block = bytes(MILLION)
        if depth:
            descend(depth - 1)
        return len(block)

    descend(2)
    made = descend.__wrapped__.__code__.co_firstlineno + 2
    # Innermost first: each has its own blocks above those that were there.
    assert [len(sizes_at(t.allocated, made)) for t in reports] == [1, 2, 3]
    assert [len(sizes_at(t.peak, made)) for t in reports] == [3, 3, 3]
    assert [len(sizes_at(t.start, made)) for t in reports] == [2, 1, 0]


def test_decorated_coroutines():
    kept, reports = [], []

    @heapledger.trace(report=reports.append)
    async def work(size):
        kept.append(bytes(size))
        await asyncio.sleep(0.01)
        return size

    async def both():
        return await asyncio.gather(work(MILLION), work(2 * MILLION))

    assert asyncio.run(both()) == [MILLION, 2 * MILLION]
    made = work.__wrapped__.__code__.co_firstlineno + 2
    # The first began before the second block was made, and ended later: both count.
    assert [sizes_at(t.leaked, made) for t in reports] == [
        [MILLION + HEADER, 2 * MILLION + HEADER],
        [2 * MILLION + HEADER],
    ]
    assert inspect.iscoroutinefunction(work) and not heapledger.is_tracing()


def test_generators_are_refused():
    def generator():
        yield

    async def asynchronous():
        yield

    for function in (generator, asynchronous):
        with pytest.raises(TypeError, match="generator"):
            heapledger.trace()(function)


# Leaks


def test_track_leaks():
    kept, cache = [], {}

    def leak():
        cache.setdefault("once", bytes(5000))
        kept.append(bytes(3000))
        return bytes(4000)

    made = line() - 3
    leaks = heapledger.track_leaks(leak, rounds=5)
    assert leaks and len(leaks.rounds) == 5 and len(kept) == 7
    assert sizes_at(leaks.leaked, made) == [3000 + HEADER] * 5
    assert all(size >= 3000 + HEADER for size, _ in leaks.rounds)
    assert "5 rounds" in repr(leaks)
    assert not heapledger.is_tracing()


def test_functions_that_a_call_does_not_run():
    async def coroutine():
        never_run.append(1)

    def generator():
        yield never_run.append(1)

    async def both():
        yield never_run.append(1)

    never_run = []
    for function in (coroutine, generator, both, functools.partial(coroutine)):
        with pytest.raises(TypeError, match="does not run it"):
            heapledger.track_leaks(function)
    assert not never_run


def test_a_decorator_without_parentheses():
    with pytest.raises(TypeError, match=r"@heapledger.trace\(\), with parentheses"):

        @heapledger.trace
        def function():
            pass


def test_track_leaks_finds_none_where_there_are_none():
    cache = {}

    def clean():
        cache.setdefault("once", bytes(5000))
        cycle = [bytes(3000)]
        cycle.append(cycle)

    leaks = heapledger.track_leaks(clean, rounds=4)
    assert not leaks and leaks.rounds == ((0, 0),) * 4
    assert heapledger.track_leaks(clean, rounds=1, warmup=0, nframe=1).rounds == ((0, 0),)
    for arguments in ({"rounds": 0}, {"warmup": -1}):
        with pytest.raises(ValueError):
            heapledger.track_leaks(clean, **arguments)
    with contextlib.suppress(ZeroDivisionError):
        heapledger.track_leaks(lambda: 1 / 0)
    assert not heapledger.is_tracing()
