"""The same frames at the same addresses, entered from other places: what an engine remembers of a stack is stale."""

import functools
import itertools
import random
import threading


def leaf(size):
    return bytes(size)


def middle(size):
    first = leaf(size)
    second = leaf(size)
    return first, second


def left(size):
    return middle(size)


def right(size):
    return [middle(size),
            middle(size)]  # fmt: skip


def path(bits, kept):
    kept.append(bytes(300))
    if bits:
        if bits[0] == 0:
            path(bits[1:], kept)
        elif bits[0] == 1:
            path(bits[1:], kept)
        else:
            for _ in range(2):
                path(bits[2:], kept)
    kept.append(bytes(301))


def unwind(depth, kept):
    kept.append(bytes(302))
    try:
        if depth == 0:
            raise KeyError(bytes(303))
        unwind(depth - 1, kept)
    finally:
        kept.append(bytes(304))


def steps(kept):
    while True:
        kept.append(bytes(305))
        yield
        kept.append(bytes(306))
        yield leaf(307)


def here(generator):
    return next(generator)


def there(generator):
    found = next(generator)
    return found


class Slots:
    """Python code called from C, with an entry frame of its own."""

    def __init__(self, value):
        self.value = [value, bytes(308)]
        super().__init__()

    def __getattr__(self, name):
        return leaf(309)

    def __eq__(self, other):
        self.value.append(leaf(310))
        return False

    def __hash__(self):
        return len(leaf(311))

    def __lt__(self, other):
        self.value.append(bytes(312))
        return len(self.value) % 2 == 0

    @property
    def made(self):
        return leaf(313)

    def __call__(self, value):
        return middle(314)


class Derived(Slots):
    def __init__(self, value):
        super().__init__(leaf(315))
        self.more = Slots(value)


def ping_pong(kept, turns):
    """Two threads at different depths take turns at every allocation."""
    events = [threading.Event(), threading.Event()]

    def work(me, depth):
        if depth:
            return work(me, depth - 1)
        for _ in range(turns):
            events[me].wait()
            events[me].clear()
            kept.append(leaf(316 + me))
            events[1 - me].set()

    threads = [threading.Thread(target=work, args=(me, me * 7)) for me in (0, 1)]
    for thread in threads:
        thread.start()
    events[0].set()
    for thread in threads:
        thread.join()


def main():
    source, kept = random.Random(5), []
    for _ in range(150):
        kept.append(source.choice([left, right, middle, leaf])(source.choice([400, 401])))
    for _ in range(60):
        path([source.randrange(3) for _ in range(source.randrange(9))], kept)
    for depth in (3, 10, 3, 30, 1, 30):
        try:
            unwind(depth, kept)
        except KeyError as error:
            kept.append(error)
    generators = [steps(kept) for _ in range(4)]
    for number in range(200):
        generator = source.choice(generators)
        kept.append(here(generator) if number % 3 else there(generator))
    objects = [source.choice([Slots, Derived])(number) for number in range(40)]
    kept.append(sorted(objects))
    kept.append([one.missing for one in objects] + [one.made for one in objects] + [one(1) for one in objects])
    kept.append({one: number for number, one in enumerate(objects)})
    kept.append(objects[0] in objects)
    kept.append(list(map(leaf, [500, 501, 502])))
    kept.append(functools.reduce(lambda total, size: [*total, leaf(size)], range(600, 620), []))
    kept.append(list(itertools.starmap(left, [(450,), (451,)])))
    kept.append(max([1, 2, 3], key=lambda value: kept.append(right(value + 430)) or value))
    kept.append(eval("[leaf(470), middle(471), [right(n) for n in (472, 473)]]"))
    ping_pong(kept, 100)
    return kept, objects, generators
