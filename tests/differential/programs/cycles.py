"""Reference cycles, collected by hand and by the collector's own thresholds."""

import gc
import weakref


class Node:
    def __init__(self, number):
        self.number = number * 1000
        self.me = self
        self.others = []


class Slotted:
    __slots__ = ("me", "load", "__weakref__")

    def __init__(self, size):
        self.me = [self]
        self.load = bytearray(size)


def main():
    gc.set_threshold(200, 5, 5)
    kept = []
    for number in range(2000):
        node = Node(number)
        node.others.append(Node(number + 1))
        node.others[0].others.append(node)
        if number % 10 == 0:
            kept.append(node)
    gone = []
    slotted = [Slotted(number) for number in range(200)]
    watchers = [weakref.ref(one, lambda reference: gone.append(str(reference)[:9])) for one in slotted]
    del slotted[::2]
    gc.collect()
    gc.freeze()
    gc.unfreeze()
    functions = []
    for number in range(100):

        def recursive(depth, number=number):
            return recursive(depth - 1) if depth else number  # noqa: B023

        if number % 4 == 0:
            functions.append(recursive)
    gc.collect()
    return kept, slotted, watchers, gone, functions
