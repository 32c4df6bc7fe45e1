"""Generators and coroutines begun in one thread, advanced, thrown into and closed in others.

A generator's frame changes its caller with every step: a block it allocates is found under the line of the step, then
under that of whoever made the step.
"""

import gc
import queue
import sys
import threading

import heapledger
from common import choices, rounds, whole

HEADER = sys.getsizeof(b"")
SIZE = 5_700


class Stop(Exception):
    pass


def generator(kept):
    try:
        while True:
            kept.append((bytes(SIZE - HEADER), STEP))
            yield
    except Stop:
        kept.append((bytes(SIZE - HEADER), THROW))
        yield
    finally:
        kept.append((bytes(SIZE - HEADER), CLOSE))


def delegating(kept):
    yield from generator(kept)


async def coroutine(kept):
    await Awaitable(kept)


class Awaitable:
    def __init__(self, kept):
        self.kept = kept

    def __await__(self):
        return generator(self.kept)


first = generator.__code__.co_firstlineno
IN_GENERATOR = {"step": first + 3, "throw": first + 6, "close": first + 9}
STEP, THROW, CLOSE = "step", "throw", "close"


def step(one):
    one.send(None)


def throw(one):
    one.throw(Stop)


def close(one):
    one.close()


lines = {function.__name__: function.__code__.co_firstlineno + 1 for function in (step, throw, close)}
# The second step after a throw ends the generator, whatever step it is.
CALLERS = {STEP: {lines["step"]}, THROW: {lines["throw"]}, CLOSE: set(lines.values())}


def check(kept, limit):
    """The newest frame is the generator's line; the oldest frames lead over the one that made the step."""
    for block, what in kept:
        frames = list(heapledger.get_object_traceback(block))[::-1]
        assert frames[0].lineno == IN_GENERATOR[what], (what, frames)
        inner = [frame.lineno for frame in frames if frame.filename == __file__]
        if limit >= 4:
            assert set(inner) & CALLERS[what], (what, inner)


def worker(inbox, outbox, failures):
    try:
        while (one := inbox.get()) is not None:
            action = choices.choice((step, step, step, throw, close))
            try:
                action(one)
            except (Stop, StopIteration):
                continue
            if action is not close:
                outbox.put(one)
    except BaseException as error:
        failures.append(error)


def main():
    for _ in rounds():
        limit = choices.choice((1, 4, 25))
        heapledger.start(limit)
        kept, failures, box = [], [], queue.Queue()
        threads = [threading.Thread(target=worker, args=(box, box, failures)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(120):
            one = choices.choice((generator, delegating, coroutine))(kept)
            if number % 3:
                step(one)
                box.put(one)
            else:
                del one  # never begun
        for _ in threads:
            box.put(None)
        for thread in threads:
            thread.join()
        assert not failures, failures
        while not box.empty():
            one = box.get()
            if one is not None:
                close(one)
        del one
        gc.collect()
        check(kept, limit)
        whole()
        heapledger.stop()


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")  # coroutines that were never awaited
    main()
