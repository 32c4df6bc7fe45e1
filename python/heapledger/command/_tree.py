"""The call tree of one or several snapshots: their stacks as paths from the oldest frame down.

Nodes are in preorder: node 0 is the root, which is not a frame, and everything below a node follows it. In a `joined`
tree, stacks that were cut at the frame limit are below joints (src/core/tree.h). These are nodes with the file
_kinds.CUT, and their parents are a guess.
"""

from __future__ import annotations

import functools

from heapledger._ledger import _call_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from heapledger import Snapshot
    from heapledger._types import Location


class CallTree:
    """locations: (file, line, function or None); by node: parents, and nodes, which are 1 + a place in `locations`,
    or 0 for the root. By snapshot and node: own_sizes and own_counts of what was allocated there, sizes and counts of
    what was allocated there or below.

    What callers walk as a whole is a list, made on first use. Of the rest they look at a few nodes only.
    """

    def __init__(self, snapshots: Iterable[Snapshot], joined: bool = False) -> None:
        parents, nodes, ends, locations, sums = _call_tree(tuple(snapshots), joined)
        self.locations: tuple[Location, ...] = locations[1:]
        self._parents, self._nodes, self._ends = (memoryview(one).cast("I") for one in (parents, nodes, ends))
        self._sums = [[memoryview(numbers).cast("Q") for numbers in one] for one in sums if one is not None]
        self.sizes: list[memoryview[int]] = [one[2] for one in self._sums]
        self.counts: list[memoryview[int]] = [one[3] for one in self._sums]

    @functools.cached_property
    def parents(self) -> list[int]:
        return self._parents.tolist()

    @functools.cached_property
    def nodes(self) -> list[int]:
        return self._nodes.tolist()

    @functools.cached_property
    def own_sizes(self) -> list[list[int]]:
        return [one[0].tolist() for one in self._sums]

    @functools.cached_property
    def own_counts(self) -> list[list[int]]:
        return [one[1].tolist() for one in self._sums]

    def children(self, node: int) -> Iterator[int]:
        """The nodes right below a node."""
        child, end = node + 1, self._ends[node]
        while child < end:
            yield child
            child = self._ends[child]

    def place(self, node: int) -> int:
        """1 + the place in `locations` of a node."""
        return self._nodes[node]

    def location(self, node: int) -> Location:
        """(file, line, function) of a node that is not the root."""
        return self.locations[self._nodes[node] - 1]

    def path(self, node: int) -> list[int]:
        """Places in `locations` of a node and its callers, the oldest first."""
        found, nodes, parents = [], self.nodes, self.parents
        while node:
            found.append(nodes[node] - 1)
            node = parents[node]
        found.reverse()
        return found

    def frames(self, node: int) -> tuple[Location, ...]:
        """(file, line, function) of a node and its callers, the oldest first."""
        return tuple([self.locations[place] for place in self.path(node)])
