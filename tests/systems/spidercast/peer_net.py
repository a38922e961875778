"""SpiderCast's peers in a network whose every message a test may lose, double or delay; and what is asked of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from random import Random
from typing import Any

from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import Address, Deliver, LinkDown, LinkUp
from grapevine.systems.spidercast.peer.config import SpiderCastPeerConfig
from grapevine.systems.spidercast.peer.messages import TASKS
from grapevine.systems.spidercast.peer.peer import SpiderCastPeer
from grapevine.systems.spidercast.peer.setup import Setup


class Net:
    """Nodes that want these topics and were told of some contacts; it watches what they say, deliver and link."""

    def __init__(
        self, topics: Mapping[Address, Collection[int]], *, contacts: Iterable[Address] = (0, 1),
        delay_s: tuple[float, float] = (0.05, 0.05), seed: int = 1,
        loss: float = 0.0, duplication: float = 0.0, **parameters: Any,
    ) -> None:  # fmt: skip
        self.topics, self.config, self._random = topics, SpiderCastPeerConfig(**parameters), Random(seed)
        self.engine = Events(
            lambda now, a, b: self._random.uniform(*delay_s),
            seed=seed, loss=loss, duplication=duplication, observer=self, watch_sends=True,
        )  # fmt: skip
        self.sent_log: list[tuple[float, Address, Address, Any]] = []
        self.got: list[tuple[Address, Deliver]] = []
        self._sessions = 0
        for node in topics:
            self.start(node, contacts)

    def start(self, node: Address, contacts: Iterable[Address] = (0, 1)) -> None:
        """The node's first session, or another one that remembers nothing but its topics."""
        self._sessions += 1
        setup = Setup(
            me=node, topics=self.topics[node], contacts=[c for c in contacts if c != node],
            random=Random(f"{node} {self._sessions}"),
        )  # fmt: skip
        self.engine.start(node, SpiderCastPeer(setup, self.config))

    def come_back(self, node: Address) -> None:
        """The node starts again, unless it is there."""
        if node not in self.engine.peers:
            self.start(node)

    def peer(self, node: Address) -> SpiderCastPeer:
        peer = self.engine.peers[node]
        assert isinstance(peer, SpiderCastPeer)
        return peer

    @property
    def peers(self) -> dict[Address, SpiderCastPeer]:
        """Those that are there; strangers that are no peers of ours are not among them."""
        return {node: peer for node, peer in self.engine.peers.items() if isinstance(peer, SpiderCastPeer)}

    def tell(self, node: Address, sender: Address, message: Any) -> None:
        self.engine.do(node, self.peer(node).on_message(self.engine.now, sender, message))

    def publish(self, node: Address, topic: int, payload: bytes = b"news") -> set[Address]:
        """Who has it five seconds later, the publisher aside."""
        before = len(self.got)
        self.engine.do(node, self.peer(node).publish(self.engine.now, topic, payload))
        self.engine.run(self.engine.now + 5)
        return {who for who, event in self.got[before:] if event.topic == topic} - {node}

    def disagreements(self) -> list[tuple[Address, Address, int]]:
        """Links that one end holds and the other does not, by task."""
        peers = self.peers
        held = {(p, q, t) for p, peer in peers.items() for t in TASKS for q in peer.links.of(t)}
        return sorted((p, q, t) for p, q, t in held if (q, p, t) not in held)

    def above_bound(self) -> list[tuple[Address, int]]:
        """Nodes with more neighbours in a task than L^max + Margin."""
        margin = self.config.margin
        return [(n, t.task) for n, peer in self.peers.items() for t in peer.tasks if t.degree > t.limit + margin]

    # What the engine tells

    def sent(self, now: float, sender: Address, to: Address, message: Any, arrives: float | None) -> None:
        self.sent_log.append((now, sender, to, message))

    def received(self, *_: Any) -> None: ...

    def delivered(self, now: float, node: Address, event: Deliver) -> None:
        self.got.append((node, event))


class Wire:
    """Counts the link effects of one peer, which have to alternate."""

    def __init__(self) -> None:
        self.up: set[Address] = set()

    def take(self, effects: Iterable[Any]) -> None:
        for effect in effects:
            if isinstance(effect, LinkUp):
                assert effect.peer not in self.up
                self.up.add(effect.peer)
            elif isinstance(effect, LinkDown):
                self.up.remove(effect.peer)
