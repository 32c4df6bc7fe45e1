"""Cells, nested functions, decorators, partials, bound methods, default arguments."""

import functools


def counter(start):
    history = []

    def step(amount=1, *more, **named):
        nonlocal start
        start += amount
        history.append((start, more, named))

        def undo():
            nonlocal start
            start -= amount
            return history

        return undo

    return step


def repeated(times):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*arguments):
            return [function(*arguments) for _ in range(times)]

        return wrapper

    return decorate


@repeated(3)
def make(size):
    return bytearray(size)


@functools.lru_cache(maxsize=50)
def cached(number):
    return [number] * 3


class Method:
    def __init__(self, value):
        self.value = value
        self.bound = self.method

    def method(self, other=None):
        return lambda: (self.value, other)


def main():
    counters = [counter(number * 1000) for number in range(60)]
    undos = [step(number, "extra", name=number * 999) for number, step in enumerate(counters)]
    made = [make(size) for size in range(0, 900, 30)]
    partials = [functools.partial(make, size) for size in range(50)]
    methods = [Method(str(number)) for number in range(80)]
    return counters, undos, made, partials, [m.bound(1) for m in methods], methods, [cached(n) for n in range(70)]
