"""One file of the interpreter's test suite in a process of its own, as run.py starts it: untraced, or traced.

    python child.py [--broken] ARGUMENTS-OF-python-m-test

A traced process ends with status BAD_LEDGER, whatever the tests said, unless heapledger was still tracing at the end
with a whole ledger that has lost nothing. With --broken the process keeps every frame it was in, as a careless tracer
might, for run.py to show that its comparison can fail.
"""

import collections
import os
import signal
import sys

BAD_LEDGER = 99
FRAMES_KEPT = 10_000


def ledger_problem():
    """What is wrong with the ledger, or None."""
    import heapledger

    if not heapledger.is_tracing():
        return "heapledger is not tracing any more"
    if heapledger.lost_records():
        return f"{heapledger.lost_records()} records are lost"
    return heapledger._validate()


def keep_frames():
    kept = collections.deque(maxlen=FRAMES_KEPT)
    sys.setprofile(lambda frame, event, argument: kept.append(frame))


def hear_signals():
    """As started from a terminal: a run in the background ignores interrupts, for which some tests wait in a loop."""
    for number, handler in [(signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)]:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


def main():
    hear_signals()
    del sys.path[0]  # our folder: the suite must find its own modules
    traced = "HEAPLEDGER" in os.environ
    if "--broken" in sys.argv:
        sys.argv.remove("--broken")
        keep_frames()
    from test.libregrtest.main import main as run_tests

    try:
        run_tests()
    finally:
        problem = ledger_problem() if traced else None
        if problem is not None:
            print(f"the ledger after the tests: {problem}", flush=True)
            sys.exit(BAD_LEDGER)


if __name__ == "__main__":
    main()
