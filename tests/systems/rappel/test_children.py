"""A node and its children in a feed's tree (§4.1, §4.2, §4.4), message by message."""

from __future__ import annotations

from grapevine.systems.rappel.messages import ChangeParent, JoinForward, JoinOk, LeaveTree
from tests.rappel_world import Publisher


def test_a_child_of_a_leaving_child_is_taken_beyond_the_bound_until_that_has_left() -> None:
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.adopt(1, 2, 9.0)
    assert publisher.guests() == {1: None, 2: 1}
    assert publisher.sent(2, JoinOk)[0].instead_of == 1
    publisher.children.on_leave_tree(0.0, 1, LeaveTree(0))
    assert publisher.guests() == {2: None}


def test_who_takes_a_guests_place_is_a_guest() -> None:
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.adopt(1, 2, 9.0)
    publisher.join(3, 7.0)
    assert publisher.guests() == {1: None, 3: 1}
    assert publisher.sent(2, ChangeParent) == [ChangeParent(0, 3)]


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
    assert publisher.sent(3, ChangeParent) == [ChangeParent(0, 4)]
    publisher.children.on_leave_tree(0.0, 1, LeaveTree(0))
    assert publisher.guests() == {2: None, 4: None}


def test_a_silent_child_that_had_brought_a_guest_makes_room_for_it() -> None:
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.adopt(1, 2, 9.0)
    publisher.feed.children[2].last_heard = 60.0
    publisher.children.drop_silent(publisher.feed, before=45.0)
    assert publisher.guests() == {2: None}


def test_a_guest_may_leave_and_bring_a_guest_itself() -> None:
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.adopt(1, 2, 7.0)
    publisher.adopt(2, 3, 9.0)
    publisher.children.on_leave_tree(0.0, 2, LeaveTree(0))
    assert publisher.guests() == {1: None, 3: 1}
    publisher.children.on_leave_tree(0.0, 1, LeaveTree(0))
    assert publisher.guests() == {3: None}


def test_a_child_that_has_been_silent_for_45_s_makes_room() -> None:
    """§4.1: the interval of pings and the time-out, to the second."""
    publisher = Publisher(children=1)
    publisher.join(1, 5.0)
    publisher.join(2, 9.0, now=44.0)
    assert publisher.sent(2, JoinForward) == [JoinForward(0, 1)]
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
    publisher.children.reports(10.0, 1, [0])
    publisher.join(2, 9.0, now=16.0, failed=1)
    assert set(publisher.feed.children) == {1}
    assert publisher.sent(2, JoinForward) == [JoinForward(0, 1)]
