"""The oracle's ears in a cluster of processes: what groups report, in the oracle's words."""

from __future__ import annotations

import pytest

from grapevine.model.identity import PeerId
from grapevine.net.judge import Judge
from grapevine.net.orders import Given, Published

ALICE = PeerId.of(b"alice")


def told() -> Judge:
    """Of node 1, that reads x, and of an event of node 0's, which has number 5 there."""
    judge = Judge()
    judge.on_opened(0, ALICE)
    judge.on_opened(1, PeerId.of(b"bob"))
    judge.on_subscribed({1: ["x"]})
    judge.on_ordered(7, 0, "x")
    judge.on_published(Published(7, 0, sequence=5))
    return judge


def event(number: int = 7, *, sequence: int = 5, session: int = 1, topic: str = "x") -> Given:
    return Given(1, topic, session, str(ALICE), sequence, sequence, number)


def gap(first: int, last: int) -> Given:
    return Given(1, "x", 1, str(ALICE), first, last, None, "given up")


def broken(judge: Judge, down: frozenset[int] = frozenset()) -> list[str]:
    return [violation.promise for violation in judge.verdict(down)[0]]


def test_an_event_that_was_read_is_fine_and_one_that_was_not_is_missing() -> None:
    judge = told()
    assert judge.is_waiting(set()) and not judge.is_waiting({1}), "who is down is owed nothing now"
    assert broken(judge) == ["complete"]
    judge = told()
    judge.on_given(1, event())
    assert not judge.is_waiting(set()) and broken(judge) == []


@pytest.mark.parametrize(("covers", "promises", "reported"), [(gap(1, 9), [], 1), (gap(6, 9), ["complete"], 0)])
def test_a_gap_that_covers_it_reports_it(covers: Given, promises: list[str], reported: int) -> None:
    judge = told()
    judge.on_given(1, covers)
    found, count = judge.verdict(set())
    assert ([violation.promise for violation in found], count) == (promises, reported)


def test_again_is_fine_in_another_session_or_process_and_not_in_the_same() -> None:
    judge = told()
    judge.on_given(1, event())
    judge.on_given(1, event(session=2))
    judge.on_given(2, event(session=1))
    assert broken(judge) == []
    judge.on_given(2, event(session=1))
    assert set(broken(judge)) == {"once", "order"}


def test_what_is_not_what_was_published_is_noticed() -> None:
    for wrong in (event(8), event(sequence=6), Given(1, "x", 1, str(ALICE), 5, 5, None)):
        judge = told()
        judge.on_given(1, wrong)
        assert "true" in broken(judge)


def test_what_a_full_disk_refused_is_owed_to_nobody_and_what_has_no_path_yet_is() -> None:
    judge = told()
    judge.on_given(1, event())
    judge.on_ordered(8, 0, "x")
    judge.on_published(Published(8, 0, "the disk is full", is_kept=False))
    assert not judge.is_waiting(set())
    judge.on_ordered(9, 0, "x")
    judge.on_published(Published(9, 0, "nobody took it"))
    assert judge.is_waiting(set())
