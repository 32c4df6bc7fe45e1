"""__del__, weak references with callbacks and finalizers that allocate, free and revive."""

import sys
import weakref

GRAVE = []


class Noisy:
    def __init__(self, number):
        self.number = number
        self.payload = bytearray(number)

    def __del__(self):
        GRAVE.append(f"{self.number:050}")
        if len(GRAVE) % 7 == 0:
            del GRAVE[:3]


class Revived:
    __slots__ = tuple(f"slot{number}" for number in range(61))

    def __init__(self, number):
        self.slot0 = number

    def __del__(self):
        GRAVE.append(self)


REVIVED_SIZES = (sys.getsizeof(Revived(0)),)


def callback(reference):
    GRAVE.append([reference, "gone" * 10])


class Target:
    pass


def main():
    objects = [Noisy(number) for number in range(300)]
    del objects[::2]
    for number in range(20):
        revived = Revived(number)
        del revived
    targets = [Target() for _ in range(50)]
    references = [weakref.ref(target, callback) for target in targets]
    finalizers = [weakref.finalize(target, GRAVE.append, str(target)) for target in targets[::5]]
    table = weakref.WeakKeyDictionary((target, [1.5]) for target in targets)
    del targets[::3]
    return objects, targets, references, finalizers, table
