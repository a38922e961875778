"""The oracle, told by hand what publishers and readers do: it notices every promise that is broken, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grapevine.model.identity import PeerId
from grapevine.net.envelope import Event, Gap
from grapevine.net.torture.oracle import Oracle

ALICE, BOB = PeerId.of(b"alice"), PeerId.of(b"bob")


def event(payload: bytes, sequence: int = 1, *, publisher: PeerId = ALICE, topic: str = "x") -> Event:
    return Event(topic, publisher, sequence, 0.0, payload)


def told() -> Oracle:
    """Of a reader on Bob's node, and of one event of Alice's."""
    oracle = Oracle()
    oracle.on_node("alice", ALICE.full)
    oracle.on_node("bob", BOB.full)
    oracle.on_subscribed("reader", "bob", "x", now=1.0)
    oracle.on_session("reader")
    oracle.on_publish("alice", "x", b"1", now=2.0)
    return oracle


def broken(oracle: Oracle) -> list[str]:
    return [violation.promise for violation in oracle.violations]


def test_what_was_acknowledged_and_read_is_fine() -> None:
    oracle = told()
    oracle.on_acknowledged(b"1", event(b"1"))
    oracle.on_read("reader", event(b"1"))
    assert oracle.judge({"bob"}) == 0 and broken(oracle) == []


def test_what_was_acknowledged_and_never_read_is_missing() -> None:
    oracle = told()
    oracle.on_acknowledged(b"1", None)
    assert len(oracle.missing({"bob"})) == 1 and not oracle.missing({"alice"})
    oracle.judge({"bob"})
    assert broken(oracle) == ["complete"]


def gap(first: int, last: int, *, publisher: PeerId = ALICE) -> Gap:
    return Gap("x", publisher, first, last, "given up")


@pytest.mark.parametrize(
    ("number", "reported", "promises"),
    [
        (3, gap(2, 4), []),
        (5, gap(2, 4), ["complete"]),
        (3, gap(2, 4, publisher=BOB), ["complete"]),
        (None, gap(2, 4), []),  # NoPath told no number, and nobody has read it
    ],
)
def test_a_loss_that_a_gap_covers_is_no_broken_promise(number: int | None, reported: Gap, promises: list[str]) -> None:
    oracle = told()
    oracle.on_acknowledged(b"1", None if number is None else event(b"1", number))
    oracle.on_given("reader", reported)
    assert oracle.judge({"bob"}) == (promises == []) and broken(oracle) == promises


def test_a_named_reader_is_given_rising_numbers_in_each_session() -> None:
    oracle = told()
    for item in (gap(1, 2), event(b"1", 3), gap(1, 1, publisher=BOB)):
        oracle.on_given("reader", item)
    oracle.on_session("reader")
    oracle.on_given("reader", event(b"1", 3))
    assert broken(oracle) == []
    oracle.on_given("reader", gap(3, 5))
    assert broken(oracle) == ["order"]


def test_who_subscribed_later_or_has_unsubscribed_is_owed_nothing() -> None:
    oracle = told()
    oracle.on_acknowledged(b"1", None)
    oracle.on_subscribed("late", "bob", "x", now=3.0)
    oracle.on_unsubscribe("reader")
    assert not oracle.missing({"bob"})


def test_what_was_not_acknowledged_is_owed_to_nobody_and_may_come() -> None:
    oracle = told()
    assert not oracle.missing({"bob"})
    oracle.on_read("reader", event(b"1"))
    assert broken(oracle) == []


def test_twice_in_a_session_is_noticed_and_again_in_the_next_is_fine() -> None:
    oracle = told()
    oracle.on_read("reader", event(b"1"))
    oracle.on_session("reader")
    oracle.on_read("reader", event(b"1"))
    assert broken(oracle) == []
    oracle.on_read("reader", event(b"1"))
    assert broken(oracle) == ["once"]


def test_what_nobody_published_is_noticed() -> None:
    for forged in (event(b"2"), event(b"1", publisher=BOB), event(b"1", topic="y")):
        oracle = told()
        oracle.on_read("reader", forged)
        assert broken(oracle) == ["true"]


def test_what_was_refused_and_comes_all_the_same_is_noticed() -> None:
    oracle = told()
    oracle.on_refused(b"1")
    oracle.on_read("reader", event(b"1"))
    assert broken(oracle) == ["true"]


def test_one_number_stands_for_one_payload() -> None:
    oracle = told()
    oracle.on_publish("alice", "x", b"2", now=3.0)
    oracle.on_acknowledged(b"1", event(b"1"))
    oracle.on_acknowledged(b"2", event(b"2"))
    assert broken(oracle) == ["fixed"]


def test_what_a_restored_node_published_since_its_backup_may_be_lost_but_keeps_its_meaning() -> None:
    oracle = told()
    oracle.on_acknowledged(b"1", event(b"1"))
    oracle.on_restored("alice", at_s=1.5)
    assert oracle.judge({"bob"}) == 0 and broken(oracle) == []
    oracle.on_read("reader", event(b"1"))  # somebody else had it
    oracle.on_publish("alice", "x", b"2", now=3.0)
    oracle.on_acknowledged(b"2", event(b"2"))  # the number is used again, in the same epoch
    assert broken(oracle) == ["fixed"]


def test_a_number_of_another_epoch_is_another_number() -> None:
    oracle = told()
    oracle.on_acknowledged(b"1", event(b"1"))
    oracle.on_given("reader", event(b"1"))
    oracle.on_publish("alice", "x", b"2", now=3.0)
    oracle.on_acknowledged(b"2", replace(event(b"2"), epoch=9))
    oracle.on_given("reader", replace(event(b"2"), epoch=9))
    assert oracle.judge({"bob"}) == 0 and broken(oracle) == []


def test_a_restored_reader_is_owed_nothing_that_came_before_it_subscribed_again() -> None:
    oracle = told()
    oracle.on_restored("bob", at_s=0.5)  # its subscription is of 1.0
    oracle.on_acknowledged(b"1", event(b"1"))
    assert oracle.judge({"bob"}) == 0 and broken(oracle) == []
