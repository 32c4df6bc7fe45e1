"""Stands in for pyperf in a benchmark script of pyperformance, and turns the tracer on and off around what it measures.

HEAPLEDGER_BENCH_INSIDE is "frames turns seconds": the frame limit, how many traced turns, and how long a turn takes at
least. A turn is the script's own function, called with so many loops, by the thread's processor time; each traced one
comes between two untraced ones, all in this process. A command is a process for each turn, traced by environment
variable. Prints a line of JSON for each thing that is measured; `blocks` is null where nobody has counted.
"""

import argparse
import json
import os
import resource
import subprocess
import time

import heapledger

FRAMES, TURNS, SECONDS = map(float, os.environ["HEAPLEDGER_BENCH_INSIDE"].split())
perf_counter = time.thread_time


def loops_for(function):
    loops = 1
    while (seconds := function(loops)) < SECONDS:
        loops *= max(2, int(SECONDS / max(seconds, 1e-6))) if seconds < SECONDS / 2 else 2
    return loops


def traced(function, loops):
    """Seconds of the traced turn, and how many blocks it allocated. The first calls learn what is new to the tracer."""
    heapledger.start(int(FRAMES))
    function(max(1, loops // 10))
    before = heapledger.allocated()[1]
    seconds = function(loops)
    blocks = heapledger.allocated()[1] - before
    heapledger.stop()
    return seconds, blocks


def take_turns(name, untraced_turn, traced_turn):
    traced_turn()
    untraced = [untraced_turn()]
    ratios = []
    for _ in range(int(TURNS)):
        seconds, blocks = traced_turn()
        untraced.append(untraced_turn())
        ratios.append(2 * seconds / (untraced[-2] + untraced[-1]))
    print(json.dumps({"name": name, "ratios": ratios, "blocks": blocks, "untraced": untraced}), flush=True)


def command_time(command, **variables):
    """Processor time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command, env=os.environ | variables, **quiet, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Runner:
    def __init__(self, **_):
        self.metadata = {}
        self.argparser = argparse.ArgumentParser()
        self.args = None

    def parse_args(self):
        self.args = self.argparser.parse_args()
        return self.args

    def bench_func(self, name, function, *arguments, inner_loops=None):
        def timed(loops):
            start = perf_counter()
            for _ in range(loops):
                function(*arguments)
            return perf_counter() - start

        self.bench_time_func(name, timed)

    def bench_time_func(self, name, function, *arguments, inner_loops=None):
        def timed(loops):
            return function(loops, *arguments)

        loops = loops_for(timed)
        take_turns(name, lambda: timed(loops), lambda: traced(timed, loops))

    def bench_command(self, name, command):
        take_turns(
            name,
            lambda: command_time(command),
            lambda: (command_time(command, HEAPLEDGER=str(int(FRAMES))), None),
        )
