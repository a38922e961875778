"""How a node leaves a feed's tree in good order (§4.4), message by message."""

from __future__ import annotations

import pytest

from grapevine.systems.contracts.peer import Send, SetTimer
from grapevine.systems.rappel.feed import Parent
from grapevine.systems.rappel.messages import Adopt, ChangeParent, LeaveTree
from tests.rappel_world import Publisher, RappelWorld


def member(*children: tuple[int, float]) -> Publisher:
    """A child of 9, which is the publisher, with children at these distances from it."""
    node = Publisher()
    for child, x in children:
        node.join(child, x)
    node.feed.is_root, node.feed.publisher, node.feed.parent, node.feed.ancestors = False, 9, Parent(9, 1), (9,)
    node.out.take()
    return node


def test_the_child_closest_to_the_publisher_goes_to_the_parent_and_the_others_to_that_child() -> None:
    node = member((1, 8.0), (2, 5.0), (3, 9.0))
    node.leaving.begin(0.0, node.feed)
    assert node.sent(9, Adopt) == [Adopt(0, 2, (5.0,), 1)]
    assert [node.sent(child, ChangeParent) for child in (1, 3)] == 2 * [[ChangeParent(0, 2, leaving=True)]]
    assert set(node.feed.children) == {1, 2, 3}, "they are served until they have other parents"


def test_who_has_no_children_leaves_at_once_and_stays_silent_until_all_have_noticed() -> None:
    node = member()
    node.leaving.begin(10.0, node.feed)
    assert node.out.effects == [Send(9, LeaveTree(0)), SetTimer(("drained", 0), 90.0)]
    assert (node.feed.parent, node.feed.drained_at) == (None, 100.0)


def test_the_last_child_that_goes_ends_the_leave() -> None:
    node = member((1, 5.0))
    node.leaving.begin(0.0, node.feed)
    assert node.feed.drained_at is None
    node.children.on_leave_tree(2.0, 1, LeaveTree(0))
    assert node.feed.drained_at == 92.0


def test_a_leave_that_is_under_way_does_not_begin_again() -> None:
    publisher = Publisher()
    publisher.join(1, 5.0)
    publisher.leaving.begin(0.0, publisher.feed)
    before = len(publisher.out.effects)
    publisher.leaving.begin(1.0, publisher.feed)
    assert len(publisher.out.effects) == before


# In a network


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
