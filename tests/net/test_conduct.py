"""What peers may send, and what becomes of those who break the rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.identity import PeerId
from grapevine.net import conduct as module
from grapevine.net.conduct import BANNED, FORGED, GARBAGE, REFUSED, Conduct, TokenBucket

MALLORY, ALICE = PeerId.of(b"mallory"), PeerId.of(b"alice")


def test_a_bucket_gives_a_second_at_once_and_then_makes_wait() -> None:
    bucket = TokenBucket(100, now=0.0)
    assert bucket.take(100, 0.0) == 0.0
    assert bucket.take(50, 0.0) == pytest.approx(0.5)
    assert bucket.take(0, 0.25) == pytest.approx(0.25)
    assert bucket.take(0, 0.5) == 0.0


def test_a_bucket_does_not_save_up_more_than_a_second() -> None:
    bucket = TokenBucket(100, now=0.0)
    assert bucket.take(100, 1_000.0) == 0.0
    assert bucket.take(1, 1_000.0) == pytest.approx(0.01)


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(0, 500)), min_size=1, max_size=50))
def test_who_waits_as_told_never_gets_more_than_the_rate_and_one_second(steps: list[tuple[float, int]]) -> None:
    bucket, now, taken = TokenBucket(100, 0.0), 0.0, 0
    for pause, amount in steps:
        now += pause
        taken += amount
        now += bucket.take(amount, now)
        assert taken <= 100 * (now + 1) + 1e-6


def test_garbage_bans_at_once_and_only_who_sent_it() -> None:
    conduct = Conduct(ban_s=60)
    assert conduct.blame(MALLORY, "garbage", GARBAGE, now=0.0)
    assert conduct.is_banned(MALLORY, 59.9) and not conduct.is_banned(ALICE, 0.0)
    assert conduct.counts == {"garbage": 1}


def test_a_ban_ends_and_with_it_what_was_held_against_the_peer() -> None:
    conduct = Conduct(ban_s=60)
    conduct.blame(MALLORY, "garbage", GARBAGE, now=0.0)
    assert not conduct.is_banned(MALLORY, 60.0) and conduct.points(MALLORY, 60.0) == 0
    assert not conduct.blame(MALLORY, "forged", FORGED, now=60.0)


def test_small_misdeeds_add_up_but_are_forgotten_in_time() -> None:
    often, seldom = Conduct(60), Conduct(60)
    assert [often.blame(MALLORY, "refused", REFUSED, float(n)) for n in range(11)].index(True) == 10
    assert not any(seldom.blame(MALLORY, "refused", REFUSED, 60.0 * n) for n in range(1_000))
    assert seldom.points(MALLORY, 60.0 * 999) <= 2 * REFUSED < BANNED


def test_a_banned_peer_that_goes_on_is_banned_for_longer() -> None:
    conduct = Conduct(ban_s=60)
    conduct.blame(MALLORY, "garbage", GARBAGE, now=0.0)
    assert conduct.blame(MALLORY, "garbage", GARBAGE, now=30.0)
    assert conduct.is_banned(MALLORY, 80.0) and not conduct.is_banned(MALLORY, 90.0)


def test_many_culprits_fill_no_memory_and_the_latest_stay_banned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REMEMBERED", 50)
    conduct = Conduct(ban_s=60)
    culprits = [PeerId.of(b"%d" % n) for n in range(200)]
    for number, culprit in enumerate(culprits):
        conduct.blame(culprit, "garbage", GARBAGE, now=number / 1_000)
    assert [conduct.is_banned(culprit, 1.0) for culprit in culprits] == [False] * 150 + [True] * 50
    assert len(conduct._points) == 50
