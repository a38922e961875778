"""A small network of Trellis' peers in virtual time for tests, whose bound is watched from outside at every moment."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from grapevine.model.workload import Workload
from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import Address, Deliver, Effects, LinkDown, LinkUp, World
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.messages import Event
from grapevine.systems.trellis.peer.peer import TrellisPeer
from grapevine.systems.trellis.peers import TrellisPeers


class WatchedEvents(Events):
    """Looks after every effect of a link whether a node has more neighbours than it may, counted from both ends."""

    most_links = 0
    most_seen = 0

    def do(self, node: Address, effects: Effects) -> None:
        super().do(node, effects)
        if any(type(effect) in (LinkUp, LinkDown) for effect in effects):
            self.look()

    def look(self) -> None:
        """Neighbours of a node are those that it counts, and those that count it."""
        found: dict[Address, set[Address]] = {node: set() for node in self.peers}
        for node, peer in self.peers.items():
            assert isinstance(peer, TrellisPeer)
            for other in peer.links.neighbours:
                found[node].add(other)
                if other in found:
                    found[other].add(node)
        self.most_seen = max(self.most_seen, *(len(nodes) for nodes in found.values()))
        assert self.most_seen <= self.most_links, f"at {self.now:.3f} s"


class Network:
    """Nodes with Trellis, and what they received."""

    def __init__(self, workload: Workload, *, loss: float = 0.0, duplication: float = 0.0, **settings: Any) -> None:
        self.workload, self.config = workload, TrellisPeerConfig(**settings)
        delays, count = Random(1), workload.node_count
        delay = [[delays.uniform(0.01, 0.2) for _ in range(count)] for _ in range(count)]
        world = World(workload, [0] * workload.topic_count, lambda a, b: delay[a][b], 1)
        self.system = TrellisPeers(self.config, world)
        self.engine = WatchedEvents(
            lambda _, a, b: delay[a][b] * delays.uniform(0.5, 3.0) if a < count and b < count else 0.1,
            loss=loss,
            duplication=duplication,
            observer=self,
        )
        self.engine.most_links = self.config.most_links
        self.got: Counter[tuple[Address, int, int]] = Counter()
        self._sequence: Counter[int] = Counter()
        self._before: dict[Address, TrellisPeer] = {}

    @property
    def peers(self) -> dict[Address, TrellisPeer]:
        return {node: peer for node, peer in self.engine.peers.items() if isinstance(peer, TrellisPeer)}

    def start(self, *nodes: Address) -> None:
        for node in nodes:
            self._before[node] = self.system.peer(node, self._before.get(node))
            self.engine.start(node, self._before[node])

    def run(self, seconds: float) -> None:
        self.engine.run(self.engine.now + seconds)

    def publish(self, topic: int, node: Address, wait_s: float = 20) -> set[Address]:
        """Publish an event; who has it `wait_s` later, the publisher aside."""
        self._sequence[topic] += 1
        number = self._sequence[topic]
        self.engine.do(node, self.engine.peers[node].publish(self.engine.now, topic, b"news", number))
        self.run(wait_s)
        assert set(self.got.values()) <= {1}, "nothing is delivered twice"
        return {who for who, *event in self.got if event == [topic, number]} - {node}

    def wanting(self, topic: int) -> set[Address]:
        return {node for node, peer in self.peers.items() if topic in peer.topics.own}

    def everybody_is_reached(self) -> None:
        for topic in range(self.workload.topic_count):
            wanting = self.wanting(topic)
            if wanting:
                publisher = min(wanting)
                assert self.publish(topic, publisher) == wanting - {publisher}, f"topic {topic}"

    def sent(self, *_: Any) -> None: ...

    def received(self, *_: Any) -> None: ...

    def delivered(self, now: float, node: Address, event: Deliver) -> None:
        self.got[node, event.topic, event.sequence] += 1


def payloads(network: Network) -> int:
    """Copies of events that were sent so far."""
    return network.engine.counts[Event]
