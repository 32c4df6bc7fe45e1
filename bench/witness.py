"""In an environment of pyperformance: each process says at its end who traced it and how much memory it had.

A line in a .pth file calls `start` in every process where HEAPLEDGER_BENCH_WITNESS names a folder. Without this a
variable that does not reach the processes that are measured would pass for a tracer that costs nothing.
"""

import atexit
import os
import sys

VARIABLE = "HEAPLEDGER_BENCH_WITNESS"
PTH = f"import os; '{VARIABLE}' in os.environ and __import__('witness').start()\n"


def start():
    atexit.register(testify)


def tracer():
    """Who traces this process, as harness.MODES calls it."""
    ledger = sys.modules.get("heapledger._ledger")  # the variable loads no more than that
    if ledger is not None and ledger.is_tracing() and ledger.get_traced_memory()[1] > 0:
        return f"heapledger-{ledger.get_traceback_limit()}"
    import _tracemalloc

    return f"stdlib-{_tracemalloc.get_traceback_limit()}" if _tracemalloc.is_tracing() else "untraced"


def role():
    """What pyperf has this process for: to measure, to start others, or, with commands, to be measured."""
    if "--worker" in sys.argv:
        return "worker"
    starts_others = sys.argv[0].endswith(("run_benchmark.py", "_process_time.py"))
    return "manager" if starts_others else "command"


def testify():
    with open("/proc/self/status") as lines:
        (peak,) = (int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    import json

    with open(os.path.join(os.environ[VARIABLE], f"{os.getpid()}.json"), "w") as file:
        json.dump({"tracer": tracer(), "role": role(), "rss": peak, "command": sys.argv}, file)
