"""Heaps to take snapshots of: a million live blocks in three shapes.

`ordinary`: what a program looks like: records of strings, lists, dicts, tuples and objects, made by some nine hundred
lines in twenty files, each of them reached on six ways of thirty frames. 3,000 sites at one frame, 17,000 at 25.
`lines`: 10,000 sites, each a line of its own, so that an analysis has as many results as a snapshot has sites.
`distinct`: the worst for an engine that keeps sites: every block is the only one of its (size, stack).

All are made in this process by Python code with file names of its own, and are the same whatever traces them.
"""

FILES = 20
FUNCTIONS = 4
WAYS = 6
DEPTH = 30
SPREAD = 4
LINES = 10_000
DISTINCT_SIZES = 400
LINES_OF_A_FUNCTION = 100

MODULE = """
class Record:
    def __init__(self, number, name):
        self.number = number
        self.name = name
        self.scores = [number * 0.5, number * 1.5]
        self.tags = dict(name=name, number=number)


def step(way, depth, leaf):
    if depth == 0:
        return leaf()
    following = STEPS[(way * 7 + depth) % len(STEPS)]
    if way % 2:
        return following(way, depth - 1, leaf)
    return following(way, depth - 1, leaf)
"""

FUNCTION = """
def make_{number}(count, kept):
    for i in range(1000, 1000 + count):
        name = "name" * ({number} + i % SPREAD)
        record = Record(i * 1000, name)
        position = (
            i * 0.25,
            i * 0.75 + {number},
        )
        kept.append({{
            "record": record,
            "text": "%s/%d" % (name, i),
            "position": position,
            "children": [str(i) * (i % 3), [i * 7], {{i: position}}],
            "bytes": bytes(i % SPREAD * 9 + {number}),
        }})
"""
BLOCKS_OF_A_RECORD = 26  # about


def modules():
    """The makers: one list for each file."""
    steps, makers = [], []
    for number in range(FILES):
        space = {"STEPS": steps, "SPREAD": SPREAD}
        source = MODULE + "".join(FUNCTION.format(number=number * FUNCTIONS + i) for i in range(FUNCTIONS))
        exec(compile(source, f"/srv/shop/package_{number % 4}/module_{number}.py", "exec"), space)
        steps.append(space["step"])
        makers.append([space[f"make_{number * FUNCTIONS + i}"] for i in range(FUNCTIONS)])
    return steps, makers


def ordinary(blocks):
    """Make about that many blocks; returns what holds them. So do the others."""
    steps, makers = modules()
    kept = []
    count = max(1, blocks // (FILES * FUNCTIONS * WAYS * BLOCKS_OF_A_RECORD))
    for number, functions in enumerate(makers):
        for make in functions:
            for way in range(WAYS):
                steps[number](number + way, DEPTH, lambda make=make: make(count, kept))
    return kept


def by_lines(count, sizes):
    """From each of `count` lines, blocks of those sizes."""
    kept, functions = [], []
    for first in range(0, count, LINES_OF_A_FUNCTION):
        line = "    kept.extend(map(bytes, sizes))\n"
        source = "\n" * first + "def run():\n" + line * min(LINES_OF_A_FUNCTION, count - first)
        space = {"kept": kept, "sizes": sizes}
        exec(compile(source, "/srv/shop/lines.py", "exec"), space)
        functions.append(space["run"])
    steps, _ = modules()
    steps[0](0, DEPTH, lambda: [run() for run in functions])
    return kept


def lines(blocks):
    return by_lines(LINES, [100] * (blocks // LINES))


def distinct(blocks):
    return by_lines(blocks // DISTINCT_SIZES, range(1, DISTINCT_SIZES + 1))


SHAPES = {"ordinary": ordinary, "lines": lines, "distinct": distinct}
