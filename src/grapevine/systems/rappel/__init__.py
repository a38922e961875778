"""Rappel (Patel et al., Computer Networks 53, 2009): friends find the trees, trees carry the updates.

Every node has coordinates in a space of latencies and a Bloom filter of its feeds. It keeps a few friends that are near
and share its feeds; who that might be it hears from the friends of friends and fans, and audits one after the other
(`friends`). A newcomer to a feed asks a friend who has it, and wanders through the feed's tree until it meets a node
that is closer to the publisher than itself and has room (`feed`, Algorithm 2). Trees are compacted by rejoining at
ancestors now and then; updates are pushed down and, after a failure, pulled (`trees`). Only subscribers are in a tree,
so nobody ever gets an update that it did not ask for.

Differs from the paper (docs/papers.md#rappel): pings to all neighbours of a node go out together; the listing of
Algorithm 1 takes victims among the candidates and that of Algorithm 2 tells the newcomer to change its parent, the text
says friends and the evicted child, as here; publishers keep their coordinates from one session to the next; who needs
another parent because its own has failed says so, lest it is sent back there.
"""

from __future__ import annotations

from random import Random

from grapevine.systems.peer import Address, PeerSystem, World, register_peers
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.peer import Memory, RappelPeer
from grapevine.systems.rappel.position import Landmark

__all__ = ["Landmark", "Memory", "Rappel", "RappelConfig", "RappelPeer"]


class Rappel(PeerSystem[RappelPeer]):
    """Rappel on a simulated network."""

    name, paper = "rappel", "Patel et al., Computer Networks 2009"
    summary = "friends by interest and distance; one tree of subscribers per feed"
    config_type = RappelConfig

    def __init__(self, config: RappelConfig, world: World) -> None:
        super().__init__(config, world)
        self._published: dict[Address, list[int]] = {}
        for topic, publisher in enumerate(world.publishers):
            self._published.setdefault(publisher, []).append(topic)
        first = world.workload.node_count
        self._landmarks = list(range(first, first + config.landmarks))

    @property
    def servers(self) -> int:
        return len(self._landmarks)

    def server(self, number: int) -> Landmark:
        me = self._landmarks[number]
        return Landmark(me, self.config, self._landmarks, Random(f"landmark {self.world.seed} {number}"))

    def peer(self, node: Address, before: RappelPeer | None) -> RappelPeer:
        memory = before.memory() if before else Memory()
        names, subscriptions = self.world.workload.topic_names, memory.subscriptions
        if subscriptions is None:
            subscriptions = frozenset(self.world.workload.topics_of(node).tolist())
        return RappelPeer(
            node,
            self.config,
            subscriptions=subscriptions,
            published=self._published.get(node, ()),
            publisher_of=self.world.publishers.__getitem__,
            key_of=lambda topic: names[topic],
            landmarks=self._landmarks,
            random=Random(f"rappel {self.world.seed} {node} {memory.session}"),
            memory=memory,
        )

    def parent(self, peer: RappelPeer, topic: int) -> Address | None:
        feed = peer.trees.feeds.get(topic)
        return feed.parent.node if feed is not None and feed.parent is not None else None

    def neighbours(self, peer: RappelPeer) -> dict[Address, list[str]]:
        return peer.neighbours()


register_peers(Rappel)
