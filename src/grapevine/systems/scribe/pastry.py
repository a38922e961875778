"""Pastry's tables and routes (Rowstron & Druschel, Middleware 2001), for nodes on the 64-bit ring.

An id is a row of digits. A node's routing table has, for every row r and digit c, one node that shares the first r
digits with it and has c next; its leaf set has the nodes next to it on the ring, half on each side. A route comes
nearer to its key by a digit a hop, until the key lies among the leaves of the node reached; the nearest is its end.

The tables are those of an overlay that has converged, and a cell holds the node that is nearest in the network of all
that fit. Pastry fills cells from the nodes that a newcomer meets on its way in and takes nearer ones as it hears of
them (§2.5), so it only comes close to that. A cell is worked out when a route asks for it: for the first time, after
someone who fits has joined, or after its node has left. Whoever drives this says who joins and leaves; no messages
are sent for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from grapevine.model.errors import UsageError
from grapevine.model.ids import RING_BITS, clockwise, distance

Nodes = NDArray[np.int64]
Delays = Callable[[int, Nodes], NDArray[np.float64]]  # one way, from a node to each of these


class Pastry:
    """The tables of all nodes online; at first there are none."""

    def __init__(self, ids: Sequence[int], delays: Delays, *, digit_bits: int = 4, leaf_size: int = 16) -> None:
        if RING_BITS % digit_bits:
            raise UsageError(f"digit_bits={digit_bits}: needs to divide {RING_BITS}")
        if leaf_size < 2 or leaf_size % 2:
            raise UsageError(f"leaf_size={leaf_size}: needs to be even, half for each side, and at least 2")
        if len(set(ids)) < len(ids):
            raise UsageError("two nodes have the same id: give every node its own")
        self.changes = 0  # joins and leaves so far: routes are the same as long as it is
        self._ids = [int(id) for id in ids]
        self._words = np.array(self._ids, np.uint64)
        self._delays = delays
        self._bits, self._digit, self._half = digit_bits, (1 << digit_bits) - 1, leaf_size // 2
        self._online: set[int] = set()
        self._ring: list[int] = []  # the ids of those online, ascending
        self._nodes: list[int] = []  # and whose they are
        self._cells: dict[tuple[int, int], tuple[int | None, int]] = {}  # (node, prefix) → entry, and when it was made
        self._joined: Counter[int] = Counter()  # joins of nodes whose ids begin so: a cell's clock

    @property
    def rows(self) -> int:
        """Rows of a routing table: the digits of an id."""
        return RING_BITS // self._bits

    def join(self, node: int) -> None:
        """The node is in everybody's tables from now on."""
        if node in self._online:
            return
        id = self._ids[node]
        index = bisect_left(self._ring, id)
        self._ring.insert(index, id)
        self._nodes.insert(index, node)
        self._online.add(node)
        self._joined.update(self._prefix(id, row) for row in range(self.rows))
        self.changes += 1

    def leave(self, node: int) -> None:
        """The node is in nobody's tables any more."""
        if node not in self._online:
            return
        index = bisect_left(self._ring, self._ids[node])
        del self._ring[index], self._nodes[index]
        self._online.remove(node)
        self.changes += 1

    def leaf_set(self, node: int, avoid: Collection[int] = frozenset()) -> tuple[list[int], list[int]]:
        """The nodes next to it on the ring, down and up, nearest first; in a small network some are on both sides."""
        nodes, index = self._nodes, bisect_left(self._ring, self._ids[node])
        skipped = {node, *avoid}
        reach = range(min(len(nodes), self._half + len(skipped)))
        below = [leaf for i in reach if (leaf := nodes[index - 1 - i]) not in skipped]
        above = [leaf for i in reach if (leaf := nodes[index + i - len(nodes)]) not in skipped]
        return below[: self._half], above[: self._half]

    def entry(self, node: int, row: int, digit: int, avoid: Collection[int] = frozenset()) -> int | None:
        """A cell of the node's routing table: the nearest in the network that shares `row` digits with the node and has
        this one next. Ties go to the id with the smaller exclusive or, since ids are hashes; the cell of the node's own
        digit is empty."""
        own = self._prefix(self._ids[node], row)
        prefix = own >> self._bits << self._bits | digit
        state = self._joined[prefix]
        if prefix == own or not state:
            return None
        found, of = self._cells.get((node, prefix), (None, 0))
        if of != state or found not in self._online:
            found = self._nearest(node, row, prefix, frozenset())
            self._cells[node, prefix] = found, state
        return self._nearest(node, row, prefix, avoid) if found in avoid else found

    def next_hop(self, node: int, key: int, avoid: Collection[int] = frozenset()) -> int | None:
        """To whom the node passes a message for the key (§2.3); None when it is for the node itself.

        Those to avoid count as not online. A hop by the table shares more digits with the key, or as many and is
        nearer; a hop to a leaf is nearer, and leaves follow. So a route cannot go in circles, not even when everyone on
        it avoids others, unless somebody avoids all leaves around the key.
        """
        mine = self._ids[node]
        below, above = self.leaf_set(node, avoid)
        if self._among_leaves(mine, key, below, above):
            return self._nearer(mine, key, below + above)
        row = self._shared(mine, key)
        entry = self.entry(node, row, self._prefix(key, row) & self._digit, avoid)
        if entry is not None:
            return entry
        # The rare case: nobody has the key's next digit. Pastry takes anyone known who shares as many; we the nearest.
        known = {leaf for leaf in below + above if self._shared(self._ids[leaf], key) >= row}
        cells = (self.entry(node, r, digit, avoid) for r in range(row, self.rows) for digit in range(self._digit + 1))
        return self._nearer(mine, key, known.union(cell for cell in cells if cell is not None))

    def _among_leaves(self, mine: int, key: int, below: list[int], above: list[int]) -> bool:
        """Whether the key lies between the outermost leaves. Sides that are not full, or meet, hold everyone."""
        if len(below) < self._half or len(set(below + above)) < 2 * self._half:
            return True
        lowest, highest = self._ids[below[-1]], self._ids[above[-1]]
        return clockwise(lowest, key) <= clockwise(lowest, highest)

    def _nearer(self, mine: int, key: int, known: Iterable[int]) -> int | None:
        """Of these nodes the nearest to the key on the ring; None when it is no nearer than the node itself."""
        best = min(known, key=lambda node: (distance(self._ids[node], key), self._ids[node]), default=None)
        if best is None or (distance(mine, key), mine) < (distance(self._ids[best], key), self._ids[best]):
            return None
        return best

    def _nearest(self, node: int, row: int, prefix: int, avoid: Collection[int]) -> int | None:
        """The nearest in the network of those whose ids begin so."""
        rest = RING_BITS - self._bits * (row + 1)
        first = (prefix ^ 1 << self._bits * (row + 1)) << rest
        a, b = bisect_left(self._ring, first), bisect_left(self._ring, first + (1 << rest))
        fitting = np.array([other for other in self._nodes[a:b] if other not in avoid], np.int64)
        if not len(fitting):
            return None
        delays = self._delays(node, fitting)
        tied = fitting[delays == delays.min()]
        return int(tied[np.argmin(self._words[tied] ^ self._words[node])])

    def _prefix(self, id: int, row: int) -> int:
        """The first row + 1 digits, behind a one, so that prefixes of different lengths differ."""
        bits = self._bits * (row + 1)
        return 1 << bits | id >> RING_BITS - bits

    def _shared(self, a: int, b: int) -> int:
        """The digits that both ids begin with."""
        return (RING_BITS - (a ^ b).bit_length()) // self._bits
