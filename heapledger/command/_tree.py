"""The call tree of one or several snapshots: their stacks as paths from the oldest frame down.

Nodes are in preorder: node 0 is the root, which is no frame, and a node is followed by all that is below it.
"""

import functools

from heapledger._ledger import _call_tree


class CallTree:
    """locations: (file, line, function or None); by node: parents, and nodes, which are 1 + a place in `locations`,
    or 0 for the root. By snapshot and node: own_sizes and own_counts of what was allocated there, sizes and counts of
    what was allocated there or below.
    """

    def __init__(self, snapshots):
        parents, nodes, locations, sums = _call_tree(tuple(snapshots))
        self.parents = memoryview(parents).cast("I").tolist()
        self.nodes = memoryview(nodes).cast("I").tolist()
        self.locations = locations[1:]
        self._sums = sums

    def _numbers(self, which):
        return [memoryview(one[which]).cast("Q").tolist() for one in self._sums]

    @functools.cached_property
    def own_sizes(self):
        return self._numbers(0)

    @functools.cached_property
    def own_counts(self):
        return self._numbers(1)

    @functools.cached_property
    def sizes(self):
        return self._numbers(2)

    @functools.cached_property
    def counts(self):
        return self._numbers(3)

    @functools.cached_property
    def ends(self):
        """By node: the number after the last node below it."""
        parents = self.parents
        ends = list(range(1, len(parents) + 1))
        for node in range(len(parents) - 1, 0, -1):
            parent = parents[node]
            if ends[parent] < ends[node]:
                ends[parent] = ends[node]
        return ends

    def children(self, node):
        """The nodes right below a node."""
        child, end = node + 1, self.ends[node]
        while child < end:
            yield child
            child = self.ends[child]

    def location(self, node):
        """(file, line, function) of a node that is not the root."""
        return self.locations[self.nodes[node] - 1]

    def path(self, node):
        """Places in `locations` of a node and its callers, the oldest first."""
        found, nodes, parents = [], self.nodes, self.parents
        while node:
            found.append(nodes[node] - 1)
            node = parents[node]
        found.reverse()
        return found

    def frames(self, node):
        """(file, line, function) of a node and its callers, the oldest first."""
        return tuple([self.locations[place] for place in self.path(node)])
