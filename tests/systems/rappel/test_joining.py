"""How a node finds a parent, and changes it (§4.2, §4.3), message by message and in a network."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from grapevine.systems.contracts.peer import Address, Send
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.feed import Parent
from grapevine.systems.rappel.joining import Joining
from grapevine.systems.rappel.messages import Join, JoinDeny, JoinForward, JoinOk, LeaveTree, ParentReport
from grapevine.systems.rappel.node import Memory, Node, Setup
from grapevine.systems.rappel.updates import Updates
from tests.rappel_world import RappelWorld


class Child:
    """Node 5 of feed 0, which node 9 publishes, at the origin; friends 3 and 4 seem to subscribe, too."""

    def __init__(self) -> None:
        setup = Setup(
            me=5,
            subscriptions=[0],
            published=[],
            publisher_of=lambda topic: 9,
            landmarks=[],
            random=Random(1),
            memory=Memory(position=(4.0,)),
        )
        self.node = Node(setup, RappelConfig())
        self.joining = Joining(self.node, Updates(self.node), lambda topic: [3, 4])
        self.feed = self.node.feeds[0]

    def asked(self) -> list[Address]:
        """Who was asked to be the parent since the last look."""
        sent = [effect for effect in self.node.out.take() if isinstance(effect, Send)]
        return [effect.to for effect in sent if isinstance(effect.message, Join)]

    def accept(self, parent: Address, *ancestors: Address, session: int = 1, **more: Any) -> bool:
        fields: dict[str, Any] = {"child_session": 1} | more
        return self.joining.on_ok(parent, JoinOk(0, session, ancestors, (0.0,), 0, **fields))


def test_friends_are_asked_one_after_the_other_and_the_publisher_last() -> None:
    """§5.1."""
    child = Child()
    child.joining.search_again(child.feed)
    assert child.asked() == [3]
    child.joining.on_deny(3, JoinDeny(0))
    assert child.asked() == [4]
    child.joining.timed_out(child.feed, child.feed.questions)
    assert child.asked() == [9]


def test_answers_of_others_and_time_outs_of_earlier_questions_do_not_count() -> None:
    child = Child()
    child.joining.search_again(child.feed)
    child.joining.on_deny(3, JoinDeny(0))
    child.asked()
    child.joining.on_deny(3, JoinDeny(0))
    child.joining.on_forward(3, JoinForward(0, 8))
    child.joining.timed_out(child.feed, child.feed.questions - 1)
    assert not child.accept(3, 9, position=(1.0,))
    assert child.asked() == [] and child.feed.parent is None


def test_a_new_parent_is_taken_before_the_old_one_is_left() -> None:
    """§4.4."""
    child = Child()
    child.joining.join(child.feed, [3])
    assert child.accept(3, 9, position=(1.0,), path_ms=1.0)
    assert (child.feed.parent, child.feed.ancestors, child.feed.path_ms) == (Parent(3, 1), (3, 9), 4.0)
    child.joining.join(child.feed, [9])
    child.asked()
    assert child.accept(9, position=(0.0,))
    assert child.node.out.take() == [Send(3, LeaveTree(0))]


def test_a_parent_that_accepts_another_session_of_the_node_is_told_to_forget_it() -> None:
    child = Child()
    child.joining.join(child.feed, [3])
    child.asked()
    assert not child.accept(3, 9, child_session=2, position=(1.0,))
    assert child.node.out.take() == [Send(3, LeaveTree(0))]


def test_a_rejoin_that_leads_back_to_the_parent_ends_there() -> None:
    """§4.3."""
    child = Child()
    child.joining.join(child.feed, [3])
    child.accept(3, 8, 9, position=(1.0,))
    child.joining.join(child.feed, [8], periodic=True)
    child.asked()
    assert child.joining.on_forward(8, JoinForward(0, 3)) == 3
    assert child.feed.search is None and child.asked() == [] and child.feed.is_child_of(3)


@pytest.mark.parametrize(("session", "reported"), [(1, []), (2, [ParentReport(0, (9,), 0, 1.0)])])
def test_no_report_or_one_of_another_session_means_to_be_no_child(session: int, reported: list[ParentReport]) -> None:
    """The ancestors of the lost parent are asked first; of two, the one above it."""
    child = Child()
    child.joining.join(child.feed, [3])
    child.accept(3, 9, position=(1.0,))
    child.asked()
    child.joining.on_reports(3, session, [0], reported)
    assert child.feed.parent is None and child.asked() == [9]


def test_a_report_brings_the_parents_new_ancestors() -> None:
    child = Child()
    child.joining.join(child.feed, [3])
    child.accept(3, 9, position=(1.0,))
    child.joining.on_reports(3, 1, [0], [ParentReport(0, (8, 9), 0, 2.0)])
    assert (child.feed.ancestors, child.feed.path_ms) == ((3, 8, 9), 5.0)


# In a network


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


def test_trees_may_be_built_by_coordinates_with_heights() -> None:
    """Who ranks before whom, and how long ways are, counts the heights of both ends (Vivaldi §5.4)."""
    world = RappelWorld([[], *[[0]] * 8], publishers=[0], children=2, heights=True)
    world.start()
    world.run(900)
    world.publish(0)
    world.run(5)
    assert all(world.delivered(node) == [1] for node in range(1, 9))
    for node, parent in world.tree().items():
        assert parent is not None
        at, above = world.peer(node).position, world.peer(parent).position
        assert len(at) == 3 and at[-1] >= 0
        assert world.feed(node).to_parent_ms == math.dist(at[:2], above[:2]) + at[2] + above[2]
        assert world.feed(node).path_ms == world.feed(parent).path_ms + world.feed(node).to_parent_ms


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
