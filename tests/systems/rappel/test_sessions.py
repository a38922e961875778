"""Sessions of a Rappel node (§5), from its coordinates to a proper leave, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from grapevine.systems.contracts.peer import Address, Send
from grapevine.systems.rappel import bloom
from grapevine.systems.rappel.messages import FriendRequest, Join, JoinDeny
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


@pytest.mark.parametrize("seed", range(3))
def test_updates_of_other_publishers_go_through_the_master_once_each(seed: int) -> None:
    """§2, with half of the messages lost and many doubled."""
    world = RappelWorld([[], [0], [0], []], publishers=[0], seed=seed)
    world.start()
    world.run(LOCATED_S)
    world.engine.disturb(loss=0.5, duplication=0.3)
    for number in range(5):
        world.publish(0, node=number % 3 + 1, payload=b"%d" % number)
        world.run(1)
    world.run(200)
    world.engine.disturb()
    world.run(300)
    assert sorted(update.payload for update in world.feed(0).cache.values()) == [b"0", b"1", b"2", b"3", b"4"]
    assert sorted(world.delivered(1)) == sorted(world.delivered(2)) == [1, 2, 3, 4, 5]
    assert not world.witness.noise


def test_a_master_publisher_that_subscribes_to_its_feed_gets_what_others_publish() -> None:
    world = RappelWorld([[0], [0]], publishers=[0])
    world.start()
    world.run(LOCATED_S)
    world.publish(0, node=1)
    world.run(1)
    assert world.delivered(0) == world.delivered(1) == [1]


# Joining (§5)


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
    assert len(asked_first(joins, 6, 0)) <= 4
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


# Failures (§3.3, §4.1)


def chain(*distances: float, **parameters: Any) -> RappelWorld:
    """One feed and one child each: nodes on a line, 1 next to the publisher 0, and so on."""
    points = [(0.0, 0.0), *((distance, 0.0) for distance in distances)]
    world = RappelWorld([[], *[[0]] * len(distances)], publishers=[0], points=points, children=1, **parameters)
    world.start()
    world.run(120)
    assert world.tree() == {node: node - 1 for node in range(1, len(points))}
    return world


@pytest.mark.parametrize("seed", range(5))
def test_a_failed_parent_is_replaced_within_45_s_and_what_was_missed_is_pulled(seed: int) -> None:
    """§4.1: the interval of pings and the time-out; §6.2.3 sees no longer delays."""
    world = chain(10, 20, 30, seed=seed)
    world.engine.crash(1)
    world.publish(0)
    world.run(1)
    assert world.delivered(2) == world.delivered(3) == []
    world.run(45)
    assert world.tree()[2] == 0
    assert world.delivered(2) == world.delivered(3) == [1]
    pulled = {node: event.pulled for _, node, event in world.witness.deliveries}
    assert pulled == {2: True, 3: False}  # pulled by one, pushed on by it


def test_a_failed_child_is_forgotten() -> None:
    """§4.1."""
    world = chain(10, 20)
    world.engine.crash(2)
    world.run(75)
    assert world.feed(1).children == {}


def test_a_failed_fan_makes_room_after_45_s() -> None:
    """§3.3."""
    world = RappelWorld([[], *[[0]] * 5], publishers=[0], friends=1)
    world.start()
    world.run(5)
    peer = world.peer(1)
    fans = [node for node in (2, 3, 4) if peer.friendship.accept_fan(node, world.now)][:2]
    for node in fans:
        world.engine.crash(node)
    asking = FriendRequest((1, 1))
    answers = [peer.on_message(world.now + later, 5, asking)[0] for later in (44.0, 46.0)]
    assert [answer.message.accepted for answer in answers if isinstance(answer, Send)] == [False, True]


def test_a_parent_that_has_come_back_is_no_parent_any_more() -> None:
    world = chain(10, 20)
    world.engine.crash(1)
    world.start(1)
    world.publish(0)
    world.run(60)
    assert world.tree() == {1: 0, 2: 1}
    assert world.delivered(2) == [1]


def test_a_lost_update_is_pulled_when_the_next_one_shows_the_gap() -> None:
    """§4.1."""
    world = chain(10, 20, 30)
    for cut in (False, True, False):
        if cut:
            world.engine.part([[3]])
        world.publish(0)
        world.run(0.2)
        world.engine.heal()
    assert world.delivered(3) == [1, 3, 2]
    assert [event.pulled for _, node, event in world.witness.deliveries if node == 3] == [False, False, True]


@pytest.mark.parametrize(("recover_gaps", "delivered"), [(True, [1, 2]), (False, [1])])
def test_a_lost_update_without_a_next_one_is_pulled_after_a_ping(recover_gaps: bool, delivered: list[int]) -> None:
    """The last number travels with the answer, as a void update would (§4.1)."""
    world = chain(10, 20, recover_gaps=recover_gaps)
    world.publish(0)
    world.run(1)
    world.engine.part([[2]])
    world.publish(0)
    world.run(0.2)
    world.feed(2).last = 2  # it has heard of it, say in an answer
    world.engine.heal()
    world.run(45)
    assert world.delivered(2) == delivered


# Leaving (§4.4), moving (§4.2, §4.3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("how", ["leave", "unsubscribe"])
def test_children_of_a_node_that_leaves_in_good_order_miss_nothing(seed: int, how: str) -> None:
    """§4.4: somebody is served without a break while parents go."""
    world = RappelWorld([[], *[[0]] * 24], publishers=[0], seed=seed, children=2)
    world.start()
    world.run(300)
    parents = [node for node in range(1, 25) if len(world.feed(node).children) == 2][:4]
    assert len(parents) == 4
    published = {}
    for number in range(1, 200):
        if number % 25 == 0 and parents:
            gone = parents.pop()
            world.engine.leave(gone) if how == "leave" else world.unsubscribe(gone, 0)
            world.run(0.7)
        world.publish(0)
        published[number] = world.now
        world.run(0.7, step_s=0.7)
    for node in world.subscribers():
        events = [(now, event) for now, who, event in world.witness.deliveries if who == node]
        assert [event.sequence for _, event in events] == list(published)
        assert max(now - published[event.sequence] for now, event in events) < 0.7
        assert not any(event.pulled for _, event in events)


def test_the_child_closest_to_the_publisher_takes_the_place_of_a_parent_that_leaves() -> None:
    """§4.4: its siblings rejoin there."""
    points = [(0.0, 0.0), (10.0, 0.0), (20.0, 0.0), (0.0, 25.0), (30.0, 0.0)]
    world = RappelWorld([[], *[[0]] * 4], publishers=[0], points=points)
    world.start()
    world.run(10)
    for node in (2, 3, 4):
        world.join(node, 1)
    world.run(5)
    assert world.tree() == {1: 0, 2: 1, 3: 1, 4: 1}
    world.engine.leave(1)
    world.run(5)
    assert {node: world.tree()[node] for node in (2, 3, 4)} == {2: 0, 3: 2, 4: 2}


def test_an_evicted_child_finds_its_place_below_and_skips_its_next_rejoin() -> None:
    """Fig. 4d, §4.2."""
    world = RappelWorld([[], [0], [0]], publishers=[0], points=[(0, 0), (20, 0), (10, 0)], children=1)
    world.start(0, 1)
    world.run(10)
    assert world.tree() == {1: 0}
    world.start(2)
    world.run(10)
    assert world.tree() == {1: 2, 2: 0}
    assert world.feed(1).skip_rejoin
    world.run(601)
    assert not world.feed(1).skip_rejoin


def test_rejoins_compact_a_tree_that_has_grown_long() -> None:
    """§4.3."""
    points = [(10.0 * node, 0.0) for node in range(7)]
    world = RappelWorld([[], *[[0]] * 6], publishers=[0], points=points)
    world.start(0)
    for node in range(1, 7):  # each of them finds the last one, say through a friend
        world.start(node)
        world.run(5)
        world.join(node, node - 1)
        world.run(1)
    assert world.tree() == {node: node - 1 for node in range(1, 7)}
    world.publish(0)
    world.run(3_600)
    world.publish(0)
    world.run(1)
    assert max(world.feed(node).height for node in range(1, 7)) == 2  # the publisher has room for five
    assert all(world.delivered(node) == [1, 2] for node in range(1, 7))
    assert not any(event.pulled for _, _, event in world.witness.deliveries)  # proper rejoins: §4.4
