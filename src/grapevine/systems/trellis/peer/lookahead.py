"""Greedy lookups over a node's links and their links, which every neighbour tells.

A step goes to the link that is nearest to the key, or next to whom is nearest, if that is nearer than the node itself.
So the distance of what is aimed at falls with every step, or stays and is reached by the next. Lookups end at a node
that is nearer to the key than its neighbours and theirs; where the links of the ring are right it is nearest of all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping

from grapevine.model.ids import distance
from grapevine.systems.contracts.peer import Address


class Lookahead:
    """The ring ids within two steps of a node."""

    def __init__(self, me: Address, ring_id_of: Callable[[Address], int]) -> None:
        self._me, self._ring_id_of, self._mine = me, ring_id_of, ring_id_of(me)
        self._ids: list[int] = []
        self._at: list[tuple[Address, tuple[Address, ...]]] = []  # who has the id; links next to it
        self._of: dict[Address, tuple[Address, ...]] = {}

    def look(self, links: Mapping[Address, Iterable[Address]]) -> bool:
        """These are the links now, and theirs; whether that is another picture than before."""
        now = {node: tuple(beyond) for node, beyond in links.items()}
        if now == self._of:
            return False
        self._of = now
        ways: dict[Address, list[Address]] = {}
        for node, beyond in now.items():
            for other in beyond:
                if other != self._me and other not in now:
                    ways.setdefault(other, []).append(node)
        found = [(self._ring_id_of(node), node, (node,)) for node in now]
        found += [(self._ring_id_of(node), node, tuple(sorted(over))) for node, over in ways.items()]
        found.sort()
        self._ids = [ring_id for ring_id, _, _ in found]
        self._at = [(node, over) for _, node, over in found]
        return True

    def next_hop(self, key: int, avoided: Collection[Address]) -> Address | None:
        """The link to go to on the way to a ring id, without some; None: this node is the nearest that it knows."""
        mine, count = distance(self._mine, key), len(self._ids)
        above = bisect_left(self._ids, key)
        below, left = above - 1, count
        while left > 0:
            up, down = above % count, below % count
            if distance(self._ids[up], key) < distance(self._ids[down], key):
                at, above = up, above + 1
            else:
                at, below = down, below - 1
            left -= 1
            if distance(self._ids[at], key) >= mine:
                return None
            over = [node for node in self._at[at][1] if node not in avoided]
            if over:
                return min(over, key=lambda node: (distance(self._ring_id_of(node), key), node))
        return None
