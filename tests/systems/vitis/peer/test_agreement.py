"""The agreement of two neighbours (Algorithms 5 and 6): what one proposes the other knows, or asks for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from grapevine.systems.gossip.interests import Interests, array_of
from grapevine.systems.gossip.messages import Topics
from grapevine.systems.gossip.profiles import KnownProfiles
from grapevine.systems.vitis.peer.agreement import Agreement
from grapevine.systems.vitis.peer.elections import Elections
from grapevine.systems.vitis.peer.messages import Descriptor, Heartbeat

TOPICS = [10, 20, 30]


class Node:
    """A node whose address is its ring id; topics are their own ring ids."""

    def __init__(self, me: int, *, session: int = 1, topics: Iterable[int] = TOPICS) -> None:
        self.me, self.own = me, Interests(topics, 1, 100)
        self.profiles, elections = KnownProfiles(100), Elections(me, me, reach=5)
        self.agreement = Agreement(elections, self.own, self.profiles, lambda topics: topics, session)

    def round(self, other: Node) -> list[Heartbeat]:
        """A round in which the other is the one neighbour; the heartbeats for it."""
        self.profiles.compare_with(self.own.array())
        if self.profiles.version(other.me) != other.own.version:
            self.profiles.put(other.me, other.own.version, other.own.array(), first_hand=True)
        self.agreement.elect({other.me: other.me})
        me = Descriptor(self.me, self.me, self.own.version, len(self.own.topics), 0.0)
        return list(self.agreement.heartbeats(other.me, me, is_link=True))

    def take(self, other: Node, heartbeats: Iterable[Heartbeat]) -> None:
        for heartbeat in heartbeats:
            self.agreement.on_heartbeat(other.me, heartbeat)

    def gateways(self) -> dict[int, int]:
        proposals = self.agreement.elections.proposals
        return dict(zip(proposals["topic"].tolist(), proposals["gateway"].tolist(), strict=True))

    def knows(self, other: Node) -> dict[int, int]:
        """The gateways that the other proposes, as far as this one knows."""
        _, records = self.agreement.received_from(other.me).of(self.own.array())
        return dict(zip(records["topic"].tolist(), records["gateway"].tolist(), strict=True))


def proposed(heartbeats: Iterable[Heartbeat]) -> int:
    """Bytes of proposals in them."""
    return sum(len(heartbeat.proposals) for heartbeat in heartbeats)


def pair() -> tuple[Node, Node]:
    """Nodes 12 and 29, after three rounds without loss."""
    a, b = Node(12), Node(29)
    for _ in range(3):
        ours, theirs = a.round(b), b.round(a)
        a.take(b, theirs)
        b.take(a, ours)
    return a, b


def test_neighbours_agree_on_the_one_nearer_to_each_topic() -> None:
    a, b = pair()
    assert a.gateways() == b.gateways() == {10: 12, 20: 12, 30: 29}


def test_where_nothing_changes_heartbeats_have_no_proposals() -> None:
    a, b = pair()
    beats = a.round(b)
    assert len(beats) == 1 and proposed(beats) == 0 and not beats[0].repeat


def test_a_heartbeat_that_is_lost_is_noticed_by_the_next_and_made_good() -> None:
    a, b = pair()
    for node in (a, b):
        node.own.add(40)
    b.round(a)
    lost = a.round(b)
    assert proposed(lost) > 0
    b.take(a, a.round(b))
    assert b.knows(a) != a.gateways()
    (asking,) = b.round(a)
    assert asking.repeat
    a.take(b, [asking])
    again = a.round(b)
    assert again[0].complete_from == again[0].serial, "everything from here on"
    b.take(a, again)
    assert b.knows(a) == a.gateways()


def test_a_topic_that_is_unsubscribed_is_withdrawn_and_its_gateway_chosen_again() -> None:
    a, b = pair()
    a.own.remove(20)
    beats = a.round(b)
    assert np.frombuffer(beats[0].withdrawn, "<u8").tolist() == [20]
    b.take(a, beats)
    b.round(a)
    assert b.gateways() == {10: 12, 20: 29, 30: 29}


def test_what_a_neighbour_proposed_in_an_earlier_session_is_forgotten() -> None:
    _, b = pair()
    again = Node(12, session=2, topics=[10])
    b.take(again, again.round(b))
    assert b.knows(again) == {10: 12}
    b.profiles.forget(12)
    b.round(again)
    assert b.gateways() == {10: 12, 20: 29, 30: 29}


def test_a_neighbour_whose_topics_are_new_is_sent_their_proposals_again() -> None:
    """It may have dropped what it was sent while it did not have them."""
    a, b = pair()
    assert proposed(a.round(b)) == 0
    a.agreement.repeat_for(b.me, array_of([20]))
    topics: Topics = np.frombuffer(a.round(b)[0].proposals, b.agreement.elections.proposals.dtype)["topic"]
    assert topics.tolist() == [20]


def test_a_node_that_is_gone_is_no_gateway_in_the_next_election() -> None:
    a, b = pair()
    b.agreement.forget(a.me)
    b.agreement.elect({})
    assert b.gateways() == {10: 29, 20: 29, 30: 29}
