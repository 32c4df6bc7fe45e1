"""Finalizers that allocate, take snapshots and stop the tracer, run by the collector in the middle of anything."""

import collections
import gc
import sys
import weakref

import heapledger
from common import choices, consistent, live, rounds, whole

HEADER = sys.getsizeof(b"")
SIZES = range(9_000, 9_010)
kept, ran = [], collections.Counter()
asking = False


def keep():
    kept.append(bytes(choices.choice(SIZES) - HEADER))
    if len(kept) > 500:
        del kept[: choices.randrange(400)]


def ask():
    """From inside a finalizer, which may be inside a function of ours."""
    global asking
    if asking or not heapledger.is_tracing():
        return
    asking = True
    way = choices.randrange(5)
    ran[way] += 1
    if way == 0:
        consistent(heapledger.take_snapshot())
    elif way == 1:
        heapledger.take_capture().live.compare_to(heapledger.take_peak_snapshot(), "lineno")
    elif way == 2:
        assert heapledger._validate() is None
    elif way == 3:
        heapledger._get_traces()
    else:
        heapledger.reset_peak()
    asking = False


def filters():
    """Code of the program in the middle of filter_traces()."""
    keep()
    yield heapledger.Filter(True, "*")


class Cycle:
    def __init__(self):
        self.me = self
        self.load = [bytearray(choices.randrange(300))]
        weakref.finalize(self, keep)

    def __del__(self):
        keep()
        if choices.random() < 0.02:
            ask()


def main():
    gc.set_threshold(choices.choice((5, 50, 300)), 2, 2)
    for number in rounds(least=2):
        heapledger.stop()
        heapledger.start(choices.choice((1, 3, 25)))
        kept.clear()
        for _ in range(200):
            Cycle()
            if choices.random() < 0.1:
                heapledger.take_snapshot().statistics("traceback")
            if choices.random() < 0.05:
                heapledger.get_object_traceback(kept)
                heapledger.take_snapshot().filter_traces(filters())
        gc.collect()
        snapshot = heapledger.take_snapshot()  # may run finalizers: only the one that is compared counts
        gc.disable()
        snapshot = heapledger.take_snapshot()
        counts, places = live(SIZES, snapshot)
        model = collections.Counter(len(block) + HEADER for block in kept)
        gc.enable()
        assert counts == model, (number, counts - model, model - counts)
        assert len(places) == 1, places
        whole()
    gc.collect()
    kept.append(Cycle())  # for the interpreter's end
    assert len(ran) >= 3, ran


if __name__ == "__main__":
    main()
