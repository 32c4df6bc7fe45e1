"""Stacks far deeper than any limit used, and many distinct ones."""

import sys


def down(depth, kept):
    kept.append(bytes(depth % 700))
    if depth:
        return [down(depth - 1, kept)]
    return [str(depth)]


def tree(depth, path):
    if depth == 0:
        return [f"{path:040}"]
    return [tree(depth - 1, path * 2), tree(depth - 1, path * 2 + 1)]


def ackermann(m, n, kept):
    kept.append(m * 1000 + n + 500)
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1, kept)
    return ackermann(m - 1, ackermann(m, n - 1, kept), kept)


class Node:
    def __init__(self, depth):
        self.child = Node(depth - 1) if depth else None

    def __repr__(self):
        return f"<{self.child!r}>"


def main():
    sys.setrecursionlimit(5000)
    kept = []
    result = down(900, kept)
    numbers = []
    ackermann(2, 9, numbers)
    node = Node(150)
    return kept, result, tree(9, 0), numbers, node, repr(node), sorted(range(50), key=lambda n: len(down(n, kept)))
