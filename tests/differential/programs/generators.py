"""Generators and coroutines: suspended, exhausted, closed, thrown into, delegating."""

import itertools


def countdown(start):
    held = [start] * 5
    while start:
        try:
            received = yield start * 1000
            held.append(received)
        except ValueError as error:
            held.append(error)
        start -= 1
    return held


def delegating(start):
    result = yield from countdown(start)
    yield tuple(result)


async def coroutine(value):
    text = f"{value:20}"
    await Suspend()
    return text * 2


class Suspend:
    def __await__(self):
        yield bytearray(33)


def main():
    suspended = [countdown(number) for number in range(1, 50)]
    heads = [next(generator) for generator in suspended]
    for generator in suspended[::3]:
        generator.throw(ValueError(str(generator)[:10])) if generator.gi_frame.f_locals["start"] > 1 else None
    for generator in suspended[::5]:
        generator.close()
    chained = [list(itertools.islice(delegating(number), 30)) for number in range(20)]
    coroutines = [coroutine(number) for number in range(30)]
    steps = [one.send(None) for one in coroutines]
    results = []
    for one in coroutines[:15]:
        try:
            one.send(None)
        except StopIteration as stop:
            results.append(stop.value)
    nested = list(x + y for x in (a * 500 for a in range(20)) for y in (b * 700 for b in range(5)))
    return suspended, heads, chained, coroutines, steps, results, nested
