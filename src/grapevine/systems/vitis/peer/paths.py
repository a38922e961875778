"""The relay paths of a node to all rendezvous of its topics: who asks for them, and where they lead.

Vitis has one rendezvous for a topic, the node nearest to the topic's id on the ring, and one gateway of each cluster,
which everybody agrees on by hearsay (Algorithm 5). Keys cost nothing, so somebody can make one that is nearer to a
topic than any other: it is the rendezvous then, and if it subscribes the gateway too, and may drop whatever it should
pass on.

So there may be `rendezvous` of them, at places that follow from the topic and have nothing to do with each other. Each
has paths of its own. For the first the gateways are elected; for every further one a member is a gateway if it is
nearer to that place than all members that it has itself chosen as neighbours, or than all but one, which may be an
enemy. That needs no message, and nobody's word but what neighbours of one's own choice say of themselves. There are
more such gateways than elected ones, but at least two in every cluster, the nearest of all. An event that reaches a
cluster by one path reaches all of it, so who drops has to be at all places, or between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np

from grapevine.kernels.rng import FIRST_FACTOR, GAMMA, SECOND_FACTOR
from grapevine.systems.contracts.peer import Address
from grapevine.systems.gossip.messages import TOPICS_A_PART, Topics, pack, parts, unpack
from grapevine.systems.vitis.peer.config import VitisPeerConfig
from grapevine.systems.vitis.peer.elections import Elections
from grapevine.systems.vitis.peer.messages import Relay
from grapevine.systems.vitis.peer.overlay import Overlay
from grapevine.systems.vitis.peer.relays import Relays, RingIds


def place(ring_ids: Topics, which: int) -> Topics:
    """Where the rendezvous of this number is of topics with these ring ids: the first there, others anywhere."""
    if not which:
        return ring_ids
    z = ring_ids + np.uint64(which * int(GAMMA) % 2**64)  # SplitMix64's finaliser (`rng.mix`), for arrays
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST_FACTOR)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND_FACTOR)
    return np.asarray(z ^ (z >> np.uint64(31)))


class Paths:
    """All relay paths that begin at a node or pass it."""

    def __init__(self, overlay: Overlay, elections: Elections, config: VitisPeerConfig, ring_ids: RingIds) -> None:
        self._overlay, self._elections, self._config = overlay, elections, config

        def places(which: int) -> Callable[[Topics], Topics]:
            return lambda topics: place(ring_ids(topics), which)

        self._places = [places(which) for which in range(config.rendezvous)]
        self._relays = [Relays(places, config.most_relays) for places in self._places]

    def renew(self, now: float) -> Iterator[tuple[Address, Relay]]:
        """Requests to the next hops of all topics whose gateway this node is (Algorithm 5, lines 20 and 21)."""
        elections = self._elections
        for which in range(len(self._relays)):
            ring_ids = place(elections.ring_ids, which)
            mine = elections.nearest_of(ring_ids, set(self._overlay.table)) if which else elections.gateway_of()
            yield from self._extend(now, which, elections.topics[mine], ring_ids[mine], None)

    def on_relay(self, now: float, sender: Address, message: Relay) -> tuple[list[tuple[Address, Relay]], bool]:
        """A neighbour asks for paths: requests to the next hops, and whether it asks for more than it gets.

        A path is not extended where that was done a moment ago for another gateway.
        """
        which = message.rendezvous
        if not 0 <= which < len(self._relays):
            return [], True
        relays, until, asked = self._relays[which], now + self._config.relay_s, unpack(message.topics)
        is_surplus = relays.exceeds(sender, asked)
        topics, ring_ids = relays.join(sender, asked, until, until - self._config.round_s)
        return list(self._extend(now, which, topics, ring_ids, sender)), is_surplus

    def _extend(
        self, now: float, which: int, topics: Topics, ring_ids: Topics, origin: Address | None
    ) -> Iterator[tuple[Address, Relay]]:
        """Take paths, which `origin` asks for, a step nearer to their rendezvous; there they end."""
        until = now + self._config.relay_s
        for hop, at in self._overlay.next_hops(now, ring_ids):
            asked = self._relays[which].ask(hop, topics[at], ring_ids[at], until, origin)
            for some in parts(asked, TOPICS_A_PART) if len(asked) else ():
                yield hop, Relay(pack(some), which)

    def towards(self, now: float, topic: int) -> list[Address]:
        """The next hops towards all rendezvous of a topic, for an event of a node that is on no path."""
        wanted = np.array([topic], np.uint64)
        hops = [hop for places in self._places for hop, _ in self._overlay.next_hops(now, places(wanted))]
        return list(dict.fromkeys(hops))

    def of(self, now: float, topic: int) -> list[Address]:
        """The neighbours to and from which a topic's events are carried."""
        return [node for relays in self._relays for node in relays.of(now, topic)]

    def topics(self, now: float) -> Collection[int]:
        """All topics that are carried for somebody."""
        return set[int]().union(*(relays.topics(now) for relays in self._relays))

    def drop(self, node: Address) -> None:
        """The neighbour is gone, and with it all paths that lead there."""
        for relays in self._relays:
            relays.drop(node)

    def expire(self, now: float) -> None:
        """End the paths that were not renewed in time. Called once a round."""
        for relays in self._relays:
            relays.expire(now)
