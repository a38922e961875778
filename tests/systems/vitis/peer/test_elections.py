"""Elections of marked topics alone end where elections of all would: Algorithm 5 holds at every node."""

from __future__ import annotations

from itertools import count
from random import Random

import numpy as np
import pytest

from grapevine.model.ids import distance
from grapevine.systems.gossip.interests import Interests, array_of
from grapevine.systems.gossip.profiles import KnownProfiles
from grapevine.systems.vitis.peer.elections import Elections, Neighbour
from grapevine.systems.vitis.peer.messages import Descriptor, Heartbeat
from grapevine.systems.vitis.peer.proposals import ReceivedProposals

REACH = 4
SERIALS = count(1)


class Node:
    """Elections of a node whose heartbeats always say everything."""

    def __init__(self, address: int, random: Random) -> None:
        self.address, self.ring_id = address, random.getrandbits(64)
        self.own = Interests({random.randrange(8) << 60 for _ in range(5)}, 1, 100)
        self.elections = Elections(address, self.ring_id, REACH)
        self.received: dict[int, ReceivedProposals] = {}
        self.profiles = KnownProfiles(100)
        self.links: set[int] = set()

    def round(self, network: dict[int, Node], most: int) -> None:
        own = self.own.array()
        self.elections.want(own, own)
        self.profiles.compare_with(own)
        self.received = {node: self.received.get(node, ReceivedProposals()) for node in self.links}
        for node, received in self.received.items():
            received.keep(own)
            if self.profiles.version(node) != network[node].own.version:
                self.profiles.put(node, network[node].own.version, network[node].own.array(), first_hand=True)
        self.elections.meet(
            {
                node: Neighbour(network[node].ring_id, self.profiles.shared_at(node), self.received[node])
                for node in self.links
            }
        )
        self.elections.elect(most)
        for node in self.links:
            serial = next(SERIALS)
            shared_at = np.flatnonzero(np.isin(own, network[node].own.array()))
            proposals = self.elections.proposals[shared_at].tobytes()
            me = Descriptor(self.address, self.ring_id, 1, 1, 0.0)
            heartbeat = Heartbeat(me, True, False, 1, serial, serial, proposals)
            received = network[node].received.setdefault(self.address, ReceivedProposals())
            network[node].elections.mark(received.take(heartbeat, network[node].own))

    def naive(self, topic: int, network: dict[int, Node]) -> tuple[int, int]:
        """Algorithm 5 read aloud: distance of the gateway, and hops, from what the neighbours propose now."""
        best = distance(self.ring_id, topic), 0
        members = {n: network[n].proposal(topic) for n in self.links if topic in network[n].own.topics}
        for node, (gateway, parent, hops) in members.items():
            from_afar = parent == node or parent not in members
            if parent != self.address and from_afar and hops + 1 < REACH:
                best = min(best, (distance(network[gateway].ring_id, topic), hops + 1))
        return best

    def proposal(self, topic: int) -> tuple[int, int, int]:
        at = int(self.elections.topics.searchsorted(np.uint64(topic)))
        _, gateway, _, parent, hops = self.elections.proposals[at].item()
        return gateway, parent, hops


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_marked_topics_end_at_the_fixpoint_of_all(seed: int) -> None:
    random = Random(seed)
    addresses = [random.getrandbits(64) for _ in range(12)]
    network = {address: Node(address, random) for address in addresses}
    for step in range(4):
        for _ in range(14):  # links come and go
            a, b = random.sample(addresses, 2)
            for one, other in ((a, b), (b, a)):
                (network[one].links.add if random.random() < 0.6 or step == 0 else network[one].links.discard)(other)
        for one in addresses:
            network[one].links = {other for other in network[one].links if one in network[other].links}
        for _ in range(6):  # and so do subscriptions
            own = network[random.choice(addresses)].own
            (own.add if random.random() < 0.6 else own.remove)(random.randrange(8) << 60)
        for _ in range(40):
            for node in random.sample(list(network.values()), len(network)):
                node.round(network, most=random.choice([1, 3, 100]))
        for node in network.values():
            assert node.elections.is_settled
            for topic in node.own.topics:
                gateway, parent, hops = node.proposal(topic)
                assert (distance(network[gateway].ring_id, topic), hops) == node.naive(topic, network)
                assert (parent == node.address) == (gateway == node.address) == (hops == 0)


def test_a_gateways_id_counts_although_somebody_names_it_as_a_parent_first() -> None:
    """A parent's ring id is not sent; it must not stand for the gateway's."""
    elections, key = Elections(50, 2**63, 5), 1 << 40
    topics = array_of([key])
    received = {1: ReceivedProposals(), 2: ReceivedProposals()}
    own = Interests([key], 1, 9)
    far, near = 2**62, key + 1
    for node, gateway, gateway_id, parent in ((1, 7, far, 9), (2, 9, near, 9)):
        record = np.array([(key, gateway, gateway_id, parent, 1)], dtype=elections.proposals.dtype)
        received[node].take(Heartbeat(Descriptor(node, 5, 1, 1, 0.0), True, False, 1, 1, 1, record.tobytes()), own)
    elections.want(topics, topics)
    shared_at = np.zeros(1, np.int32)
    elections.meet({node: Neighbour(2**61, shared_at, received[node]) for node in received})
    elections.elect()
    assert elections.proposals.tolist() == [(key, 9, near, 2, 2)]


def test_very_many_proposals_are_sent_over_some_rounds_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grapevine.systems.vitis.peer.elections.SENT_A_ROUND", 4)
    elections, topics = Elections(1, 2, 5), array_of(range(10))
    elections.want(topics, topics)
    elections.meet({})
    elections.elect(most=7)
    elections.elect()
    sent, stamp = list[int](), 0
    for number in range(3):
        news, stamp = elections.news(np.arange(10, dtype=np.int32), stamp, array_of([2] if number == 2 else []))
        sent += news["topic"].tolist()
    assert sorted(sent) == [0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9]
    assert len(elections.news(np.arange(10, dtype=np.int32), stamp, array_of([]))[0]) == 0
