"""The bound holds at every instant, whatever the network does with messages: the claim at the head of `links`."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from grapevine.systems.contracts.peer import Address
from grapevine.systems.trellis.peer.config import TrellisPeerConfig
from grapevine.systems.trellis.peer.links import MOST_REQUESTS, OPEN, Links
from grapevine.systems.trellis.peer.messages import (
    FRIEND,
    Accept,
    Connect,
    Disconnect,
    Disconnected,
    Refuse,
    Update,
)
from tests.effort import examples

CONFIG = TrellisPeerConfig(most_links=5, silence_s=8, heartbeat_s=2)
NODES = 9


class Node:
    """The links of one node, which says yes to everybody and gives up any link for a new one."""

    def __init__(self, me: Address, world: World) -> None:
        self.me, self.world = me, world
        self.links = Links(me, CONFIG, world.random, self._send, lambda now, node: None, lambda now, node, silent: None)
        self.links.start(world.now)

    def _send(self, to: Address, message: Any) -> None:
        self.world.wire.append((self.me, to, message))

    def _victim(self) -> Address | None:
        links = self.links
        if len(links.slots) < CONFIG.most_links:
            return None
        return self.world.random.choice([None, *links.neighbours])

    def ask(self, node: Address) -> None:
        request = Connect(self.world.random.getrandbits(63), FRIEND, self.links.stamp(self.world.now))
        self.links.ask(self.world.now, node, request)

    def take(self, sender: Address, message: Any) -> None:
        now, links = self.world.now, self.links
        match message:
            case Connect():
                if links.may_answer(now, sender, message):
                    if self.world.random.random() < 0.1:
                        self._send(sender, Refuse(message.nonce))
                    else:
                        links.accept(now, sender, message, self._victim())
            case Accept():
                links.take_accept(now, sender, message, self._victim)
            case Refuse():
                links.refused(sender, message.nonce)
            case Disconnect():
                links.take_disconnect(now, sender, message.link)
            case Disconnected():
                links.take_disconnected(now, sender, message.link)
            case Update():
                links.hear(now, sender, message)

    def beat(self) -> None:
        """A sign of life to all neighbours."""
        for node in self.links.neighbours:
            link = self.links.slots[node]
            self._send(node, Update(link.number, self.links.stamp(self.world.now), link.stamp, 0, 0, 0))


class World:
    """Some nodes, and a wire that keeps what they send until somebody decides what becomes of it."""

    def __init__(self, seed: int) -> None:
        self.random, self.now = Random(seed), 0.0
        self.wire: list[tuple[Address, Address, Any]] = []
        self.nodes = {me: Node(me, self) for me in range(NODES)}
        self.busy = 0

    def step(self, loss: float, doubling: float, patience: float) -> None:
        """Something happens: mostly a message comes, seldom in order."""
        random, node = self.random, self.random.choice(list(self.nodes.values()))
        what = random.random()
        if self.wire and what < 0.75:
            at = random.randrange(len(self.wire)) if random.random() < patience else 0
            sender, to, message = self.wire.pop(at)
            if random.random() < doubling:
                self.wire.append((sender, to, message))
            if random.random() >= loss and to in self.nodes:
                self.nodes[to].take(sender, message)
        elif what < 0.85:
            node.ask(random.randrange(NODES))
        elif what < 0.88 and node.links.slots:
            node.links.close(self.now, random.choice(list(node.links.slots)))
        elif what < 0.90 and node.links.slots:
            node.links.lose(self.now, random.choice(list(node.links.slots)))
        else:
            self.now += random.random() * random.choice([0.1, 0.1, 1.0])
            node.links.expire(self.now)
            node.beat()

    def check(self) -> None:
        counted: Counter[Address] = Counter()
        for me, node in self.nodes.items():
            taken = node.links.slots
            assert len(taken) <= CONFIG.most_links
            assert len(node.links.requests) <= MOST_REQUESTS
            assert set(node.links.neighbours) == {other for other, link in taken.items() if link.state == OPEN}
            outside = {other for other, theirs in self.nodes.items() if theirs.links.get(me) is not None}
            self._slots_are_taken(me)
            counted[me] = len(outside | set(node.links.neighbours))
        assert max(counted.values()) <= CONFIG.most_links

    def _slots_are_taken(self, me: Address) -> None:
        """Whoever counts this node as its neighbour, and would still do so if it looked at its clock, has a slot."""
        for other, theirs in self.nodes.items():
            link = theirs.links.get(me)
            if link is not None and self.now < link.echoed + CONFIG.silence_s:
                assert other in self.nodes[me].links.slots, (me, other)


@examples(1)
@given(
    seed=st.integers(0, 2**32),
    loss=st.sampled_from([0.0, 0.05, 0.3]),
    doubling=st.sampled_from([0.0, 0.2]),
    patience=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_nobody_ever_has_more_links_than_k_from_either_end(
    seed: int, loss: float, doubling: float, patience: float
) -> None:
    world = World(seed)
    for _ in range(400):
        world.step(loss, doubling, patience)
        for node in world.nodes.values():
            node.links.expire(world.now)  # each looks at its clock before anybody counts
        world.check()


@examples(0.5)
@given(seed=st.integers(0, 2**32), crashed=st.sets(st.integers(0, NODES - 1), max_size=4))
def test_links_are_agreed_once_it_is_quiet_and_the_dead_are_forgotten(seed: int, crashed: set[int]) -> None:
    """After a while without requests both ends agree on every link, no slot is half taken, and links were made."""
    world = World(seed)
    for _ in range(400):
        world.step(0.1, 0.1, 0.5)
    for node in crashed:
        del world.nodes[node]
    for _ in range(60):
        world.now += 0.5
        for node in world.nodes.values():
            node.links.expire(world.now)
            node.beat()
        while world.wire:
            sender, to, message = world.wire.pop(0)
            if to in world.nodes:
                world.nodes[to].take(sender, message)
    for me, node in world.nodes.items():
        assert not node.links.requests
        for other, link in node.links.slots.items():
            assert link.state == OPEN
            back = world.nodes[other].links.get(me)
            assert back is not None and back.number == link.number
    if len(crashed) < 3:
        assert any(node.links.slots for node in world.nodes.values())


def test_of_two_requests_at_once_that_of_the_lower_address_makes_the_link() -> None:
    world = World(1)
    world.nodes[3].ask(4)
    world.nodes[4].ask(3)
    while world.wire:
        sender, to, message = world.wire.pop(0)
        world.nodes[to].take(sender, message)
        world.nodes[3].beat()
        if world.nodes[4].links.get(3) is not None:
            break
    three, four = world.nodes[3].links.get(4), world.nodes[4].links.get(3)
    assert three is not None and four is not None and three.number == four.number
    assert three.nonce == four.nonce
    assert not world.nodes[3].links.requests and not world.nodes[4].links.requests


def test_an_answer_after_the_time_out_makes_no_link() -> None:
    world = World(1)
    asks, answers = world.nodes[0], world.nodes[1]
    asks.ask(1)
    answers.take(0, world.wire.pop()[2])
    late = world.wire.pop()[2]
    world.now += CONFIG.answer_s
    assert asks.links.expire(world.now) == [1]
    asks.take(1, late)
    assert not asks.links.slots
    answers.take(0, world.wire.pop()[2])
    assert not answers.links.slots
