"""SpiderCast's rules on anything: each choice against a search through all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from grapevine.blocks import coverage
from grapevine.blocks.coverage import Gains, Membership
from grapevine.blocks.profiles import Profiles, make_profiles
from grapevine.blocks.views import NOBODY
from grapevine.kernels import csr
from tests.naive import draw
from tests.naive_connections import MEMBERSHIP


def int32(numbers: Sequence[int]) -> NDArray[np.int32]:
    return np.array(numbers, np.int32)


class Situation(NamedTuple):
    """A node p = 0, its wish, its neighbours and what it knows."""

    interests: list[set[int]]
    k: int
    neighbours: list[int]
    asked: list[int]
    alive: list[bool]
    degree: list[int]
    target: list[int]
    share: float
    seed: int

    def profiles(self) -> Profiles:
        starts = np.cumsum([0, *map(len, self.interests)]).astype(np.int64)
        topics = int32([topic for mine in self.interests for topic in sorted(mine)])
        return make_profiles(np.arange(len(self.interests), dtype=np.uint64), starts, topics, np.ones(TOPICS))

    def members(self, profiles: Profiles) -> Membership:
        alive = np.array(self.alive)
        rows = csr.transpose(profiles.starts, profiles.topics.astype(np.int32), TOPICS)
        return Membership(self.seed, self.share, alive, np.flatnonzero(alive).astype(np.int32), *rows)

    def taken(self) -> NDArray[np.int32]:
        return int32([*self.neighbours, NOBODY, *self.asked])

    def ties(self) -> np.uint64:
        return np.uint64(draw(self.seed, 1, 0))

    def uncovered(self, neighbours: Sequence[int]) -> set[int]:
        """Fig. 3, lines 1-7."""
        return {t for t in self.interests[0] if sum(t in self.interests[q] for q in neighbours) < self.k}

    def gains(self) -> dict[int, int]:
        """Nodes that p knows and may ask, and what each would cover."""
        known = {
            q for q in range(1, len(self.interests))
            if self.alive[q] and (self.share == 1 or draw(self.seed, MEMBERSHIP, 0, q) / 2**64 < self.share)
        }  # fmt: skip
        open_topics = self.uncovered(self.neighbours)
        gains = {q: len(self.interests[q] & open_topics) for q in known - {*self.neighbours, *self.asked}}
        return {q: gain for q, gain in gains.items() if gain > 0}


TOPICS = 6


@st.composite
def situations(pick: st.DrawFn) -> Situation:
    size = pick(st.integers(2, 9))
    others = st.lists(st.integers(1, size - 1), unique=True, max_size=size)
    small = st.lists(st.integers(0, 3), min_size=size, max_size=size)
    return Situation(
        pick(st.lists(st.sets(st.integers(0, TOPICS - 1)), min_size=size, max_size=size)),
        pick(st.integers(1, 3)),
        pick(others),
        pick(others),
        pick(st.lists(st.booleans(), min_size=size, max_size=size)),
        pick(small),
        pick(small),
        pick(st.sampled_from([1.0, 0.5])),
        pick(st.integers(0, 2**63 - 1)),
    )


class Laid(NamedTuple):
    """The same as the kernels want it."""

    profiles: Profiles
    members: Membership
    need: coverage.Need
    scratch: Gains


def lay(at: Situation) -> Laid:
    profiles, size = at.profiles(), len(at.interests)
    need, scratch = np.zeros(TOPICS, np.int64), Gains(np.zeros(size, np.int32), np.empty(size, np.int32))
    coverage.lay_need(0, at.k, int32(at.neighbours), profiles, need)
    return Laid(profiles, at.members(profiles), need, scratch)


def assert_clean(at: Situation, laid: Laid) -> None:
    """What the kernels lent is as they found it."""
    coverage.clear_need(0, int32(at.neighbours), laid.profiles, laid.need)
    assert not laid.need.any()
    assert not laid.scratch.gain.any()


@given(situations())
def test_the_greedy_choice_covers_as_much_as_any_allowed_node(at: Situation) -> None:
    laid, gains = lay(at), at.gains()
    assert coverage.uncovered(0, laid.profiles, laid.need) == len(at.uncovered(at.neighbours))
    chosen = coverage.next_greedy(0, at.ties(), at.taken(), *laid)
    assert chosen == NOBODY if not gains else gains[chosen] == max(gains.values())
    assert_clean(at, laid)


@given(situations())
def test_the_random_choice_is_a_known_node_that_covers_something_and_is_not_taken(at: Situation) -> None:
    laid, gains = lay(at), at.gains()
    chosen = coverage.next_random(0, at.ties(), at.taken(), *laid)
    assert chosen in gains if gains else chosen == NOBODY
    assert_clean(at, laid)


@given(situations())
def test_a_stranger_is_any_known_node_that_is_not_taken(at: Situation) -> None:
    members = at.members(at.profiles())
    known = {
        q for q in range(1, len(at.interests))
        if at.alive[q] and (at.share == 1 or draw(at.seed, MEMBERSHIP, 0, q) / 2**64 < at.share)
    }  # fmt: skip
    able = known - {*at.neighbours, *at.asked}
    chosen = coverage.next_stranger(0, at.ties(), at.taken(), members)
    assert chosen in able if able else chosen == NOBODY


def test_the_only_node_that_one_knows_of_thousands_is_found() -> None:
    """A view of 5 of 5,000 nodes (§3.9.1, §3.7): a hundred draws from all of them hardly ever meet one of it."""
    size, nobody = 5_000, int32([])
    alive, everyone = np.ones(size, np.bool_), np.arange(size, dtype=np.int32)
    members = Membership(3, 0.001, alive, everyone, np.zeros(1, np.int64), nobody)
    for p in range(20):
        known = {q for q in range(size) if q != p and draw(3, MEMBERSHIP, p, q) / 2**64 < 0.001}
        found = {coverage.next_stranger(p, np.uint64(draw(1, p, i)), nobody, members) for i in range(40)}
        assert found <= known
        assert len(found) > len(known) / 2


@given(situations())
def test_the_disconnect_candidate_costs_least_of_those_with_more_than_they_need(at: Situation) -> None:
    laid = lay(at)
    chosen = coverage.disconnect_candidate(
        int32(at.neighbours), int32(at.degree), int32(at.target), at.ties(), laid.profiles, laid.need
    )
    cost = {
        q: len(at.uncovered([other for other in at.neighbours if other != q]))
        for q in at.neighbours
        if at.degree[q] > at.target[q]
    }
    assert cost[chosen] == min(cost.values()) if cost else chosen == NOBODY
    assert_clean(at, laid)


@given(situations())
def test_the_redirect_candidate_shares_most_with_who_asks_of_those_below_their_target(at: Situation) -> None:
    asking = len(at.interests) - 1
    chosen = coverage.redirect_candidate(
        asking, int32(at.neighbours), int32(at.degree), int32(at.target), (at.k - 1, True), at.ties(), at.profiles()
    )
    shared = {
        q: len(at.interests[q] & at.interests[asking])
        for q in at.neighbours
        if q != asking and at.degree[q] < at.target[q] + at.k - 1
    }
    assert shared[chosen] == max(shared.values()) if shared else chosen == NOBODY
