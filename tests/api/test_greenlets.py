"""Greenlets switch in the middle of our functions: brackets around our own work end in any order."""

import pytest
from children import run

greenlet = pytest.importorskip("greenlet", reason="there is no wheel of greenlet for this interpreter")

PROGRAM = """
    import functools, sys
    import greenlet, heapledger
    kept = []

    def frames(depth):
        "Frames at the addresses of those that the greenlets had: what they allocate is the program's."
        if depth > 0:
            frames(depth - 1)
        kept.append(bytearray(10_000))

    def check():
        "In a greenlet of its own, whose frames are where those of one that has ended were."
        greenlet.greenlet(check_here).switch()

    def check_here():
        before = heapledger.get_traced_memory()[0]
        for _ in range(20):
            frames(25)
        grown = heapledger.get_traced_memory()[0] - before
        assert grown >= 20 * 26 * 10_000, grown
        assert all(heapledger.get_object_traceback(block) is not None for block in kept)
        kept.clear()
        assert heapledger._validate() is None and heapledger.lost_records() == 0
"""


def test_switches_inside_track_leaks():
    run(
        PROGRAM
        + """
    heapledger.start(10)
    main = greenlet.getcurrent()

    def work(depth):
        if depth > 0:
            return work(depth - 1)
        heapledger.track_leaks(main.switch, rounds=3, warmup=1)   # what the others leave behind is in there too

    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)):
        workers = [greenlet.greenlet(functools.partial(work, 3 * number)) for number in range(3)]
        for worker in workers:
            worker.switch()
        while workers:
            for number in order:
                if number < len(workers):
                    workers[number].switch()
            check()
            workers = [worker for worker in workers if not worker.dead]
    check()
    """
    )


def test_switches_inside_finalizers_and_callbacks():
    """Python code that our functions call switches away in the middle of them, and some never come back."""
    run(
        PROGRAM
        + """
    heapledger.start(10)
    main = greenlet.getcurrent()

    class Switches:
        def __index__(self):
            main.switch()
            return 1

    def ask(depth):
        if depth > 0:
            return ask(depth - 1)
        heapledger.Frame((Switches() and "a", 1))
        try:
            heapledger.take_snapshot().statistics("lineno")[Switches():]
            heapledger._get_traces()[Switches()]
            heapledger.start(Switches())
        except TypeError:
            pass

    left = []
    for number in range(40):
        one = greenlet.greenlet(functools.partial(ask, number % 7))
        one.switch()
        if number % 3:
            while not one.dead:
                one.switch()
        else:
            left.append(one)      # never goes on
        check()
    del left
    check()
    """
    )


def test_track_leaks_sees_what_c_functions_allocate():
    """They have no frame of their own: what they allocate is in the frame of track_leaks itself."""
    run("""
    import functools, heapledger
    kept = []
    leaks = heapledger.track_leaks(functools.partial(kept.extend, range(10**6, 10**6 + 100)), rounds=4)
    assert sum(blocks for _, blocks in leaks.rounds) >= 400, leaks.rounds
    assert leaks
    assert not heapledger.track_leaks(functools.partial(sorted, range(100)))
    """)


def test_gevent():
    pytest.importorskip("gevent", reason="there is no wheel of gevent for this interpreter")
    run("""
    from gevent import monkey
    monkey.patch_all()
    import gevent, heapledger
    heapledger.start(10)
    kept = []

    def leaking(number):
        def one():
            gevent.sleep(0.001 * (number % 3))
            kept.append(bytearray(100_000))
        return heapledger.track_leaks(one, rounds=5, warmup=0)

    jobs = [gevent.spawn(leaking, number) for number in range(10)]
    gevent.joinall(jobs, raise_error=True)
    assert len(kept) == 50
    assert all(heapledger.get_object_traceback(block) is not None for block in kept)
    before = heapledger.get_traced_memory()[0]
    assert before > 5_000_000, before
    kept.clear()
    assert before - heapledger.get_traced_memory()[0] > 5_000_000
    assert heapledger._validate() is None and heapledger.lost_records() == 0
    """)
