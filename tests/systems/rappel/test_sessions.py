"""Sessions of a Rappel node (§5) whose beginning, end or subscriptions come at an inconvenient time."""

from __future__ import annotations

from grapevine.systems.rappel.messages import Join
from tests.rappel_world import LOCATED_S, RappelWorld, Sent


def test_a_feed_may_be_subscribed_to_before_the_node_knows_where_it_is() -> None:
    world = RappelWorld([[], [1], [1], [0]], publishers=[0, 0])
    world.start()
    world.subscribe(1, 0)
    world.run(LOCATED_S)
    assert world.feed(1, 0).publisher_position in (None, world.peer(0).position)
    world.run(30)
    assert world.feed(1, 0).publisher_position == world.peer(0).position
    assert world.tree(0)[1] is not None


def test_a_feed_may_be_left_before_the_node_knows_where_it_is() -> None:
    world = RappelWorld([[], [0, 1]], publishers=[0, 0])
    world.start()
    world.unsubscribe(1, 0)
    world.run(60)
    assert world.tree(0) == {}
    assert world.tree(1) == {1: 0}


def test_a_session_that_ends_before_it_knows_where_it_is_forgets_no_updates() -> None:
    world = RappelWorld([[], [0]], publishers=[0])
    world.start()
    world.run(LOCATED_S)
    world.publish(0)
    world.run(1)
    for _ in range(2):
        world.engine.crash(1)
        world.start(1)
        world.run(0.1)
    world.run(60)
    assert world.delivered(1) == [1]


def test_a_subscriber_that_comes_back_is_a_member_from_the_start() -> None:
    world = RappelWorld([[], [0]], publishers=[0])
    world.start()
    world.run(LOCATED_S)
    world.engine.crash(1)
    world.start(1)
    world.publish(0)  # the publisher still has it among its children
    world.run(60)
    assert world.delivered(1) == [1]
    assert not world.witness.noise


def test_a_feed_that_is_left_before_its_turn_is_never_joined() -> None:
    joins = Sent(Join)
    world = RappelWorld([[], range(4)], publishers=[0] * 4, watch=joins)
    world.start()
    world.run(LOCATED_S)
    waiting = [topic for topic in range(4) if world.feed(1, topic).search is None and world.tree(topic)[1] is None]
    assert len(waiting) == 3  # the others are 20 s apart (§5.2)
    world.unsubscribe(1, waiting[0])
    world.run(120)
    assert {message.feed for _, _, _, message in joins.messages} == set(range(4)) - {waiting[0]}


def test_a_node_that_leaves_joins_nothing_any_more() -> None:
    joins = Sent(Join)
    points = [(0.0, 0.0), (5.0, 0.0), (10.0, 0.0)]
    world = RappelWorld([[], range(4), []], publishers=[0] * 4, points=points, children=1, watch=joins)
    world.start()
    world.run(LOCATED_S)
    joined = next(topic for topic in range(4) if world.tree(topic)[1] == 0)
    world.subscribe(2, joined)
    world.run(1)
    world.engine.crash(2)  # the child that the leave waits for
    world.engine.leave(1)
    world.run(60)
    assert not world.is_there(1)
    assert {message.feed for _, _, _, message in joins.messages} == {joined}


def test_subscriptions_outlive_a_session() -> None:
    world = RappelWorld([[], [0]], publishers=[0, 0])
    world.start()
    world.run(LOCATED_S)
    world.subscribe(1, 1)
    world.unsubscribe(1, 0)
    world.run(1)
    world.engine.crash(1)
    world.start(1)
    world.run(30)
    assert world.tree(0) == {}
    assert world.tree(1) == {1: 0}


def test_a_lost_farewell_makes_no_noise() -> None:
    world = RappelWorld([[], [0]], publishers=[0])
    world.start()
    world.run(LOCATED_S)
    world.engine.part([[1]])
    world.unsubscribe(1, 0)
    world.engine.heal()
    for _ in range(20):
        world.publish(0)
        world.engine.disturb(loss=0.9999999)  # nor does the publisher hear that they are not wanted
        world.run(5)
        world.engine.disturb()
    assert world.delivered(1) == []
    assert not world.witness.noise
    assert not world.peer(1).is_member(0)
    assert not world.feed(0).children


def test_who_subscribes_again_gets_no_update_twice() -> None:
    world = RappelWorld([[], [0]], publishers=[0])
    world.start()
    world.run(LOCATED_S)
    world.publish(0)
    world.run(1)
    world.unsubscribe(1, 0)
    world.run(120)
    world.publish(0)
    world.subscribe(1, 0)
    world.run(1)
    assert world.delivered(1) == [1, 2]


def test_a_publisher_that_leaves_sends_nobody_in_circles() -> None:
    joins = Sent(Join)
    world = RappelWorld([[], [0], [0]], publishers=[0], watch=joins)
    world.start()
    world.run(LOCATED_S)
    joins.messages.clear()
    world.engine.leave(0)
    world.run(20)
    assert len(joins.messages) <= 6
    world.run(60)
    assert not world.is_there(0)
    world.start(0)
    world.run(60)
    world.publish(0)
    world.run(1)
    assert world.delivered(1) == world.delivered(2) == [1]


def test_subscribing_again_and_again_makes_no_more_rejoins() -> None:
    joins = Sent(Join)
    world = RappelWorld([[], [0], [0]], publishers=[0], points=[(0, 0), (5, 0), (9, 0)], children=1, watch=joins)
    world.start()
    world.run(LOCATED_S)
    for _ in range(10):
        world.unsubscribe(2, 0)
        world.subscribe(2, 0)
    world.run(60)
    joins.messages.clear()
    world.run(6_000)
    assert len([sender for _, sender, _, message in joins.messages if message.periodic and message.steps == 0]) == 10
