"""A small Rappel network in virtual time for tests, and what has to hold in it at every instant."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import networkx as nx
import numpy as np

from grapevine import Workload
from grapevine.sim.events import Events, Observer
from grapevine.systems.contracts.peer import Address, Deliver, Effects, Message, Send, World
from grapevine.systems.rappel.children import Children
from grapevine.systems.rappel.config import RappelPeersConfig
from grapevine.systems.rappel.feed import Feed, Rank
from grapevine.systems.rappel.leaving import Leaving
from grapevine.systems.rappel.messages import Adopt, Join
from grapevine.systems.rappel.node import Memory, Node, Setup, Signatures
from grapevine.systems.rappel.peer import RappelPeer
from grapevine.systems.rappel.peers import Rappel
from grapevine.systems.rappel.updates import Updates

Points = list[tuple[float, float]]  # in the plane, ms
SETTLED_S = 65.0  # landmarks rest from here on
LOCATED_S = 5.0  # a node knows its coordinates so long after its start


def scattered(count: int, seed: int, side_ms: float = 100.0) -> Points:
    random = Random(f"points {seed}")
    return [(random.uniform(0, side_ms), random.uniform(0, side_ms)) for _ in range(count)]


def workload_of(interests: Sequence[Iterable[int]], topic_count: int) -> Workload:
    pairs = np.array([(node, topic) for node, mine in enumerate(interests) for topic in sorted(mine)]).reshape(-1, 2)
    return Workload.from_pairs(*pairs.T, node_count=len(interests), topic_count=topic_count)


class Publisher:
    """The publisher of feed 0, without a network: at the origin of a line, others are at `x`."""

    def __init__(self, signatures: Signatures | None = None, **parameters: Any) -> None:
        setup = Setup(
            me=0,
            subscriptions=[],
            published=[0],
            publisher_of=lambda topic: 0,
            landmarks=[],
            random=Random(1),
            memory=Memory(position=(0.0,)),
        )
        self.node = Node(setup, RappelPeersConfig(**parameters))
        self.out, self.feed = self.node.out, self.node.feeds[0]
        self.leaving, self.updates = Leaving(self.node), Updates(self.node, signatures)
        self.children = Children(self.node, self.leaving)

    def join(self, node: Address, x: float, now: float = 0.0, failed: Address | None = None) -> None:
        self.children.on_join(now, node, Join(0, (x,), 1, 0, failed=failed))

    def adopt(self, leaving: Address, child: Address, x: float) -> None:
        self.children.on_adopt(0.0, leaving, Adopt(0, child, (x,), 1))

    def guests(self) -> dict[Address, Address | None]:
        """The children, and whose guests they are."""
        return {node: child.guest_of for node, child in self.feed.children.items()}

    def sent(self, to: Address, kind: type[Message]) -> list[Any]:
        """Messages of a kind that it sent to a node."""
        sent = [effect for effect in self.out.effects if isinstance(effect, Send)]
        return [effect.message for effect in sent if effect.to == to and isinstance(effect.message, kind)]


class RappelWorld:
    """Nodes at points of a plane, a message takes as many ms as they are apart, or up to `jitter_s` longer.

    world = RappelWorld([[], [0], [0]], publishers=[0])
    world.start()
    world.run(30)
    world.publish(0)
    world.run(1)
    assert world.delivered(1, 0) == [1]
    """

    def __init__(
        self,
        interests: Sequence[Iterable[int]],
        publishers: Sequence[Address],
        *,
        points: Points | None = None,
        seed: int = 1,
        jitter_s: float = 0.0,
        watch: Observer | None = None,
        **parameters: Any,
    ) -> None:
        small: dict[str, Any] = {"landmarks": 4, "landmark_rounds": 1, "dimensions": 2}
        self.config = RappelPeersConfig(**small | parameters)
        self.nodes, self.publishers = range(len(interests)), list(publishers)
        self.points = (points or scattered(len(interests), seed)) + scattered(self.config.landmarks, seed + 1, 120.0)
        workload = workload_of(interests, len(publishers))
        self.system = Rappel(self.config, World(workload, self.publishers, self.usual_s, seed))
        self.witness = Witness(self, watch)
        self._jitter_s, self._random = jitter_s, Random(f"jitter {seed}")
        self.engine = CheckedEvents(self._delay, seed=seed, observer=self.witness, watch_sends=watch is not None)
        self.sessions: dict[Address, RappelPeer] = {}  # the last one of every node
        self.asked_for = {(node, topic) for node, mine in enumerate(interests) for topic in mine}
        self.left: dict[tuple[Address, int], tuple[float, int]] = {}  # when and in which session a feed was left
        for index in range(self.config.landmarks):
            self.engine.start(len(interests) + index, self.system.server(index))
        self.engine.run(SETTLED_S)

    def usual_s(self, a: Address, b: Address) -> float:
        return max(math.dist(self.points[a], self.points[b]), 0.1) / 1_000

    def _delay(self, now: float, a: Address, b: Address) -> float:
        return self.usual_s(a, b) + self._jitter_s * self._random.random()

    @property
    def now(self) -> float:
        return self.engine.now

    def run(self, seconds: float, step_s: float = 5.0) -> None:
        """So many seconds of virtual time; invariants of all nodes are checked after every step."""
        until = self.now + seconds
        while self.now < until:
            self.engine.run(min(self.now + step_s, until))
            check_invariants(self.engine)

    def peer(self, node: Address) -> RappelPeer:
        peer = self.engine.peers[node]
        assert isinstance(peer, RappelPeer)
        return peer

    def feed(self, node: Address, topic: int = 0) -> Feed:
        return self.peer(node).feeds[topic]

    def is_there(self, node: Address) -> bool:
        return node in self.engine.peers

    def start(self, *nodes: Address) -> None:
        """Sessions of these nodes, or of everybody, begin; whoever was there before remembers it."""
        for node in nodes or self.nodes:
            peer = self.sessions[node] = self.system.peer(node, self.sessions.get(node))
            self.engine.start(node, peer)

    def publish(self, topic: int, node: Address | None = None, payload: bytes = b"news") -> None:
        publisher = self.publishers[topic] if node is None else node
        if self.is_there(publisher):
            self.engine.do(publisher, self.peer(publisher).publish(self.now, topic, payload))

    def subscribe(self, node: Address, topic: int) -> None:
        self.asked_for.add((node, topic))
        self.engine.do(node, self.peer(node).subscribe(self.now, topic))

    def unsubscribe(self, node: Address, topic: int) -> None:
        self.left[node, topic] = self.now, self.peer(node).session
        self.engine.do(node, self.peer(node).unsubscribe(self.now, topic))

    def join(self, node: Address, contact: Address, topic: int = 0) -> None:
        """The node asks this contact to be its parent, say because it has met it."""
        peer = self.peer(node)
        peer.joining.join(peer.feeds[topic], [contact])
        self.engine.do(node, peer.on_timer(self.now, "left"))  # which says what there is to say

    # What it looks like

    def delivered(self, node: Address, topic: int = 0) -> list[int]:
        """Updates that the node's application got, in this order."""
        return [event.sequence for _, who, event in self.witness.deliveries if (who, event.topic) == (node, topic)]

    def tree(self, topic: int = 0) -> dict[Address, Address | None]:
        """Who is whose child in a feed, of those that are there."""
        there = {node: peer for node in self.nodes if isinstance(peer := self.engine.peers.get(node), RappelPeer)}
        feeds = {node: peer.feeds[topic] for node, peer in there.items() if topic in peer.subscriptions}
        return {node: feed.parent.node if feed.parent else None for node, feed in feeds.items()}

    def subscribers(self, topic: int = 0) -> list[Address]:
        """Those that are there, without the publisher."""
        return [node for node in self.tree(topic) if node != self.publishers[topic]]

    def recent(self, topic: int = 0) -> list[int]:
        """The updates that everybody should have: the last few."""
        last = self.sessions[self.publishers[topic]].feeds[topic].last
        return list(range(max(1, last - self.config.cache_size + 1), last + 1))


class Witness:
    """Watches a world: what is delivered, and any update that reaches a node that did not ask for it."""

    def __init__(self, world: RappelWorld, also: Observer | None) -> None:
        self.deliveries: list[tuple[float, Address, Deliver]] = []
        self.noise: list[str] = []
        self._world, self._also = world, also

    def sent(self, now: float, sender: Address, to: Address, message: Any, arrives: float | None) -> None:
        if self._also is not None:
            self._also.sent(now, sender, to, message, arrives)

    def received(self, now: float, node: Address, sender: Address, message: Any) -> None:
        world, topic, peer = self._world, message.topic, self._world.peer(node)
        asked_for = (node, topic) in world.asked_for or world.publishers[topic] == node
        left, session = world.left.get((node, topic), (-math.inf, 0))
        unknown = session < peer.session and now - left < 90  # left and came back, the parent knows of neither
        if not asked_for or not (peer.is_member(topic) or unknown):
            self.noise.append(f"{now:.3f}: {node} got {topic}/{message.sequence} from {sender}")

    def delivered(self, now: float, node: Address, event: Deliver) -> None:
        self.deliveries.append((now, node, event))
        if self._also is not None:
            self._also.delivered(now, node, event)


class Sent:
    """An observer that keeps the messages of some kinds: when, from whom, to whom, what."""

    def __init__(self, *kinds: type) -> None:
        self.messages: list[tuple[float, Address, Address, Any]] = []
        self._kinds = kinds

    def sent(self, now: float, sender: Address, to: Address, message: Any, arrives: float | None) -> None:
        if isinstance(message, self._kinds):
            self.messages.append((now, sender, to, message))

    def received(self, now: float, node: Address, sender: Address, message: Any) -> None: ...

    def delivered(self, now: float, node: Address, event: Deliver) -> None: ...


# Invariants


class CheckedEvents(Events):
    """An engine that checks a node's bounds and edges whenever that node has done something."""

    def do(self, node: Address, effects: Effects) -> None:
        super().do(node, effects)
        peer = self.peers.get(node)
        if isinstance(peer, RappelPeer):
            check_bounds(peer)
            for topic, feed in peer.feeds.items():
                check_edge(self, peer, topic, feed)


def check_invariants(engine: Events) -> None:
    """Every edge leads closer to the publisher, trees have no cycles, and nobody has more than it may."""
    trees: dict[int, Any] = defaultdict(nx.DiGraph)
    for node, peer in engine.peers.items():
        if isinstance(peer, RappelPeer):
            check_bounds(peer)
            for topic, feed in peer.feeds.items():
                if check_edge(engine, peer, topic, feed) and feed.parent is not None:
                    trees[topic].add_edge(node, feed.parent.node)
    for topic, tree in trees.items():
        assert nx.is_directed_acyclic_graph(tree), f"feed {topic}: {nx.find_cycle(tree)}"


def check_edge(engine: Events, peer: RappelPeer, topic: int, feed: Feed) -> bool:
    """A parent is closer to the publisher than its child (§4.2). Returns whether there is one, in the session that the
    child means: a parent that has come back somewhere else is found out by the next ping."""
    if feed.parent is None:
        return False
    parent = engine.peers.get(feed.parent.node)
    if not isinstance(parent, RappelPeer) or parent.session != feed.parent.session:
        return False
    above, below = rank(parent, feed), rank(peer, feed)
    assert above < below, f"feed {topic}: {peer.me} at {below} is a child of {parent.me} at {above}"
    return True


def rank(peer: RappelPeer, feed: Feed) -> Rank:
    """The publisher first, then by distance from it, then by address."""
    assert feed.publisher_position is not None
    return (-1.0, -1) if peer.me == feed.publisher else (math.dist(peer.position, feed.publisher_position), peer.me)


def check_bounds(peer: RappelPeer) -> None:
    """§3.1, §3.3, §4.1. A guest is beyond the bound only while the child is there that it came from (§4.4)."""
    config, friendship = peer.config, peer.friendship
    assert len(friendship.friends) <= config.friends
    assert len(friendship.fans) <= 2 * config.friends
    assert len(friendship.candidates) <= 3 * config.friends**2 + 2 * config.friends
    assert not {peer.me, *friendship.friends} & set(friendship.candidates)
    for topic, feed in peer.feeds.items():
        guests = [child for child in feed.children.values() if child.guest_of is not None]
        assert all(child.guest_of in feed.children for child in guests), f"{peer.me}: guests of nobody in feed {topic}"
        assert len(feed.children) - len(guests) <= config.children, f"{peer.me}: too many children in feed {topic}"
        assert len(feed.cache) <= config.cache_size
