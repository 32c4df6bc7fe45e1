"""Other eyes on the same program: debug allocators, -X dev, profilers, tracers, monitoring tools, faulthandler.

The same blocks at the same lines are found whoever looks on; and the result of the program is the same.
"""

import os
import subprocess
import sys

from common import choices, rounds

CHILD_SECONDS = 60

PROGRAM = """
import cProfile, collections, faulthandler, gc, os, random, signal, sys, threading, zlib
import heapledger

seen = 0
def observe(*arguments):
    global seen
    seen += 1
    [seen, str(seen), {{"seen": seen}}]  # observers allocate, too

def tracer(frame, event, argument):
    observe()
    frame.f_trace_opcodes = seen % 2 == 0
    return tracer

def monitor():
    monitoring = sys.monitoring
    tool = monitoring.PROFILER_ID
    monitoring.use_tool_id(tool, "stress")
    events = monitoring.events
    for event in (events.PY_START, events.PY_RETURN, events.LINE, events.CALL, events.PY_YIELD, events.RAISE):
        monitoring.register_callback(tool, event, observe)
    monitoring.set_events(tool, events.PY_START | events.PY_RETURN | events.LINE | events.CALL | events.RAISE)

# Not dump_traceback_later: it reads frames while they run, and crashes some runs of this program also without us.
done = threading.Event()
def dump():
    with open(os.devnull, "w") as file:
        while not done.wait(0.01):
            faulthandler.dump_traceback(file, all_threads=True)

def look_on(observer):
    if observer == "sys.setprofile":
        sys.setprofile(observe)
        threading.setprofile(observe)
    elif observer == "sys.settrace":
        sys.settrace(tracer)
        threading.settrace(tracer)
    elif observer == "sys.monitoring" and sys.version_info >= (3, 12):
        monitor()
    elif observer == "cProfile":
        profile = cProfile.Profile()
        profile.enable()
        return profile
    elif observer == "faulthandler":
        threading.Thread(target=dump).start()

def generator(source):
    for _ in range(20):
        yield bytearray(source.randrange(7000, 7010))

def work(source, kept):
    for number in range({rounds}):
        kept.append(bytes(source.randrange(8000, 8010)))
        kept.append(bytearray(source.randrange(9000, 9010)))
        kept[-1].extend(bytes(100))
        kept.extend(generator(source))
        zlib.compress(bytes(2000))
        try:
            raise ValueError(bytes(300))
        except ValueError:
            pass
        if number % 5 == 4:
            del kept[:: source.randrange(2, 5)]

heapledger.start({limit})
profile = look_on({observer!r})
kept, mine = [], []
thread = threading.Thread(target=work, args=(random.Random({seed} + 1), kept))
thread.start()
work(random.Random({seed}), mine)
thread.join()
sys.settrace(None), sys.setprofile(None), profile and profile.disable()
done.set()
first = work.__code__.co_firstlineno
ours = range(generator.__code__.co_firstlineno, first + 14)
found = collections.Counter()
for trace in heapledger.take_snapshot().traces:
    newest = trace.traceback[-1]
    if newest.filename == "<string>" and newest.lineno in ours and trace.size >= 7000:
        found[newest.lineno - first, trace.size] += 1
assert heapledger._validate() is None and heapledger.lost_records() == 0
print(sorted(found.items()), sum(map(len, kept + mine)), len(kept), len(mine))
"""

OBSERVERS = ["", "sys.setprofile", "sys.settrace", "sys.monitoring", "cProfile", "faulthandler"]
ALLOCATORS = ["", "malloc", "debug", "malloc_debug", "pymalloc_debug"]
OPTIONS = [[], ["-X", "dev"], ["-X", "importtime"], ["-X", "faulthandler"], ["-X", "tracemalloc=5"], ["-O"]]


def run(program, allocator, options):
    environment = {**os.environ, "PYTHONMALLOC": allocator} if allocator else dict(os.environ)
    command = [sys.executable, "-W", "ignore", *options, "-c", program]
    child = subprocess.run(
        command, capture_output=True, text=True, timeout=CHILD_SECONDS, cwd=os.path.dirname(__file__), env=environment
    )
    if child.returncode != 0:
        sys.exit(f"{allocator} {options}: {child.returncode}\n{child.stdout}\n{child.stderr}\n{program}")
    return child.stdout


def main():
    most = max(len(OBSERVERS), len(ALLOCATORS), len(OPTIONS))
    for name in (OBSERVERS, ALLOCATORS, OPTIONS):
        choices.shuffle(name)
    seed = choices.randrange(10**6)
    for number in rounds(least=most):
        if number % most == 0:
            drawn = {"seed": seed + number, "limit": choices.choice((1, 3, 25)), "rounds": choices.randrange(10, 40)}
            alone = run(PROGRAM.format(observer="", **drawn), "", [])
        observer, options = OBSERVERS[number % len(OBSERVERS)], OPTIONS[number % len(OPTIONS)]
        allocator = ALLOCATORS[number % len(ALLOCATORS)]
        found = run(PROGRAM.format(observer=observer, **drawn), allocator, options)
        assert found == alone, (observer, allocator, options, drawn, found, alone)


if __name__ == "__main__":
    main()
