"""Signals at any instruction, inside the hooks too: handlers allocate and take snapshots, waits are interrupted."""

import collections
import faulthandler
import os
import signal
import sys
import threading

import heapledger
from common import CHURN_PLACE, Churn, choices, live, rounds, whole

HEADER = sys.getsizeof(b"")
SIZES = range(8_000, 8_010)
kept, handled = [], collections.Counter()


def on_timer(number, frame):
    handled["timer"] += 1
    kept.append(bytes(choices.choice(SIZES) - HEADER))
    if len(kept) > 300:
        del kept[choices.randrange(300)]
    if handled["timer"] % 20 == 0:
        heapledger.take_snapshot()
    if handled["timer"] % 50 == 0:
        heapledger.reset_peak()


def on_user(number, frame):
    handled["user"] += 1


def send(churn, stop):
    """Signals to the threads that wait for the gate: what they wait in returns early."""
    targets = [thread.ident for thread in churn.threads] + [threading.main_thread().ident]
    source = iter(range(10**9))
    while not stop.wait(0.0005):
        target = targets[next(source) % len(targets)]
        signal.pthread_kill(target, signal.SIGUSR1)
        signal.pthread_kill(target, signal.SIGUSR2)


def main():
    signal.signal(signal.SIGALRM, on_timer)
    signal.signal(signal.SIGUSR1, on_user)
    nowhere = open(os.devnull, "w")
    faulthandler.register(signal.SIGUSR2, file=nowhere, all_threads=False)
    churn, stop = Churn(3), threading.Event()
    sender = threading.Thread(target=send, args=(churn, stop))
    sender.start()
    heapledger.start(3)
    for _ in rounds():
        signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
        churn.run()
        for _ in range(10):
            passing = [[bytes(n), {"a": 1.5}] for n in range(300)]
            del passing
            heapledger.take_snapshot()
        churn.rest()
        signal.setitimer(signal.ITIMER_REAL, 0)
        counts, places = live(SIZES)
        assert counts == collections.Counter(len(block) + HEADER for block in kept), counts
        assert len(places) == 1 and all(name == __file__ for name, _ in places), places
        counts, places = live(Churn.SIZES)
        model = churn.model()
        churn.free_all()
        assert counts == model, (counts, model)
        assert places == {CHURN_PLACE}, places
        whole()
    stop.set()
    sender.join()
    churn.end()
    assert handled["timer"] > 0 and handled["user"] > 0, handled


if __name__ == "__main__":
    main()
