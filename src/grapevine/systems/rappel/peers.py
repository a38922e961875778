"""Rappel on a simulated network: its nodes, their landmarks, and what is measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from grapevine.metrics.similarity import coverage_by_subscriptions, share_covered
from grapevine.model.identity import EventSignatures, key_from
from grapevine.systems.contracts.peer import Address, PeerSystem, Place, World
from grapevine.systems.contracts.trees import MESSAGES_AT_HEIGHT, PLACES, TREES, place_rows
from grapevine.systems.rappel.bloom import false_positive_rate
from grapevine.systems.rappel.config import RappelConfig, RappelPeersConfig
from grapevine.systems.rappel.measures import (
    BEST_FRIENDS_COVER,
    BEST_FRIENDS_SHARE,
    COVERAGE,
    FALSE_POSITIVES,
    FRIENDS,
    MESSAGE_BYTES,
)
from grapevine.systems.rappel.node import Memory, Setup
from grapevine.systems.rappel.outbox import Scale
from grapevine.systems.rappel.peer import RappelPeer
from grapevine.systems.rappel.position import Landmark, apart_ms


class Rappel(PeerSystem[RappelPeer]):
    """Makes the nodes and landmarks of a simulated network, and says what a measurement wants to know of them."""

    config_type = RappelPeersConfig
    config: RappelPeersConfig
    own_tables = (COVERAGE, TREES)
    own_findings = (BEST_FRIENDS_COVER, BEST_FRIENDS_SHARE, FALSE_POSITIVES, MESSAGE_BYTES, MESSAGES_AT_HEIGHT)

    def __init__(self, config: RappelPeersConfig, world: World) -> None:
        super().__init__(config, world)
        self._published: dict[Address, list[int]] = {}
        for topic, publisher in enumerate(world.publishers):
            self._published.setdefault(publisher, []).append(topic)
        first = world.workload.node_count
        self._landmarks = list(range(first, first + config.landmarks))
        self._keys: dict[Address, Ed25519PrivateKey] = {}
        self._scale = Scale()

    @classmethod
    def servers(cls, config: RappelConfig) -> int:
        return config.landmarks

    def server(self, index: int) -> Landmark:
        me = self._landmarks[index]
        return Landmark(me, self.config, self._landmarks, Random(f"landmark {self.world.seed} {index}"))

    def peer(self, node: Address, before: RappelPeer | None) -> RappelPeer:
        memory = before.memory() if before else Memory()
        names, subscriptions = self.world.workload.topic_names, memory.subscriptions
        if subscriptions is None:
            subscriptions = frozenset(self.world.workload.topics_of(node).tolist())
        setup = Setup(
            me=node,
            subscriptions=subscriptions,
            published=self._published.get(node, ()),
            publisher_of=self.world.publishers.__getitem__,
            key_of=lambda topic: names[topic],
            landmarks=self._landmarks,
            random=Random(f"rappel {self.world.seed} {node} {memory.session}"),
            memory=memory,
            signatures=self._signatures(node) if self.config.signed else None,
            scale=self._scale,
        )
        return RappelPeer(setup, self.config)

    def _signatures(self, node: Address) -> EventSignatures:
        """A node has the keys of the feeds that it publishes, and knows the public ones of the others (§4.1)."""
        own = {topic: self._key(node) for topic in self._published.get(node, ())}
        return EventSignatures(own, lambda topic: self._key(self.world.publishers[topic]).public_key())

    def _key(self, publisher: Address) -> Ed25519PrivateKey:
        if publisher not in self._keys:
            self._keys[publisher] = key_from(f"{self.world.seed} {publisher}")
        return self._keys[publisher]

    def neighbours(self, peer: RappelPeer) -> dict[Address, list[str]]:
        return peer.roles()

    def places(self, peer: RappelPeer) -> list[Place]:
        return [
            Place(
                topic,
                feed.parent.node if feed.parent else None,
                feed.height if feed.ancestors or feed.is_root else None,  # who has no parent yet does not know
                len(feed.children),
                feed.rejoins,
            )
            for topic, feed in peer.feeds.items()
        ]

    def own_rows(self, peers: Mapping[Address, RappelPeer]) -> dict[str, list[dict[str, Any]]]:
        return {
            FRIENDS.name: [self._friends_row(node, peer) for node, peer in peers.items()],
            PLACES.name: place_rows(self, peers),
        }

    def _friends_row(self, node: Address, peer: RappelPeer) -> dict[str, Any]:
        """What the friends of a node really cover: a truth that Bloom filters only approach."""
        roles, topics_of = peer.roles(), self.world.workload.topics_of
        friends = [other for other, kinds in roles.items() if "friend" in kinds]
        topics = set(topics_of(node).tolist())
        return {
            "node": node,
            "subscriptions": len(topics),
            "covered": len(topics & {topic for friend in friends for topic in topics_of(friend).tolist()}),
            "friends": len(friends),
            "fans": sum("fan" in kinds for kinds in roles.values()),
        }

    def findings(self) -> dict[str, float | None]:
        """What the config asks of the workload and of the filters, whoever runs; and what messages weigh."""
        found: dict[str, float | None] = {MESSAGE_BYTES.name: self._scale.mean_bytes}
        if friends := self.config.best_friends:
            workload, seed = self.world.workload, self.world.seed
            found[BEST_FRIENDS_COVER.name] = share_covered(workload, friends, seed=seed)
            for least, share in coverage_by_subscriptions(workload, friends, seed=seed).items():
                found[BEST_FRIENDS_SHARE.of(number=least).name] = share
        if self.config.filter_probes:
            for feeds in (50, 100, 200):
                rate = false_positive_rate(feeds, self.config.filter_probes, name=f"feed {self.world.seed}")
                found[FALSE_POSITIVES.of(number=feeds).name] = rate
        return found

    def position(self, peer: RappelPeer) -> tuple[float, ...] | None:
        return peer.position or None

    def distance(self, a: tuple[float, ...], b: tuple[float, ...]) -> float:
        return apart_ms(a, b, self.config.heights)

    def restart_counts(self, peer: RappelPeer) -> None:
        for feed in peer.feeds.values():
            feed.rejoins = 0
