"""Who has a place among the open connections, and who makes room for whom.

Keys are free, so places are not given by identity alone. A node has `most_connections` places, and three rules:

1. *Own choices first.* A share of the places (`own_share`) is for connections that this node opens. When all places are
   taken, one that it opens itself takes that of a stranger, also of a link that only the other end chose. So nobody who
   comes in numbers keeps a node from whom it has chosen itself.
2. *No origin has many.* Others open at most `most_per_address` connections from one address and `most_per_subnet` from
   one subnet. Whoever is there stays if it is a link; otherwise the one that was idle for longest makes room.
3. *Who comes from elsewhere is let in.* When the places for others are all taken, the newcomer gets one of the subnet
   that has most, if that has at least two more than the newcomer's own: idle ones first, then the last to come. Those
   who were there before a crowd stay, as in Bitcoin's rule of eviction. Among equals only idle ones make room.

An idle connection is one that is no link of the overlay (`pinned`). Links of this node's own choice (`chosen`) never
make room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from grapevine.model.errors import PeerError
from grapevine.net.config import NodeConfig
from grapevine.net.connection import Connection
from grapevine.net.origins import Origin, Origins
from grapevine.systems.contracts.peer import Address


class Slots:
    """The rule of places. It looks at connections and changes none."""

    def __init__(
        self, config: NodeConfig, pinned: Collection[Address], chosen: Callable[[], Collection[Address]]
    ) -> None:
        self._config, self._pinned, self._chosen = config, pinned, chosen
        self._origins = Origins(config.uncounted)

    def check_greeting(self, host: str, others: Iterable[Connection]) -> None:
        """PeerError if too many from this address are here, counting those that have not said hello."""
        origin, most = self._origins.of(host), self._config.most_per_address + self._config.handshakes_per_address
        if origin is not None and sum(self._is_of(origin, other) for other in others if not other.outgoing) >= most:
            raise PeerError(f"{most} connections from {origin.address} are here already")

    def _is_of(self, origin: Origin, connection: Connection) -> bool:
        return self._origins.of(connection.came_from) == origin

    def who_makes_room(self, new: Connection, open_: Mapping[Address, Connection]) -> Connection | None:
        """The open connection that has to go for the new one; None: there is room. PeerError if the new one has to."""
        if new.outgoing:
            return self._for_own(open_)
        others, origin = self._of_others(open_), self._origins.of(new.came_from)
        if origin is not None:
            near = {node: link for node, link in others.items() if self._is_of(origin, link)}
            if len(near) >= self._config.most_per_address:
                return self._idle(near, f"{len(near)} connections from {origin.address} are here already")
            around = {node: link for node, link in others.items() if self._subnet(node, link) == origin.subnet}
            if len(around) >= self._config.most_per_subnet:
                return self._idle(around, f"{len(around)} connections from {origin.subnet} are here already")
        if len(others) >= self._config.most_incoming:
            subnet = None if origin is None else origin.subnet
            return self._of_a_crowd(others, subnet) or self._idle(others, _full(others))
        return self._idle(open_, _full(open_)) if len(open_) >= self._config.most_connections else None

    def is_full(self, open_: Mapping[Address, Connection]) -> bool:
        """Whether all places for others are taken by links, and nobody would make room for a newcomer from anywhere."""
        others = self._of_others(open_)
        if len(others) < self._config.most_incoming or not all(node in self._pinned for node in others):
            return False
        return self._of_a_crowd(others, None) is None

    def _for_own(self, open_: Mapping[Address, Connection]) -> Connection | None:
        if len(open_) < self._config.most_connections:
            return None
        idle = [link for node, link in open_.items() if node not in self._pinned]
        if idle:
            return min(idle, key=lambda link: link.used)
        found = self._of_a_crowd(self._of_others(open_), None, least=1)
        if found is None:
            raise PeerError(_full(open_))
        return found

    @staticmethod
    def _of_others(open_: Mapping[Address, Connection]) -> dict[Address, Connection]:
        return {node: link for node, link in open_.items() if not link.outgoing}

    def _subnet(self, node: Address, link: Connection) -> str | Address:
        """The subnet that it counts for; one that is not counted is a subnet of its own."""
        origin = self._origins.of(link.came_from)
        return node if origin is None else origin.subnet

    def _of_a_crowd(
        self, others: Mapping[Address, Connection], newcomers: str | None, *, least: int = 2
    ) -> Connection | None:
        """One of the subnet with most connections, if it has so many more than the newcomer's own."""
        chosen, subnets = self._chosen(), {node: self._subnet(node, link) for node, link in others.items()}
        sizes = Counter(subnets.values())
        free = [node for node in others if node not in chosen]
        most = max((sizes[subnets[node]] for node in free), default=0)
        if most < (sizes[newcomers] if newcomers is not None else 0) + least:
            return None
        crowd = [node for node in free if sizes[subnets[node]] == most]
        idle = [others[node] for node in crowd if node not in self._pinned]
        return min(idle, key=lambda link: link.used) if idle else others[crowd[-1]]

    def _idle(self, among: Mapping[Address, Connection], refusal: str) -> Connection:
        idle = [link for node, link in among.items() if node not in self._pinned]
        if not idle:
            raise PeerError(refusal)
        return min(idle, key=lambda link: link.used)


def _full(links: Collection[Address]) -> str:
    return f"there are {len(links)} connections already"
