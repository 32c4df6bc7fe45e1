"""Random histories of allocations, written beforehand, and a model that keeps every event.

Blocks are told apart by number. Block k has 2^k units, and the same line makes it every time; at most one of each
number is alive. So no two sets of live blocks have the same total, and as long as everything else that is allocated
meanwhile stays below one unit, the moment of the peak is the moment at which the greatest set of blocks was alive.
"""

import collections
import gc
import sys

import heapledger
from c_allocators import holding_the_gil, without_the_gil

UNIT = 32 * 1024
NUMBERS = 12
HUGE = 2**61
HEADER = sys.getsizeof(b"")


def make_bytes(size):
    return bytes(size - HEADER)


def make_more_bytes(size):
    return bytes(size - HEADER)


def make_block(size):
    return holding_the_gil.PyMem_Malloc(size)


def make_raw_block(size):
    return without_the_gil.PyMem_RawMalloc(size)


def resize_block(block, size):
    return holding_the_gil.PyMem_Realloc(block, size)


def resize_raw_block(block, size):
    return without_the_gil.PyMem_RawRealloc(block, size)


MAKERS = (make_bytes, make_more_bytes, make_block, make_raw_block) * 2
# Blocks that come from others by reallocation: number -> (the function, what it may have been before).
RESIZED = {
    8: (resize_block, (2, 6)),
    9: (resize_block, (2, 6)),
    10: (resize_raw_block, (3, 7)),
    11: (resize_raw_block, (3, 7)),
}


def size_of(number):
    return UNIT << number


def line_of(number):
    function = MAKERS[number] if number < len(MAKERS) else RESIZED[number][0]
    return function.__code__.co_firstlineno + 1


# Events are ("make", number), ("free", number), ("resize", number, new number), ("refuse", number), ("reset",),
# ("clear",) and ("look",).


def write_history(source, length, clears=True):
    alive, events = set(), []
    growing = 0.5
    for _ in range(length):
        kind = source.random()
        resizable = [(old, new) for new, (_, olds) in RESIZED.items() for old in olds if old in alive - {new}]
        resizable = [(old, new) for old, new in resizable if new not in alive]
        if source.random() < 0.05:
            growing = source.choice((0.25, 0.5, 0.75))
        if kind < 0.05:
            events.append(("look",))
        elif kind < 0.07:
            events.append(("reset",))
        elif kind < 0.08 and clears:
            events.append(("clear",))
        elif kind < 0.25 and resizable:
            old, new = source.choice(resizable)
            if source.random() < 0.2:
                events.append(("refuse", old))
            else:
                events.append(("resize", old, new))
                alive ^= {old, new}
        elif source.random() < growing and len(alive & set(range(len(MAKERS)))) < len(MAKERS):
            number = source.choice(sorted(set(range(len(MAKERS))) - alive))
            events.append(("make", number))
            alive.add(number)
        elif alive:
            number = source.choice(sorted(alive))
            events.append(("free", number))
            alive.remove(number)
    events.append(("look",))
    return events + [("free", number) for number in sorted(alive)]


class Player:
    """Does what a history says. Looks are kept, to be compared when tracing is over."""

    def __init__(self):
        self.blocks = [None] * NUMBERS
        self.looks = []

    def play(self, event):
        blocks, kind = self.blocks, event[0]
        if kind == "make":
            blocks[event[1]] = MAKERS[event[1]](size_of(event[1]))
        elif kind == "free":
            self.free(event[1])
        elif kind == "resize":
            blocks[event[2]] = RESIZED[event[2]][0](blocks[event[1]], size_of(event[2]))
            blocks[event[1]] = None
        elif kind == "refuse":
            assert (resize_block if event[1] % 4 == 2 else resize_raw_block)(blocks[event[1]], HUGE) is None
        elif kind == "reset":
            heapledger.reset_peak()
        elif kind == "clear":
            heapledger.clear_traces()
        else:
            self.looks.append(look())

    def free(self, number):
        block, self.blocks[number] = self.blocks[number], None
        maker = RESIZED[number][0] if number in RESIZED else MAKERS[number]
        if maker in (make_block, resize_block):
            holding_the_gil.PyMem_Free(block)
        elif maker in (make_raw_block, resize_raw_block):
            without_the_gil.PyMem_RawFree(block)


Look = collections.namedtuple("Look", "live peak traced all allocated")


def look():
    """Everything at one moment: nothing but the tuple is allocated here, and that at the end.

    The collector would allocate between two calls (3.12 does, though nothing has a finalizer), so it must rest.
    """
    gc.disable()
    found = Look(
        heapledger.take_snapshot(),
        heapledger.take_peak_snapshot(),
        heapledger.get_traced_memory(),
        heapledger.take_allocation_snapshot(),
        heapledger.allocated(),
    )
    gc.enable()
    return found


def replay(events):
    """Sets of numbers, one after each event since the last clear, and how often each number was allocated."""
    alive, moments, made = frozenset(), [frozenset()], collections.Counter()
    peak_from = 0  # the peak is one of the moments from here on
    for event in events:
        if event[0] == "make":
            alive |= {event[1]}
            made[event[1]] += 1
        elif event[0] == "free":
            alive -= {event[1]}
        elif event[0] == "resize":
            alive = (alive - {event[1]}) | {event[2]}
            made[event[2]] += 1
        elif event[0] == "clear":
            alive, moments, made, peak_from = frozenset(), [], collections.Counter(), 0
        elif event[0] == "reset":
            peak_from = len(moments)
        moments.append(alive)
    return moments, peak_from, made


def expected(events):
    """What a look after these events must find: how many blocks by (line, size), alive, at the peak and in all."""
    moments, peak_from, made = replay(events)
    peak = max(moments[peak_from:], key=lambda alive: sum(map(size_of, alive)))
    return [
        {(line_of(number), size_of(number)): count for number, count in counts.items()}
        for counts in (collections.Counter(moments[-1]), collections.Counter(peak), made)
    ]


def total(snapshot):
    return sum(trace.size for trace in snapshot.traces)


def blocks_in(snapshot):
    """How many blocks of ours by (line, size)."""
    lines = {line_of(number) for number in range(NUMBERS)}
    sites = ((trace.traceback[-1], trace.size) for trace in snapshot.traces)
    return dict(
        collections.Counter(
            (frame.lineno, size)
            for frame, size in sites
            if frame.filename == __file__ and frame.lineno in lines and size >= UNIT
        )
    )


def compare(history, looks):
    """Each look against the model, which sees the events before it."""
    places = [place for place, event in enumerate(history) if event[0] == "look"]
    assert len(places) == len(looks)
    for place, (live, peak, traced, everything, allocated) in zip(places, looks, strict=True):
        found = [blocks_in(snapshot) for snapshot in (live, peak, everything)]
        assert found == expected(history[:place]), (place, history[:place])
        assert total(peak) == traced[1]
        assert total(live) == traced[0]
        assert (total(everything), len(everything.traces)) == allocated
