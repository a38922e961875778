"""Keys that are made to be near a topic's id, and gateways that do not exist: events find other ways.

In virtual time, with the peers that live nodes run: a network in which clusters depend on relay paths needs more nodes
than sockets of one test. Recovery, which brings back what was dropped, is not part of it.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from grapevine.systems.contracts.peer import Address
from grapevine.systems.vitis.peer.elections import Elections
from grapevine.systems.vitis.peer.messages import Notify, Records
from grapevine.systems.vitis.peer.peer import VitisPeer
from tests.hostile.attackers import say
from tests.systems.vitis.peer.test_sessions import Net, words

NODES, TOPICS, WANTED = 40, 20, 3
ATTACKED = 8
FEW_LINKS = {"table_size": 6, "ring_and_long_links": 4}
NEAR = 2**64 // 50_000  # what five seconds of making keys are worth


class Dropper(VitisPeer):
    """Honest in everything, but that it passes no event of its topic on: each topic has one such enemy."""

    def _on_notify(self, now: float, sender: Address, event: Notify) -> None:
        if event.topic not in self.topics:
            super()._on_notify(now, sender, event)


class Inventing(Elections):
    """Proposes, for every topic, a gateway that is exactly at the topic's id and does not exist."""

    def _choose(self, which: Any) -> Records:
        chosen = super()._choose(which)
        chosen["gateway"] = chosen["gateway_id"] = chosen["topic"]
        chosen["parent"], chosen["hops"] = np.uint64(self._me), 0
        return chosen


class Inventor(Dropper):
    """Drops events, and says of each topic that somebody else looks after it."""


class AttackedNet(Net):
    """A network in which the last nodes are attackers, each subscribed to one topic and near its id."""

    attacker: type[VitisPeer] = Dropper

    def __init__(self, attacker: type[VitisPeer], attacked: list[int], wanted: list[list[int]], **config: Any) -> None:
        self.attacker, self.attackers = attacker, dict[Address, int]()
        super().__init__(wanted, **config)
        random = Random(2)
        for topic in attacked:
            node = (topic + random.randrange(1, NEAR)) % 2**64
            self.nodes.append(node)
            self.attackers[node] = topic
            self.engine.start(node, self.peer(node, [topic]))

    def peer(self, node: Address, topics: Any, memory: Any = None) -> VitisPeer:
        made = super().peer(node, topics, memory)
        if node not in self.attackers:
            return made
        made.__class__ = self.attacker
        made._handlers[Notify] = made._on_notify
        if self.attacker is Inventor:
            made.elections.__class__ = Inventing
        return made


def lost(attacker: type[VitisPeer], rendezvous: int) -> tuple[int, int]:
    """Deliveries in attacked topics that did not happen, and those that were owed."""
    topics, random = words(TOPICS, 3), Random(5)
    wanted = [random.sample(topics, WANTED) for _ in range(NODES)]
    attacked = topics[:ATTACKED]
    bounds = {"rendezvous": rendezvous, "believes": "answers" if rendezvous > 1 else "hearsay"}
    net = AttackedNet(attacker, attacked, wanted, settle_rounds=5, **FEW_LINKS, **bounds)
    net.run(35)
    owed = set()
    for topic in attacked:
        subscribers = [at for at, mine in enumerate(wanted) if topic in mine]
        for publisher in subscribers:
            net.engine.do(net[publisher].me, net[publisher].publish(net.engine.now, topic, b"news", publisher + 1))
            owed |= {(net.nodes[at], topic, publisher + 1) for at in subscribers if at != publisher}
    net.run(4)
    return len(owed - net.got), len(owed)


@pytest.mark.slow
@pytest.mark.parametrize("attacker", [Dropper, Inventor])
def test_who_sits_at_a_topic_and_drops_costs_less_than_a_twentieth_of_the_hits(attacker: type[VitisPeer]) -> None:
    before, owed = lost(attacker, 1)
    after, _ = lost(attacker, 2)
    what = "keys near the ids of topics, which drop"
    what += " and propose gateways that do not exist" if attacker is Inventor else ""
    say(what, "deliveries lost with one rendezvous, and with two", f"{before} and {after} of {owed}")
    assert after < owed / 20 < before
