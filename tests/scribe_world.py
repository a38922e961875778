"""A small network with Scribe in virtual time for tests, and what has to hold in it once it is quiet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np

from grapevine.model.workload import Workload
from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import Deliver, World
from grapevine.systems.scribe.config import ScribeConfig
from grapevine.systems.scribe.messages import Event
from grapevine.systems.scribe.peer import ScribePeer
from grapevine.systems.scribe.peers import Scribe

SOME = range(5, 35)


class Network:
    """Nodes with Scribe, their network, and what they received."""

    def __init__(
        self,
        subscribers: Mapping[int, Sequence[int]],
        *,
        nodes: int = 60,
        publishers: Sequence[int] = (0,),
        seed: int = 1,
        config: Mapping[str, Any] | None = None,
        start: bool = True,
        loss: float = 0.0,
        duplication: float = 0.0,
    ) -> None:
        pairs = [(node, topic) for topic, members in subscribers.items() for node in members]
        workload = Workload.from_pairs(
            [node for node, _ in pairs],
            [topic for _, topic in pairs],
            node_count=nodes,
            topic_count=len(publishers),
            publishers=publishers,
        )
        delays = np.random.default_rng(seed).uniform(0.01, 0.2, (nodes, nodes))
        self.system = Scribe(
            ScribeConfig(**(config or {})), World(workload, publishers, lambda a, b: float(delays[a, b]), seed)
        )
        self.engine = Events(
            lambda _, a, b: float(delays[a, b]), seed=seed, loss=loss, duplication=duplication, observer=self
        )
        self.publishers = publishers
        self.last: dict[int, ScribePeer] = {}
        self.deliveries: Counter[tuple[int, int, int]] = Counter()  # (node, topic, sequence)
        self.receipts: Counter[tuple[int, int, int]] = Counter()
        if start:
            for node in range(nodes):
                self.start(node)
            self.run(5)

    def start(self, node: int) -> None:
        self.last[node] = self.system.peer(node, self.last.get(node))
        self.engine.start(node, self.last[node])

    def run(self, seconds: float) -> None:
        self.engine.run(self.engine.now + seconds)

    def publish(self, topic: int = 0) -> None:
        publisher = self.publishers[topic]
        self.engine.do(publisher, self.engine.peers[publisher].publish(self.engine.now, topic, b"news"))

    def subscribe(self, node: int, topic: int = 0) -> None:
        self.engine.do(node, self.engine.peers[node].subscribe(self.engine.now, topic))

    def unsubscribe(self, node: int, topic: int = 0) -> None:
        self.engine.do(node, self.engine.peers[node].unsubscribe(self.engine.now, topic))

    def sent(self, *_: Any) -> None: ...

    def received(self, now: float, node: int, sender: int, message: Event) -> None:
        self.receipts[node, message.topic, message.sequence] += 1

    def delivered(self, now: float, node: int, event: Deliver) -> None:
        self.deliveries[node, event.topic, event.sequence] += 1

    def who_got(self, sequence: int, topic: int = 0) -> set[int]:
        assert max(self.deliveries.values(), default=1) == 1, "an event was delivered twice"
        return {node for node, *event in self.deliveries if event == [topic, sequence]}

    def tree(self, topic: int = 0) -> nx.DiGraph[int]:
        """Edges from parents to children, as the children see it."""
        graph: nx.DiGraph[int] = nx.DiGraph()
        for node, peer in self.engine.peers.items():
            assert isinstance(peer, ScribePeer)
            if topic in peer.trees:
                graph.add_node(node)
                if (parent := self.parent(node, topic)) is not None:
                    graph.add_edge(parent, node)
        return graph

    def parent(self, node: int, topic: int = 0) -> int | None:
        """From whom the node gets the topic's events."""
        return {place.topic: place.parent for place in self.system.places(self.last[node])}[topic]

    def agrees(self, topic: int = 0) -> bool:
        """Whether parents and children name each other."""
        peers = {node: peer for node, peer in self.engine.peers.items() if isinstance(peer, ScribePeer)}
        down = {(n, child) for n, peer in peers.items() if topic in peer.trees for child in peer.trees[topic].children}
        return down == set(self.tree(topic).edges)

    def inner(self, topic: int = 0) -> list[int]:
        """Nodes with a parent and children, those with most below them first."""
        tree = self.tree(topic)
        found = [node for node in tree if tree.in_degree(node) and tree.out_degree(node)]
        return sorted(found, key=lambda node: -len(nx.descendants(tree, node)))


def assert_tree(network: Network, members: Sequence[int], topic: int = 0) -> None:
    """The topic has one tree, rooted at its publisher, with all members in it, and its ends agree on every edge."""
    tree = network.tree(topic)
    assert nx.is_arborescence(tree)
    assert tree.in_degree(network.publishers[topic]) == 0
    assert set(members) <= set(tree)
    assert network.agrees(topic)
