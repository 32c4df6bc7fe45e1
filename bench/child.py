"""One measurement: `child.py MODULE JSON` calls MODULE.measure(**JSON) and prints the answer as JSON.

A module that has `serve` instead yields any number of answers, one for each line it reads.
"""

import contextlib
import importlib
import json
import os
import sys


def main():
    sys.path.insert(0, os.environ["HEAPLEDGER_BENCH_NOOP"])
    cpu = os.environ.get("HEAPLEDGER_BENCH_CPU")
    if cpu is not None:
        with contextlib.suppress(OSError, AttributeError):
            os.sched_setaffinity(0, {int(cpu)})
    module, request = sys.argv[1:]
    called = importlib.import_module(module)
    if hasattr(called, "serve"):
        for answer in called.serve(**json.loads(request)):
            print(json.dumps(answer), flush=True)
    else:
        print(json.dumps(called.measure(**json.loads(request))))


main()
