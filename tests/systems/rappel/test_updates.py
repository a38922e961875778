"""Updates that are signed (§4.1), and those that reach somebody who does not want them."""

from __future__ import annotations

import pytest

from grapevine.systems.contracts.peer import Deliver, Send
from grapevine.systems.rappel.feed import Parent
from grapevine.systems.rappel.messages import LeaveTree, Update
from tests.rappel_world import Publisher


class Seal:
    """A signature that only the publisher can make, let us say."""

    def sign(self, topic: int, sequence: int, payload: bytes) -> bytes:
        return b"sealed %d/%d %s" % (topic, sequence, payload)

    def verify(self, topic: int, sequence: int, payload: bytes, signature: bytes) -> bool:
        return signature == self.sign(topic, sequence, payload)


def subscriber() -> Publisher:
    """A child of 9, with a child 1 of its own; it checks signatures."""
    node = Publisher(signatures=Seal())
    node.node.subscriptions.add(0)
    node.feed.is_root, node.feed.publisher, node.feed.parent, node.feed.ancestors = False, 9, Parent(9, 1), (9,)
    node.join(1, 5.0)
    node.out.take()
    return node


def test_a_publisher_signs_its_updates() -> None:
    publisher = Publisher(signatures=Seal())
    publisher.join(1, 5.0)
    publisher.updates.publish(publisher.feed, b"news")
    assert publisher.sent(1, Update) == [Update(0, 1, b"news", b"sealed 0/1 news")]


def test_an_update_with_a_right_signature_is_delivered_and_passed_on_with_it() -> None:
    node, update = subscriber(), Update(0, 1, b"news", b"sealed 0/1 news")
    node.updates.on_update(9, update)
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
    node.updates.on_update(9, forged)
    assert (node.out.effects, node.feed.cache, node.feed.last, node.updates.refused) == ([], {}, 0, 1)


def test_an_update_of_a_feed_that_the_node_is_not_in_is_answered_with_a_farewell() -> None:
    node = subscriber()
    node.updates.on_update(9, Update(7, 1, b"news"))
    assert node.out.effects == [Send(9, LeaveTree(7))]
