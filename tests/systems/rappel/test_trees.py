"""A node's part in the trees (§4), message by message."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from grapevine.systems.contracts.peer import Address, Deliver, Message, Send
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.feed import Feed, Parent
from grapevine.systems.rappel.messages import Adopt, ChangeParent, Join, JoinForward, JoinOk, LeaveTree, Update
from grapevine.systems.rappel.outbox import Outbox
from grapevine.systems.rappel.peer import Memory, RappelPeer
from grapevine.systems.rappel.trees import Signatures, Trees


class Publisher:
    """The publisher of feed 0, at the origin of a line; others are at `x`."""

    def __init__(self, signatures: Signatures | None = None, **parameters: Any) -> None:
        self.out = Outbox()
        self.trees = Trees(RappelConfig(**parameters), 0, 1, self.out, Random(1), lambda topic: [], signatures)
        self.trees.position = (0.0,)
        self.feed = self.trees.feeds[0] = Feed(0, publisher=0, is_root=True, publisher_position=(0.0,))

    def join(self, node: Address, x: float, now: float = 0.0, failed: Address | None = None) -> None:
        self.trees.on_join(now, node, Join(0, (x,), 1, 0, failed=failed))

    def adopt(self, leaving: Address, child: Address, x: float) -> None:
        self.trees.on_adopt(0.0, leaving, Adopt(0, child, (x,), 1))

    def guests(self) -> dict[Address, Address | None]:
        return {node: child.guest_of for node, child in self.feed.children.items()}

    def said(self, to: Address, kind: type[Message]) -> list[Any]:
        sent = [effect for effect in self.out.effects if isinstance(effect, Send)]
        return [effect.message for effect in sent if effect.to == to and isinstance(effect.message, kind)]


def test_a_child_of_a_leaving_child_is_taken_beyond_the_bound_until_that_has_left() -> None:
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.adopt(1, 2, 9.0)
    assert publisher.guests() == {1: None, 2: 1}
    assert publisher.said(2, JoinOk)[0].instead_of == 1
    publisher.trees.on_leave_tree(0.0, 1, LeaveTree(0))
    assert publisher.guests() == {2: None}


def test_who_takes_a_guests_place_is_a_guest() -> None:
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.adopt(1, 2, 9.0)
    publisher.join(3, 7.0)
    assert publisher.guests() == {1: None, 3: 1}
    assert publisher.said(2, ChangeParent) == [ChangeParent(0, 3)]


def test_a_guest_that_asks_once_more_stays_one() -> None:
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.adopt(1, 2, 9.0)
    publisher.join(2, 9.0)
    assert publisher.guests() == {1: None, 2: 1}


def test_a_child_that_wanted_to_leave_and_stayed_may_hand_over_another_child_later() -> None:
    publisher = Publisher(children=2)
    publisher.join(1, 5.0)
    publisher.join(2, 6.0)
    publisher.adopt(1, 3, 9.0)
    publisher.adopt(1, 4, 8.0)
    assert publisher.guests() == {1: None, 2: None, 4: 1}  # of those that are no guests, 3 was the farthest
    assert publisher.said(3, ChangeParent) == [ChangeParent(0, 4)]
    publisher.trees.on_leave_tree(0.0, 1, LeaveTree(0))
    assert publisher.guests() == {2: None, 4: None}


def test_a_silent_child_that_had_brought_a_guest_makes_room_for_it() -> None:
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.adopt(1, 2, 9.0)
    publisher.feed.children[2].heard = 60.0
    publisher.trees.drop_silent_children(publisher.feed, before=45.0)
    assert publisher.guests() == {2: None}


def test_a_leave_that_is_under_way_does_not_begin_again() -> None:
    publisher = Publisher()
    publisher.join(1, 5.0)
    publisher.trees.begin_leave(0.0, publisher.feed)
    before = len(publisher.out.effects)
    publisher.trees.begin_leave(1.0, publisher.feed)
    assert len(publisher.out.effects) == before


def test_a_guest_may_leave_and_bring_a_guest_itself() -> None:
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.adopt(1, 2, 7.0)
    publisher.adopt(2, 3, 9.0)
    publisher.trees.on_leave_tree(0.0, 2, LeaveTree(0))
    assert publisher.guests() == {1: None, 3: 1}
    publisher.trees.on_leave_tree(0.0, 1, LeaveTree(0))
    assert publisher.guests() == {3: None}


def test_a_child_that_has_been_silent_for_45_s_makes_room() -> None:
    """§4.1: the interval of pings and the time-out, to the second."""
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.join(2, 9.0, now=44.0)
    assert publisher.said(2, JoinForward) == [JoinForward(0, 1)]
    publisher.join(2, 9.0, now=46.0)
    assert set(publisher.feed.children) == {2}


def test_an_orphan_is_not_sent_back_to_its_dead_parent() -> None:
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.join(2, 9.0, now=16.0, failed=1)
    assert set(publisher.feed.children) == {2}


def test_a_child_that_was_heard_of_since_is_not_dead_for_an_orphans_word() -> None:
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.trees.about(10.0, 1, [0])
    publisher.join(2, 9.0, now=16.0, failed=1)
    assert set(publisher.feed.children) == {1}
    assert publisher.said(2, JoinForward) == [JoinForward(0, 1)]


# Signed updates (§4.1)


class Seal:
    """A signature that only the publisher can make, let us say."""

    def sign(self, topic: int, sequence: int, payload: bytes) -> bytes:
        return b"sealed %d/%d %s" % (topic, sequence, payload)

    def verify(self, topic: int, sequence: int, payload: bytes, signature: bytes) -> bool:
        return signature == self.sign(topic, sequence, payload)


def subscriber() -> Publisher:
    """A child of 9, with a child 1 of its own; it checks signatures."""
    node = Publisher(signatures=Seal())
    node.feed.is_root, node.feed.publisher, node.feed.parent, node.feed.chain = False, 9, Parent(9, 1), (9,)
    node.join(1, 5.0)
    node.out.take()
    return node


def test_a_publisher_signs_its_updates() -> None:
    publisher = Publisher(signatures=Seal())
    publisher.join(1, 5.0)
    publisher.trees.publish(publisher.feed, b"news")
    assert publisher.said(1, Update) == [Update(0, 1, b"news", b"sealed 0/1 news")]


def test_an_update_with_a_right_signature_is_delivered_and_passed_on_with_it() -> None:
    node, update = subscriber(), Update(0, 1, b"news", b"sealed 0/1 news")
    node.trees.on_update(9, update, wanted=True)
    assert node.out.effects == [Send(1, update), Deliver(0, 1, b"news", 9)]


@pytest.mark.parametrize("pulled", [False, True])
@pytest.mark.parametrize(
    "forged",
    [Update(0, 1, b"lies", b"sealed 0/1 news"), Update(0, 2, b"news", b"sealed 0/1 news"), Update(0, 1, b"news")],
    ids=["payload", "number", "unsigned"],
)
def test_a_forged_update_is_refused_and_not_passed_on(forged: Update, pulled: bool) -> None:
    node = subscriber()
    forged = Update(forged.topic, forged.sequence, forged.payload, forged.signature, pulled)
    node.trees.on_update(9, forged, wanted=True)
    assert (node.out.effects, node.feed.cache, node.feed.last, node.trees.refused) == ([], {}, 0, 1)


def test_an_update_of_a_feed_that_the_node_is_not_in_is_answered_with_a_farewell() -> None:
    node = subscriber()
    node.trees.on_update(9, Update(7, 1, b"news"), wanted=False)
    assert node.out.effects == [Send(9, LeaveTree(7))]


@pytest.mark.parametrize("position", [(), (1.0, 2.0)])
def test_who_subscribes_to_its_own_feed_first_is_its_root_all_the_same(position: tuple[float, ...]) -> None:
    peer = RappelPeer(
        *(0, RappelConfig(dimensions=2)),
        subscriptions=(),
        published=(),
        publisher_of=lambda topic: 0,
        key_of=str,
        landmarks=(),
        random=Random(1),
        memory=Memory(session=1, position=position),
    )
    peer.subscribe(0.0, 7)
    peer.found(7)
    feed = peer.trees.feeds[7]
    assert feed.is_root
    assert feed.publisher_position == (position or None), "nobody is ranked before it knows where it is"
