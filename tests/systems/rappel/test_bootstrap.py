"""How a session of a Rappel node begins (§5): alone, with a little help, and all at once."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from grapevine.systems.contracts.peer import Address, Effects, Send
from grapevine.systems.rappel import bloom
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.messages import HereIAm, Join, JoinDeny, WhereAreYou
from grapevine.systems.rappel.node import Memory, Setup
from grapevine.systems.rappel.peer import RappelPeer
from tests.rappel_world import RappelWorld, Sent


def asked_first(joins: Sent, node: Address, publisher: Address) -> list[float]:
    """When the node asked the publisher without having been sent to it."""
    return [now for now, sender, to, join in joins.messages if (sender, to, join.steps) == (node, publisher, 0)]


def test_a_virgin_session_joins_at_publishers_20_s_apart_and_after_twelve_all_at_once() -> None:
    """§5.2, where no friend covers anything."""
    joins = Sent(Join)
    world = RappelWorld([[], range(16)], publishers=[0] * 16, watch=joins)
    world.start()
    world.run(300)
    times = asked_first(joins, 1, 0)
    assert [round(time - times[0]) for time in times] == [20 * number for number in range(12)] + [240] * 4
    assert all(world.tree(topic)[1] == 0 for topic in range(16))


@pytest.mark.parametrize("seed", range(3))
def test_a_virgin_session_joins_most_feeds_through_friends_that_it_meets(seed: int) -> None:
    """§5.2: 4 to 12 joins at publishers are enough."""
    joins = Sent(Join)
    world = RappelWorld([[], *[range(16)] * 6], publishers=[0] * 16, seed=seed, children=2, watch=joins)
    world.start(*range(6))
    world.run(600)
    joins.messages.clear()
    world.start(6)
    world.run(120)
    assert len(asked_first(joins, 6, 0)) <= 6  # of 16 feeds; later ones are of evicted children
    assert all(world.tree(topic)[6] is not None for topic in range(16))


def befriended(**parameters: Any) -> tuple[RappelWorld, Sent]:
    """The friends 1 and 2, who share the feeds 0 – 2; 2 also has the feed 3. All of them are published by 0."""
    messages = Sent(Join, JoinDeny)
    world = RappelWorld([[], [0, 1, 2], [0, 1, 2, 3]], publishers=[0] * 5, watch=messages, **parameters)
    world.start()
    world.run(180)
    assert 2 in world.peer(1).friendship.friends
    messages.messages.clear()
    return world, messages


def test_a_new_feed_is_joined_through_a_friend_that_has_it() -> None:
    """§5.1."""
    world, messages = befriended()
    world.subscribe(1, 3)
    world.run(5)
    assert (messages.messages[0][1:3], asked_first(messages, 1, 0)) == ((1, 2), [])
    assert world.tree(3)[1] is not None


def test_a_feed_that_no_friend_has_is_joined_at_its_publisher() -> None:
    """§5.1."""
    world, messages = befriended()
    world.subscribe(1, 4)
    world.run(5)
    assert [message[1:3] for message in messages.messages] == [(1, 0)]
    assert world.tree(4) == {1: 0}


def test_a_false_positive_of_a_bloom_filter_is_denied_and_the_next_contact_asked() -> None:
    """§2.2, §5.1, Algorithm 2."""
    world, messages = befriended()
    world.peer(1).friendship.friends[2].bloom |= bloom.mask("4")
    world.subscribe(1, 4)
    world.run(5)
    talk = [(sender, to, type(message)) for _, sender, to, message in messages.messages]
    assert talk == [(1, 2, Join), (2, 1, JoinDeny), (1, 0, Join)]
    assert world.tree(4) == {1: 0}


@pytest.mark.parametrize("seed", range(3))
def test_a_reentrant_session_joins_through_stale_friends(seed: int) -> None:
    """§5.3: at no publisher, and at once."""
    joins = Sent(Join)
    world = RappelWorld([[], *[range(8)] * 6], publishers=[0] * 8, seed=seed, watch=joins)
    world.start()
    world.run(600)
    stale = set(world.peer(6).friendship.friends) - {0}
    assert stale
    world.engine.crash(6)
    world.run(300)
    joins.messages.clear()
    world.start(6)
    world.run(15)
    assert asked_first(joins, 6, 0) == []
    assert all(world.tree(topic)[6] is not None for topic in range(8))


def test_a_reentrant_session_whose_friends_are_gone_joins_like_a_virgin_one() -> None:
    """§5.3."""
    joins = Sent(Join)
    world = RappelWorld([[], range(4), range(4)], publishers=[0] * 4, watch=joins)
    world.start()
    world.run(300)
    world.engine.crash(1)
    world.engine.crash(2)
    world.run(60)
    joins.messages.clear()
    world.start(1)
    world.run(120)
    times = asked_first(joins, 1, 0)
    assert [round(time - times[0]) for time in times] == [0, 20, 40, 60]
    assert all(world.tree(topic)[1] == 0 for topic in range(4))


def located(*subscriptions: int, **parameters: Any) -> RappelPeer:
    """Node 7, which knows its position from the start; feed n is published by node 100 + n."""
    setup = Setup(
        me=7,
        subscriptions=subscriptions,
        published=[],
        publisher_of=lambda topic: 100 + topic,
        landmarks=[],
        random=Random(1),
        memory=Memory(position=(0.0, 0.0), friends=parameters.pop("friends", ())),
    )
    return RappelPeer(setup, RappelConfig(dimensions=2, **parameters))


def joins_in(effects: Effects) -> list[Address]:
    return [effect.to for effect in effects if isinstance(effect, Send) and isinstance(effect.message, Join)]


def test_of_feeds_that_nobody_covers_one_is_joined_at_a_time() -> None:
    """§5.2: here two joins in this way, then all."""
    peer = located(1, 2, 3, 4, staggered_joins=2)
    assert len(joins_in(peer.start(0.0))) == 1 and peer.bootstrap.is_joining
    assert len(joins_in(peer.on_timer(20.0, "stagger"))) == 1
    assert len(joins_in(peer.on_timer(40.0, "stagger"))) == 2 and not peer.bootstrap.is_joining


def test_a_node_audits_more_often_while_feeds_wait_to_be_joined() -> None:
    peer = located(1, 2)
    peer.start(0.0)
    assert peer.bootstrap.audit_s == peer.config.virgin_audit_s
    peer.on_timer(20.0, "stagger")
    assert peer.bootstrap.audit_s == peer.config.audit_s


def test_friends_of_the_last_session_have_their_time_to_answer_before_publishers_are_asked() -> None:
    """§5.3."""
    peer = located(1, friends=(20, 21))
    asked = [effect.to for effect in peer.start(0.0) if isinstance(effect, Send)]
    assert asked == [20, 21]
    assert joins_in(peer.on_timer(15.0, "probed")) == [101]
    assert not peer.bootstrap.answers_probe(20)


def test_who_knows_its_position_is_a_landmark_to_others() -> None:
    peer = located(1)
    peer.start(0.0)
    (answer,) = peer.on_message(1.0, 55, WhereAreYou(3))
    assert answer == Send(55, HereIAm(3, (0.0, 0.0), 0.5))
