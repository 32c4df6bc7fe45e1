"""Recursion to the interpreter's limit and back, again and again: every frame of every traceback is known."""

import sys
import threading

import heapledger
from common import choices, rounds, whole

HEADER = sys.getsizeof(b"")
SIZE = 5_600


def down(depth, kept):
    if depth == 0:
        kept.append(bytes(SIZE - HEADER))
        return 0
    if depth % 3 == 0:
        return 1 + down(depth - 1, kept)
    return 2 + down(depth - 1, kept)


def leaf(kept):
    kept.append(bytes(SIZE - HEADER))


def twice(kept):
    """The same frame of leaf(), at the same place in memory, called from another line."""
    leaf(kept)
    leaf(kept)


def check_callers(limit):
    kept = []
    twice(kept)
    callers = [heapledger.get_object_traceback(block)[-min(2, limit)].lineno for block in kept]
    first = twice.__code__.co_firstlineno if limit > 1 else leaf.__code__.co_firstlineno - 1
    assert callers == ([first + 2, first + 3] if limit > 1 else [first + 2] * 2), callers


FIRST = down.__code__.co_firstlineno
BOTTOM, THIRDS, OTHERS = FIRST + 2, FIRST + 5, FIRST + 6


def lines(depth):
    """Newest first: the line of each frame of down()."""
    return [BOTTOM] + [THIRDS if n % 3 == 0 else OTHERS for n in range(1, depth + 1)]


def endless(number, kept):
    kept.append(bytearray(20))
    return endless(number + 1, kept)


def check(depth, limit):
    kept = []
    down(depth, kept)
    found = [frame.lineno for frame in heapledger.get_object_traceback(kept[0])][::-1]
    wanted = lines(depth)[:limit]
    assert found[: len(wanted)] == wanted, (depth, limit)
    assert len(found) == min(limit, depth + base_depth() + 1), (len(found), limit, depth)


def base_depth():
    """Frames from here to the bottom, less those of this function and of check(), plus that of the caller of down()."""
    frame, depth = sys._getframe(1), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def body(limit):
    for _ in range(3):
        check(choices.randrange(1, 700), limit)
        check_callers(limit)
        kept = []
        try:
            endless(0, kept)
        except RecursionError:
            pass
        else:
            raise AssertionError("no limit")
        assert len(kept) > 100
        places = {heapledger.get_object_traceback(block)[-1].lineno for block in kept[::97]}
        assert places == {endless.__code__.co_firstlineno + 1}, places
        check(choices.randrange(1, 50), limit)


def main():
    threading.stack_size(64 << 20)
    for _ in rounds():
        limit = choices.choice((1, 2, 25, 900, 65535))
        sys.setrecursionlimit(5000 if limit <= 25 else 1000)
        heapledger.start(limit)
        if choices.random() < 0.5:
            body(limit)
        else:
            failures = []

            def guarded(limit=limit, failures=failures):
                try:
                    body(limit)
                except BaseException as error:
                    failures.append(error)

            threads = [threading.Thread(target=guarded) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if failures:
                raise failures[0]
        whole()
        heapledger.stop()


if __name__ == "__main__":
    main()
