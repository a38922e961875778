"""SpiderCast (Chockler et al., DEBS 2007) message by message: the rules of `systems/spidercast`, by sans-IO peers.

Differs from the rounds: nobody knows who is there. A node's view of others is partial, comes by gossip, and is as old
as gossip is; each end of a link holds its own opinion of it, which messages bring together; every node has rounds of
its own, a tenth longer or shorter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from random import Random

from grapevine.systems.contracts.peer import Address, PeerSystem, World
from grapevine.systems.spidercast.peer.config import SpiderCastPeerConfig
from grapevine.systems.spidercast.peer.peer import SpiderCastPeer
from grapevine.systems.spidercast.peer.setup import Setup

_CONTACTS = 5  # nodes that a newcomer knows


class SpiderCastPeers(PeerSystem[SpiderCastPeer]):
    """Makes the nodes of a simulated network, and says what is measured of them."""

    config_type = SpiderCastPeerConfig

    def __init__(self, config: SpiderCastPeerConfig, world: World) -> None:
        super().__init__(config, world)
        self._started: list[Address] = []  # all nodes that have been there, in this order
        self._random = Random(f"contacts {world.seed}")
        self._published: defaultdict[Address, list[int]] = defaultdict(list)
        for topic, publisher in enumerate(world.publishers):
            self._published[publisher].append(topic)

    def peer(self, node: Address, before: SpiderCastPeer | None) -> SpiderCastPeer:
        contacts = self._random.sample(self._started, min(_CONTACTS, len(self._started)))
        if before is None:
            self._started.append(node)
        setup = Setup(
            me=node,
            topics=self.world.workload.topics_of(node).tolist(),
            published=self._published[node],
            contacts=contacts,
            random=Random(f"spidercast {self.world.seed} {node} {before.memory().version if before else 0}"),
            memory=before.memory() if before else None,
        )
        return SpiderCastPeer(setup, self.config)

    def neighbours(self, peer: SpiderCastPeer) -> dict[Address, list[str]]:
        return peer.roles()

    def carriers(self, peer: SpiderCastPeer, now: float) -> dict[int, Collection[Address]]:
        return {topic: peer.partners(now, topic) for topic in sorted(peer.carried(now))}
