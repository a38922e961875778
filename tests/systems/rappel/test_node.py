"""What a node is in a session, and what it remembers of it in the next."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from grapevine.systems.rappel import bloom
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.messages import Update
from grapevine.systems.rappel.node import Memory, Node, Setup
from grapevine.systems.rappel.peer import RappelPeer


def setup_of(memory: Memory, *, publisher: int = 0, **more: Any) -> Setup:
    """Node 0, without landmarks."""
    known: dict[str, Any] = {"subscriptions": (), "published": ()} | more
    return Setup(me=0, publisher_of=lambda topic: publisher, landmarks=(), random=Random(1), memory=memory, **known)


@pytest.mark.parametrize("position", [(), (1.0, 2.0)])
def test_who_subscribes_to_its_own_feed_first_is_its_root_all_the_same(position: tuple[float, ...]) -> None:
    peer = RappelPeer(setup_of(Memory(session=1, position=position)), RappelConfig(dimensions=2))
    peer.subscribe(0.0, 7)
    peer.found(7)
    feed = peer.feeds[7]
    assert feed.is_root
    assert feed.publisher_position == (position or None), "nobody is ranked before it knows where it is"


def test_a_node_remembers_the_updates_of_feeds_that_it_is_in_and_of_those_that_it_left() -> None:
    node = Node(setup_of(Memory(), publisher=9, subscriptions=[3, 4]), RappelConfig())
    for topic in (3, 4):
        node.feeds[topic].keep(Update(topic, 5, b"news"), window=10)
    node.close_feed(3)
    node.subscriptions.discard(3)
    memory = node.memory(friends=[])
    assert {topic: last for topic, (last, _) in memory.updates.items()} == {3: 5, 4: 5}
    again = Node(setup_of(memory, publisher=9, subscriptions=[4]), RappelConfig())
    assert (again.session, again.feeds[4].last, again.open_feed(3).last) == (2, 5, 5)


def test_only_a_publisher_keeps_its_position_for_the_next_session() -> None:
    """Ours: all ranks in its feed's tree depend on it (`feed`)."""
    for published, kept in (((), ()), ((7,), (1.0, 2.0))):
        node = Node(setup_of(Memory(), published=published), RappelConfig(dimensions=2))
        node.mine.position = (1.0, 2.0)
        assert node.memory(friends=[]).position == kept


def test_without_friends_those_of_the_session_before_are_remembered() -> None:
    node = Node(setup_of(Memory(friends=(4, 5))), RappelConfig())
    assert node.memory(friends=[]).friends == (4, 5)
    assert node.memory(friends=[6]).friends == (6,)


def test_a_change_of_subscriptions_is_a_new_version_of_the_profile_with_another_filter() -> None:
    node = Node(setup_of(Memory(session=2), publisher=9, subscriptions=[3]), RappelConfig())
    assert node.mine.version == (3, 1)
    node.subscriptions.add(4)
    node.subscriptions_changed()
    assert (node.mine.version, node.mine.bloom) == ((3, 2), bloom.bloom_of(["3", "4"]))
