"""The interpreter's end in every way, while threads that need no GIL go on allocating through all of it.

Each end is a child with a time limit, which must say nothing and leave the status that was asked for.
"""

import os
import pathlib
import subprocess
import sys

from common import SEED, build_churn, choices, rounds

HERE = pathlib.Path(__file__).parent
CHILD_SECONDS = 60

BEGIN = """
import sys
sys.path.insert(0, {here!r})
sys.argv[1:] = ["0", "{seed}"]
import atexit, gc, os, signal, threading, time, zlib
import heapledger
from common import Churn
heapledger.start({limit})
churn = Churn(0)
def deep(depth):
    return deep(depth - 1) if depth else churn.for_ever()
for _ in range({threads}):
    threading.Thread(target=deep, args=(20,), daemon=True).start()
kept = [bytes(n) for n in range(2000)]
def snapshot():
    if heapledger.is_tracing():
        return heapledger.take_snapshot()
"""

DURING = {
    "nothing": "",
    "atexit": "atexit.register(snapshot)",
    "stopped in atexit": "atexit.register(heapledger.stop)",
    "late objects": """
class Late:
    def __del__(self, heapledger=heapledger):
        self.more = [bytes(n) for n in range(100)]
        heapledger.get_traced_memory(), heapledger.get_object_traceback(self.more)
import builtins
builtins.late = [Late() for _ in range(5)]
""",
    "daemon threads with the GIL": """
def work():
    while True:
        zlib.compress(bytes(50000)), [bytearray(300) for _ in range(50)]
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
""",
    "a thread that outlives the main one": """
def work():
    time.sleep(0.05)
    [bytearray(n) for n in range(1000)]
    snapshot()
threading.Thread(target=work).start()
""",
    "suspended generators": """
def generator():
    try:
        yield
    finally:
        [bytes(n) for n in range(100)]
suspended = [generator() for _ in range(20)]
[next(one) for one in suspended]
""",
    "snapshots alive": "import builtins; builtins.kept = [heapledger.take_snapshot(), heapledger.take_capture()]",
    "dump at the end": "atexit.register(lambda: heapledger.is_tracing() and snapshot().dump('/dev/null'))",
}

ENDS = {
    "falls off": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "os._exit": ("os._exit(4)", 4),
    "sys.exit in a thread": ("threading.Thread(target=sys.exit, args=(5,)).start()", 0),
    "os._exit in a thread": ("threading.Thread(target=os._exit, args=(6,)).start(); time.sleep(9)", 6),
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", -9),
    "terminated": ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)", -15),
    "executes": ("os.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(7)'])", 7),
}


def main():
    build_churn()
    for number in rounds():
        during = choices.sample(sorted(DURING), choices.randrange(1, 3))
        # Most often the ways that finalize the interpreter.
        end = choices.choice(["falls off", "sys.exit", "sys.exit in a thread"] * 3 + sorted(ENDS))
        source = BEGIN.format(here=str(HERE), seed=SEED + number, limit=choices.choice((1, 25)), threads=6 - number % 5)
        source += "\n".join(DURING[name] for name in during) + "\n" + ENDS[end][0] + "\n"
        environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
        child = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", source],
            capture_output=True, text=True, timeout=CHILD_SECONDS, env=environment, cwd=HERE,
        )  # fmt: skip
        if (child.returncode, child.stdout, child.stderr) != (ENDS[end][1], "", ""):
            sys.exit(f"{during}, {end}: {child.returncode}\n{child.stdout}\n{child.stderr}\n{source}")


if __name__ == "__main__":
    main()
