"""A big snapshot in the shape of a call graph: so many distinct stacks of 25 frames, as .hlsnap.

    python bench/big_snapshot.py big.hlsnap [--stacks 100000] [--seed 1]

A program of some thousand functions in packages, application and library, is made up, really run and really traced:
every function has a few lines that call others and one that allocates. A stack is one way through it. Each leaves
another one's way near its end, since stacks of a real program have most of their frames in common; there are three to
four nodes a stack in the tree of all of them. The same seed makes the same stacks and sizes; another seed makes the
same program, of whose stacks about a half are the same: the pair to compare.
"""

import argparse
import random

import heapledger

DEPTH = 25
FUNCTIONS = 3_000
FOLDERS = ("/srv/shop/%s", "/usr/lib/python3/%s", "/srv/venv/lib/site-packages/%s")
WORDS = "orders users pricing search export cache parser session reports images mail queue stock audit tax".split()


class Program:
    """Functions that each have between two and six calls; entry(way, kept, place, size) follows a way through them."""

    def __init__(self):
        choose = random.Random("program")
        # Higher numbers are deeper: calls go forward, and come round again as in a recursion.
        self.calls = [
            [(number + choose.randint(1, 400)) % FUNCTIONS for _ in range(choose.randint(2, 6))]
            for number in range(FUNCTIONS)
        ]
        self.space = {}
        files = {}
        for number in range(FUNCTIONS):
            package, module = WORDS[number // 100 % len(WORDS)], WORDS[number // 10 % len(WORDS)]
            name = FOLDERS[number % len(FOLDERS)] % f"{package}/{module}.py"
            files.setdefault(name, []).append(self.source(number))
        for name, sources in files.items():
            exec(compile("\n".join(sources), name, "exec"), self.space)
        self.entry = self.space["run_0"]

    @staticmethod
    def function(number):
        return f"{('load', 'make', 'find', 'run')[number % 4] if number else 'run'}_{number}"

    def source(self, number):
        lines = [f"def {self.function(number)}(way, kept, place, size):", "    step = next(way)"]
        for call, target in enumerate(self.calls[number]):
            lines.append(f"    if step == {call}:")
            lines.append(f"        return {self.function(target)}(way, kept, place, size)")
        lines.append("    kept[place] = bytes(size)")
        return "\n".join(lines) + "\n"

    def finish(self, way, choose):
        """The way, which is a tuple of calls, with choices up to the allocation."""
        number, whole = 0, list(way)
        for step in whole:
            number = self.calls[number][step]
        while len(whole) < DEPTH - 1:
            step = min(int(choose.expovariate(1.0)), len(self.calls[number]) - 1)
            whole.append(step)
            number = self.calls[number][step]
        return tuple(whole)


def make_ways(program, count, choose, common):
    """Distinct ways; the first `common` are those that every other generator of choices makes too."""
    alike = random.Random("ways")
    ways = [program.finish((), alike)]
    known = set(ways)
    while len(ways) < count:
        chooser = alike if len(ways) < common else choose
        other = ways[int(chooser.random() * len(ways))]
        kept = max(DEPTH - 2 - int(chooser.expovariate(0.35)), 0)
        way = program.finish(other[:kept], chooser)
        if way not in known:
            known.add(way)
            ways.append(way)
    return ways


def make(filename, stacks=100_000, seed=1):
    """Write the file."""
    program = Program()
    choose = random.Random(seed)
    ways = make_ways(program, stacks, choose, stacks // 2)
    sizes = [64 + int(choose.paretovariate(1.1) * 100) % 1_000_000 for _ in ways]
    kept = [None] * len(ways)
    heapledger.start(DEPTH)
    for place, (way, size) in enumerate(zip(ways, sizes, strict=True)):
        program.entry(iter((*way, -1)), kept, place, size)
    snapshot = heapledger.take_snapshot()
    heapledger.stop()
    # What this file allocates meanwhile is not the program's.
    ours = [heapledger.Filter(True, "/srv/*"), heapledger.Filter(True, "/usr/lib/python3/*")]
    snapshot.filter_traces(ours).dump(filename, format="hlsnap")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filename")
    parser.add_argument("--stacks", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    make(options.filename, options.stacks, options.seed)


if __name__ == "__main__":
    main()
