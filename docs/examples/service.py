"""A service that answers requests, and never forgets one."""

import functools
import sys


class Request:
    def __init__(self, number):
        self.body = f"words of request {number} " * 50

    @functools.lru_cache(maxsize=None)
    def words(self):
        return frozenset(self.body.split())


def answer(number):
    request = Request(number)
    return len(request.words())


def serve(count):
    return sum(answer(number) for number in range(count))


if __name__ == "__main__":
    print(serve(int(sys.argv[1])), "words")
