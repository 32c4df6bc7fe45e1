"""Threads without the GIL allocate in one and free in another, while all that can be done to the tracer is done."""

import os
import tempfile
import threading
import time

import heapledger
from common import CHURN_PLACE, Churn, choices, consistent, live, rounds, whole


def start():
    heapledger.start(choices.choice((1, 2, 25)))


def snapshot():
    if heapledger.is_tracing():
        consistent(heapledger.take_snapshot())


def peak():
    if heapledger.is_tracing():
        consistent(heapledger.take_peak_snapshot())


def capture():
    if heapledger.is_tracing():
        taken = heapledger.take_capture()
        for moment in (taken.live, taken.peak, taken.allocated):
            consistent(moment)


def dump():
    if heapledger.is_tracing():
        with tempfile.TemporaryDirectory() as folder:
            taken = heapledger.take_snapshot()
            taken.dump(os.path.join(folder, "file"))
            back = heapledger.Snapshot.load(os.path.join(folder, "file"))
            assert len(back.traces) == len(taken.traces)


def validate():
    whole()


def objects():
    """Objects of the GIL's domains meanwhile, in this thread."""
    return [[bytes(n), {"a": 1.5}] for n in range(300)]


ACTIONS = [start, heapledger.stop, heapledger.clear_traces, heapledger.reset_peak]
ACTIONS += [snapshot, peak, capture, dump, validate, validate, objects]


def several_at_once():
    """The same actions by three threads: starts, stops and clears that overlap."""
    ways = [start, heapledger.stop, heapledger.clear_traces, heapledger.reset_peak, validate]

    def act(actions):
        for action in actions:
            action()

    threads = [threading.Thread(target=act, args=(choices.sample(ways, 3),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measured(churn):
    """From a known beginning to a known end: what is alive is what the slots hold, and what was made was counted."""
    churn.free_all()
    if not heapledger.is_tracing() or choices.random() < 0.5:
        heapledger.stop()
        start()
    else:
        heapledger.clear_traces()
    before = churn.made
    churn.run()
    for _ in range(5):
        snapshot()
        objects()
        time.sleep(0.01)
    churn.rest()
    counts, places = live(Churn.SIZES)
    assert counts == churn.model(), (counts, churn.model())
    assert places == {CHURN_PLACE}, places
    ever, _ = live(Churn.SIZES, heapledger.take_allocation_snapshot())
    assert ever.total() == churn.made - before, (ever.total(), churn.made - before)
    consistent(heapledger.take_peak_snapshot(), heapledger.get_traced_memory()[1])
    whole()


def main():
    churn = Churn(3)
    for number in rounds():
        churn.hand_over(number % 2 == 0)
        churn.run()
        for action in choices.choices(ACTIONS, k=20):
            action()
        several_at_once()
        churn.rest()
        measured(churn)
    heapledger.stop()
    assert heapledger.get_traced_memory() == (0, 0)
    churn.free_all()
    churn.end()


if __name__ == "__main__":
    main()
