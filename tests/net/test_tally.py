"""The meter of a live network, by hand."""

from __future__ import annotations

from grapevine.net.orders import event_in, payload_of
from grapevine.net.tally import Tally

SUBSCRIBERS = {0: [0, 1, 2], 1: [2, 3]}


def tally() -> Tally:
    return Tally(lambda topic: SUBSCRIBERS[topic])


def test_an_event_is_due_at_every_subscriber_but_its_publisher() -> None:
    counted = tally()
    counted.ordered(1, 0, publisher=0)
    counted.arrived(1, 0, 1_000)
    assert counted.delivered() == (0, 0), "nothing is due before it is confirmed"
    counted.arrived(1, 1, 3_000)
    counted.confirmed(1, 1_000, None)
    assert counted.delivered() == (1, 2)
    assert counted.missing() == [(1, 0, 2)]
    counted.arrived(1, 2, 5_000)
    assert counted.delivered() == (2, 2)
    assert counted.delay_ms(0.0, 1.0) == [2.0, 4.0]


def test_what_comes_twice_or_to_the_wrong_node_is_counted_apart() -> None:
    counted = tally()
    counted.ordered(1, 1, publisher=2)
    counted.confirmed(1, 0, None)
    for _ in range(2):
        counted.arrived(1, 3, 1_000)
    counted.arrived(1, 0, 1_000)
    counted.arrived(9, 3, 1_000)
    assert (counted.arrivals, counted.duplicates, counted.strays) == (1, 1, 2)
    counted.arrived(1, 3, 9_000, session=2)
    assert counted.duplicates == 1, "who was restarted reads again what it had read"
    assert counted.delay_ms(1.0) == [1.0]


def test_who_is_down_is_owed_nothing_and_who_comes_back_everything() -> None:
    counted = tally()
    counted.ordered(1, 0, publisher=0)
    counted.confirmed(1, 0, "no path yet")
    counted.arrived(1, 1, 1)
    assert (counted.refused, counted.delivered({2}), counted.delivered({1, 2}), counted.delivered()) == (
        *(1, (1, 1), (0, 0)),
        (1, 2),
    )


def test_what_a_killed_node_did_not_confirm_was_not_promised() -> None:
    counted = tally()
    counted.ordered(1, 0, publisher=0)
    counted.ordered(2, 0, publisher=1)
    assert counted.waiting == 2
    counted.abandon({0})
    assert (counted.waiting, counted.published, counted.delivered()) == (1, 0, (0, 0))


def test_a_payload_tells_its_event_and_whether_it_was_changed() -> None:
    for size in (8, 9, 100):
        payload = payload_of(2**62 + 5, size)
        assert (len(payload), event_in(payload)) == (size, 2**62 + 5)
        assert event_in(payload[:-1] + b"\xff") != 2**62 + 5
    assert event_in(b"short") is None


def test_what_a_full_disk_refused_is_due_nowhere() -> None:
    counted = tally()
    counted.ordered(1, 0, publisher=0)
    counted.confirmed(1, 1_000, "the disk is full", is_kept=False)
    assert (counted.waiting, counted.published, counted.delivered()) == (0, 0, (0, 0))


def test_recovery_is_counted_from_the_end_of_a_fault_for_what_was_missing_then() -> None:
    counted = tally()
    for event in (1, 2):
        counted.ordered(event, 0, publisher=0)
        counted.confirmed(event, 0, None)
    counted.arrived(1, 1, 1_000)
    assert counted.recovery_ms(0.5) == [None]
    counted.fault_over({1}, 10_000)
    counted.arrived(2, 1, 14_000)  # the one that was missing at node 1
    counted.arrived(1, 2, 90_000)  # node 2 was not concerned
    counted.ordered(3, 0, publisher=0)
    counted.confirmed(3, 20_000, None)
    counted.arrived(3, 1, 99_000)  # published afterwards
    assert counted.recovery_ms(0.0, 1.0) == [4.0, 4.0]
