"""Nodes as a live host has them: addresses and topics of 64 bits, many subscriptions, loss, broken connections."""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import Any

import pytest

from grapevine.model.errors import UsageError
from grapevine.net.wire import Decoder, encode
from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import Address, Deliver, LinkDown, Send
from grapevine.systems.gossip import asking, messages
from grapevine.systems.gossip.memory import Memory
from grapevine.systems.vitis.live import LiveVitis
from grapevine.systems.vitis.peer.config import VitisPeerConfig
from grapevine.systems.vitis.peer.messages import Descriptor, Exchange, Heartbeat, Relay, Sample
from grapevine.systems.vitis.peer.peer import VitisPeer
from grapevine.systems.vitis.peer.setup import Setup

ROUND = 1.0


class Net:
    """Nodes that know the first one, in virtual time."""

    def __init__(self, topics: Collection[Collection[int]], *, loss: float = 0.0, seed: int = 1, **config: Any) -> None:
        self.random = Random(seed)
        delays = Random(seed)
        self.engine = Events(
            lambda now, a, b: delays.uniform(0.01, 0.3), loss=loss, seed=seed, observer=self, watch_sends=True
        )
        self.config = VitisPeerConfig(round_s=ROUND, **config)
        self.nodes = [self.random.getrandbits(64) for _ in topics]
        self.got: set[tuple[Address, int, int]] = set()
        self.largest = 0
        self.decoder = Decoder(LiveVitis.messages)
        for node, mine in zip(self.nodes, topics, strict=True):
            self.engine.start(node, self.peer(node, mine))

    def peer(self, node: Address, topics: Collection[int], memory: Memory | None = None) -> VitisPeer:
        setup = Setup(
            me=node,
            ring_id=node,
            topics=topics,
            topic_id=lambda topic: topic,
            contacts=[other for other in self.nodes[:1] if other != node],
            random=Random(f"{node}"),
            memory=memory,
        )
        return VitisPeer(setup, self.config)

    def sent(self, now: float, sender: Address, to: Address, message: Any, arrives: float | None) -> None:
        frame = encode(message)
        self.largest = max(self.largest, len(frame))
        assert self.decoder.feed(frame) == [message], "it travels unchanged"

    def received(self, *_: Any) -> None: ...

    def delivered(self, now: float, node: Address, event: Deliver) -> None:
        self.got.add((node, event.topic, event.sequence))

    def __getitem__(self, at: int) -> VitisPeer:
        peer = self.engine.peers[self.nodes[at]]
        assert isinstance(peer, VitisPeer)
        return peer

    def run(self, rounds: float) -> None:
        self.engine.run(self.engine.now + rounds * ROUND)

    def publish(self, at: int, topic: int, *, rounds: float = 5) -> set[int]:
        """Who got it, as indices of `nodes`."""
        peer, now = self[at], self.engine.now
        self.engine.do(peer.me, peer.publish(now, topic, b"news"))
        sequence = peer._sequences[topic]
        self.run(rounds)
        return {self.nodes.index(node) for node, *event in self.got if event == [topic, sequence]} - {at}


def words(count: int, seed: int) -> list[int]:
    random = Random(seed)
    return [random.getrandbits(64) for _ in range(count)]


def test_a_node_with_a_hundred_thousand_topics_reaches_and_is_reached() -> None:
    common = words(100_000, 1)
    few = words(5, 2)
    net = Net([common, common, [*common[::1_000], *few], few, [common[7]]])
    net.run(40)
    for topic in (*common[:3], common[50_000], common[-1]):
        assert net.publish(0, topic, rounds=2) == {at for at in range(1, 5) if topic in net[at].topics}
        assert net.publish(4, topic, rounds=2) == {at for at in range(4) if topic in net[at].topics}
    assert net.publish(2, common[1_000], rounds=2) == {0, 1}
    assert net.largest <= 256 << 10
    before = net.engine.counts.copy()
    net.engine.do(net[0].me, net[0].subscribe(net.engine.now, few[0]))
    net.run(12)
    assert net.publish(3, few[0]) == {0, 2}
    assert net.engine.counts[messages.Profile] - before[messages.Profile] < 20, "changes travel, not profiles"


def test_everybody_is_reached_although_a_tenth_of_all_messages_is_lost() -> None:
    """Soft state is repaired; events that are lost are not, but flooding has other ways."""
    topics = words(8, 3)
    random = Random(5)
    wanted = [random.sample(topics, 4) for _ in range(16)]
    net = Net(wanted, loss=0.1, table_size=8)
    net.run(40)
    net.engine.disturb()
    net.run(15)
    for topic in topics:
        publisher = random.randrange(16)
        wanting = {at for at in range(16) if topic in net[at].topics}
        assert net.publish(publisher, topic, rounds=3) == wanting - {publisher}
    for at in range(16):
        for node in net[at].neighbours(0.0):
            other = net.engine.peers[node]
            assert isinstance(other, VitisPeer)
            shared = net[at].interests.array()[net[at].profiles.shared_at(node)]
            there, known = net[at].agreement.received_from(node).of(shared)
            received = {topic: (gateway, parent, hops) for topic, gateway, _, parent, hops, _ in known.tolist()}
            assert there.all()
            assert received == {topic: other.proposals[topic] for topic in net[at].topics & other.topics}


def test_a_young_network_passes_events_on_before_anybody_has_settled() -> None:
    topic = words(1, 4)[0]
    net = Net([[], [topic], [], [topic], []])
    net.run(6)
    assert not net[0].overlay.book.has_settled(net[0].me, net.engine.now, net.config.settle_s)
    assert net.publish(0, topic, rounds=2) == {1, 3}


def test_sampling_less_often_still_makes_the_ring() -> None:
    net = Net([[at % 3] for at in range(16)], sample_rounds=5, table_size=8)
    net.run(60)
    ring = sorted(net.nodes)
    for at in range(16):
        index = ring.index(net.nodes[at])
        assert net[at].table[:2] == [ring[(index + 1) % 16], ring[index - 1]]
    net.engine.crash(net.nodes[3])
    net.run(25)
    for node in set(net.nodes) - {net.nodes[3]}:
        peer = net.engine.peers[node]
        assert isinstance(peer, VitisPeer) and net.nodes[3] not in peer.neighbours(0.0)


def test_a_node_that_cannot_be_reached_is_dropped_at_once() -> None:
    net = Net([[1], [1], [1]])
    net.run(20)
    peer, gone, now = net[0], net.nodes[1], net.engine.now
    assert gone in peer.neighbours(now) and gone in peer.partners(now, 1)
    effects = peer.on_unreachable(now, gone)
    assert LinkDown(gone) in effects and LinkDown(gone) not in peer.on_unreachable(now, gone)
    assert gone not in peer.neighbours(now) and gone not in peer.partners(now, 1)
    peer.on_message(now, net.nodes[2], Exchange((Descriptor(gone, gone, 1, 1, 30.0, 0.2),), is_answer=True))
    assert gone not in peer.overlay.book.known, "what others heard of it before is old news"


def test_who_is_alone_has_no_path_and_who_has_a_link_has_one() -> None:
    net = Net([[1]])
    net.run(15)
    assert not net[0].has_path(net.engine.now, 1) and not net[0].has_path(net.engine.now, 2)
    net = Net([[1], [2], []])
    net.run(15)
    assert all(net[at].has_path(net.engine.now, topic) for at in range(3) for topic in range(4))
    assert set(net[0].carried(net.engine.now)) >= {1}


def test_descriptors_name_whom_a_receiver_may_send_to() -> None:
    known = Descriptor(7, 1, 1, 1, 0.0), Descriptor(2**64 - 1, 1, 1, 1, 0.0)
    for message in (Sample(known, is_answer=True), Exchange(known, is_answer=True)):
        assert list(message.named()) == [7, 2**64 - 1]
    assert list(Heartbeat(known[0], True, False, 1, 1, 1).named()) == list(Relay(b"").named()) == []


def test_a_stranger_cannot_fill_the_memory() -> None:
    net = Net([[1], [1]])
    net.run(10)
    peer, now = net[0], net.engine.now
    for start in range(0, 20_000, 1_000):
        crowd = tuple(Descriptor(node, node, 9, 5, 1.0) for node in range(start, start + 5_000))
        peer.on_message(now, 77, Exchange(crowd, is_answer=True))
        assert len(peer.overlay.book.known) <= 2 * peer.config.most_known + 2
    asked = [effect for effect in peer.on_timer(now, "round") if isinstance(effect, Send)]
    wanted = sum(len(effect.message.wants) for effect in asked if isinstance(effect.message, messages.Ask))
    assert wanted <= asking.MOST_ASKED + peer.config.table_size + 1
    assert len(peer.overlay.book.known) <= peer.config.most_known + 2
    assert net.nodes[1] in peer.neighbours(now)


def test_too_many_subscriptions_are_the_callers_mistake() -> None:
    net = Net([[1, 2]], most_topics=3)
    net[0].subscribe(0.0, 3)
    with pytest.raises(UsageError, match="topic 4: there are 3 subscriptions already"):
        net[0].subscribe(0.0, 4)
    assert net[0].topics == {1, 2, 3}


def test_a_session_goes_on_from_the_last_ones_memory() -> None:
    net = Net([[1], [1], [1]])
    net.run(15)
    assert net.publish(1, 1) == {0, 2}
    memory, node = net[1].memory(), net.nodes[1]
    net.engine.crash(node)
    net.run(2)
    net.engine.start(node, net.peer(node, [], memory))
    assert net[1].interests.version > memory.version
    net.run(15)
    assert net.publish(1, 1) == {0, 2}
    assert net[1]._sequences[1] == 2
