"""Every n-th of the extension's own allocations fails, n = 1 to 200: the host and the ledger are unharmed.

    python failing.py [SECONDS]

Needs a build with HL_FAULTS (tools/hostile failing makes it). Each n runs in a forked child with a time limit. While
allocations fail, the host's work has its usual result; a function of ours has its usual result or raises MemoryError;
the ledger's invariants hold; and a block that is missing in it was counted by lost_records(). With SECONDS the whole
is repeated for so long, each time with the failures at other places.
"""

import collections
import ctypes
import os
import signal
import sys
import time

import everything
import heapledger

MOST = 200
CHILD_SECONDS = 60

_fail_every = ctypes.PyDLL(heapledger._ledger.__file__).hl_os_fail_every
_fail_every.argtypes, _fail_every.restype = [ctypes.c_size_t], ctypes.c_size_t


class Failures:
    """Inside a with statement every n-th allocation fails; `count` says how many did."""

    def __init__(self, every):
        self.every, self.count = every, 0

    def __enter__(self):
        _fail_every(self.every)

    def __exit__(self, *exception):
        self.count += _fail_every(0)


def attempt(failures, function, outcomes):
    """The result of the function, or None if it raised MemoryError."""
    try:
        with failures:
            result = function()
    except MemoryError:
        outcomes["MemoryError"] += 1
        return None
    outcomes["done"] += 1
    return result


def one_round(n, limit, wanted, host):
    failures, outcomes = Failures(n), collections.Counter()
    attempt(failures, lambda: heapledger.start(limit), outcomes)
    if not heapledger.is_tracing():
        heapledger.start(limit)
    for step, answer in wanted.items():
        found = attempt(failures, step, outcomes)
        assert found is None or found == answer, (step, found, answer)
    # The host's own work must never see a failure of ours.
    with failures:
        assert everything.work_of_a_host() == host
        traced = everything.trace_everything()
    lost = heapledger.lost_records()
    missing = everything.missing_of(*traced)
    assert missing <= lost, f"{missing} blocks are missing, but {lost} counted"
    attempt(failures, everything.ask, outcomes)
    everything.ask()
    assert heapledger._validate() is None
    attempt(failures, heapledger.clear_traces, outcomes)
    attempt(failures, heapledger.reset_peak, outcomes)
    with failures:
        del traced
    assert heapledger._validate() is None
    lost = heapledger.lost_records()
    with failures:
        heapledger.stop()
    outcomes["failed"], outcomes["lost"], outcomes["missing"] = failures.count, lost, missing
    # As good as new.
    heapledger.start(limit)
    assert heapledger.lost_records() == 0 and everything.missing_of(*everything.trace_everything()) == 0
    assert heapledger._validate() is None
    heapledger.stop()
    return outcomes


def in_a_child(function, *arguments):
    """The Counter that the function returns in a forked child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(CHILD_SECONDS)
            os.write(writer, repr(dict(function(*arguments))).encode())
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(writer)
    with open(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        sys.exit(f"every {arguments[0]}. allocation failing: status {status:#x} (limit {arguments[1]} frames)")
    return collections.Counter(eval(answer))


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0
    end, rounds, outcomes = time.monotonic() + seconds, 0, collections.Counter()
    host = everything.work_of_a_host()
    wanted = {step: step() for step in everything.PURE}
    limits = (1, 5, 25)
    while rounds == 0 or time.monotonic() < end:
        for n in range(1, MOST + 1):
            outcomes += in_a_child(one_round, n, limits[(n + rounds) % len(limits)], wanted, host)
        # Begin the next with the steps in another order, so that the n-th allocation is another one.
        steps = list(wanted)
        wanted = {step: wanted[step] for step in steps[1:] + steps[:1]}
        rounds += 1
    print(f"n = 1 to {MOST}, {rounds} times: {dict(outcomes)}")
    for name in ("failed", "MemoryError", "done", "lost", "missing"):
        assert outcomes[name] > 0, f"nothing was tested: never {name}"


if __name__ == "__main__":
    main()
