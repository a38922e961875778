"""Pastry below Scribe: one set of converged tables that all nodes of a simulation share."""

from __future__ import annotations

from collections.abc import Collection

from grapevine.systems.contracts.peer import Address
from grapevine.systems.scribe.pastry import Pastry


class Overlay:
    """Who is in Pastry's tables. A node that has not said for `patience_s` that it is there is taken out of them.

    One object for all nodes of a simulation. It stands for the messages by which Pastry would find out the same.
    """

    def __init__(self, pastry: Pastry, patience_s: float) -> None:
        self._pastry, self._patience_s = pastry, patience_s
        self._seen: dict[Address, float] = {}  # the longest silent first

    def here(self, now: float, node: Address) -> None:
        """The node says that it is there, as it does with every heartbeat; a newcomer is in the tables from now on."""
        self._seen.pop(node, None)
        self._seen[node] = now
        self._pastry.join(node)

    def gone(self, node: Address) -> None:
        """The node leaves in good order, or was silent for too long: it is in no table any more."""
        self._seen.pop(node, None)
        self._pastry.leave(node)

    def changes(self, now: float) -> int:
        """A number that grows whenever tables change: equal numbers mean equal routes. Takes silent nodes out first."""
        while self._seen and now - (longest := next(iter(self._seen.items())))[1] > self._patience_s:
            self.gone(longest[0])
        return self._pastry.changes

    def next_hop(self, now: float, node: Address, key: int, avoid: Collection[Address]) -> Address | None:
        """The next node on the route to the key, without those to avoid; None if this node is the nearest to it."""
        self.changes(now)
        return self._pastry.next_hop(node, key, avoid)
