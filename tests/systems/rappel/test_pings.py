"""Failures that pings show (§3.3, §4.1), and updates that were lost in them."""

from __future__ import annotations

from typing import Any

import pytest

from grapevine.systems.contracts.peer import Send
from grapevine.systems.rappel.messages import Ack, FriendRequest, Join, Ping
from tests.rappel_world import RappelWorld, Sent


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


@pytest.mark.parametrize("name_failed", [True, False])
def test_an_orphan_names_the_parent_that_failed_unless_it_is_not_to(name_failed: bool) -> None:
    """Ours: §4.1 does not say how it avoids to be sent back."""
    joins = Sent(Join)
    world = chain(10, 20, 30, watch=joins, name_failed=name_failed)
    joins.messages.clear()
    world.engine.crash(1)
    world.run(46)
    assert {message.failed for _, sender, _, message in joins.messages if sender == 2} == {1 if name_failed else None}


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


def test_one_ping_serves_all_roles_of_a_neighbour_and_is_answered_with_a_report_per_feed() -> None:
    """§6.3."""
    world = RappelWorld([[], [0, 1]], publishers=[0, 0], watch=(seen := Sent(Ping, Ack)))
    world.start()
    world.run(120)
    assert 0 in world.peer(1).friendship.friends
    seen.messages.clear()
    world.run(30)
    pings = [message for _, sender, to, message in seen.messages if (sender, to) == (1, 0) and type(message) is Ping]
    answers = [message for _, sender, to, message in seen.messages if (sender, to) == (0, 1) and type(message) is Ack]
    assert [(ping.as_fan, sorted(ping.feeds)) for ping in pings] == [(True, [0, 1])]
    assert [(ack.is_fan, sorted(report.feed for report in ack.feeds)) for ack in answers] == [(True, [0, 1])]
