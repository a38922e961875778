"""The friendship overlay (§3) against sets and plain searches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grapevine.systems.contracts.peer import Address
from grapevine.systems.rappel import bloom
from grapevine.systems.rappel.config import RappelConfig
from grapevine.systems.rappel.friends import Friendship, Known, term, utility
from grapevine.systems.rappel.messages import Profile

Bits = frozenset[int]
Place = tuple[frozenset[int], tuple[float, float]]  # bits of the filter, position


def number_of(bits: Bits) -> int:
    return sum(1 << bit for bit in bits)


def known(place: Place) -> Known:
    return Known((1, 1), number_of(place[0]), place[1])


def friendship_of(mine: Place, incumbents: Sequence[Place] = (), **parameters: Any) -> Friendship:
    """A node 0 with the friends 1, 2, …"""
    friendship = Friendship(RappelConfig(**parameters), 0, known(mine))
    friendship.friends = {number: known(friend) for number, friend in enumerate(incumbents, 1)}
    return friendship


def plain_utility(mine: Place, friends: Sequence[Place], least_ms: float = 1.0) -> float:
    """Fig. 3, read from left to right."""
    total = 0.0
    for j, (bits, position) in enumerate(friends):
        others = [other for k, (other, _) in enumerate(friends) if k != j]
        base = len(mine[0] & bits) / len(mine[0] | bits) if mine[0] | bits else 0.0
        unique = {b for b in mine[0] & bits if all(b not in other for other in others)}
        bonus = len(unique) / len(mine[0]) if mine[0] else 0.0
        total += (base + bonus) / max(math.dist(mine[1], position), least_ms)
    return total


def code_utility(mine: Place, friends: Sequence[Place]) -> float:
    return utility(len(mine[0]) or 1, friendship_of(mine).terms([known(friend) for friend in friends]))


def worth_of_exchanges(mine: Place, friends: Sequence[Place], newcomer: Place) -> list[float]:
    """Algorithm 1: what the friends would be worth if the newcomer took the place of the first, the second, …"""
    return [plain_utility(mine, [*friends[:i], *friends[i + 1 :], newcomer]) for i in range(len(friends))]


coordinate = st.floats(-100, 100, allow_nan=False)
places = st.tuples(st.frozensets(st.integers(0, 30), max_size=12), st.tuples(coordinate, coordinate))


@given(places, st.lists(places, max_size=8))
def test_the_utility_is_that_of_figure_3(mine: Place, friends: list[Place]) -> None:
    assert code_utility(mine, friends) == pytest.approx(plain_utility(mine, friends))


def feeds(*numbers: int) -> Bits:
    return frozenset(numbers)


A, B, C = feeds(1, 2, 3, 4, 5), feeds(1, 3, 5, 7), feeds(2, 4, 6)


@pytest.mark.parametrize(("latency_s", "worth"), [(0.001, 500.0), (0.1, 5.0)])
def test_the_papers_example_of_two_nodes(latency_s: float, worth: float) -> None:
    """§3.2: overlap 0.5; 500 and 5 are per second, the code counts in ms."""
    near, _, base = term(known((A, (0.0, 0.0))), known((B, (1_000 * latency_s, 0.0))), least_ms=1.0)
    assert base == 0.5
    assert 1_000 * near * base == pytest.approx(worth)


def test_of_two_friends_at_one_distance_the_one_with_more_in_common_is_worth_more() -> None:
    """§3.2: C's overlap with A is 2 of 6."""
    mine = known((A, (0.0, 0.0)))
    of_b, of_c = (term(mine, known((theirs, (9.0, 0.0))), least_ms=1.0) for theirs in (B, C))
    assert of_c.base == pytest.approx(1 / 3)
    assert of_b.near * of_b.base > of_c.near * of_c.base


def test_the_papers_example_of_the_bonus() -> None:
    """§3.2: B is alone with feeds 1, 3 and 5, C with 2 and 4, of A's five. (The paper forgets 1 and 2.)"""
    together = code_utility((A, (0.0, 0.0)), [(B, (10.0, 0.0)), (C, (10.0, 0.0))])
    assert together == pytest.approx((3 / 6 + 3 / 5) / 10 + (2 / 6 + 2 / 5) / 10)
    twins = code_utility((A, (0.0, 0.0)), [(B, (10.0, 0.0)), (B, (10.0, 0.0))])
    assert twins == pytest.approx(2 * (3 / 6) / 10)


def test_the_distance_does_not_count_where_interest_is_alone() -> None:
    """Fig. 9b."""
    friendship = friendship_of((A, (0.0, 0.0)), interest="alone")
    near, far = (friendship.terms([known((B, (x, 0.0)))]) for x in (1.0, 100.0))
    assert near == far


def test_two_nodes_at_one_place_are_a_least_distance_apart() -> None:
    assert code_utility((A, (5.0, 5.0)), [(B, (5.0, 5.0))]) == pytest.approx(0.5 + 3 / 5)


@given(places, st.lists(places, min_size=1, max_size=5), places, st.sampled_from([0.0, 0.01, 0.5]))
def test_a_newcomer_replaces_the_friend_without_whom_the_utility_is_highest(
    mine: Place, friends: list[Place], newcomer: Place, delta: float
) -> None:
    """Algorithm 1, with incumbent friends as victims (§3.4)."""
    worth, needed = worth_of_exchanges(mine, friends, newcomer), (1 + delta) * plain_utility(mine, friends)
    assume(max(worth) != pytest.approx(needed) or max(worth) == 0)  # else a matter of rounding
    friendship = friendship_of(mine, friends, friends=len(friends), hysteresis=delta)
    welcome, victim = friendship.victim(known(newcomer))
    assert welcome == (max(worth) > needed)
    if welcome:
        assert victim is not None
        assert worth[victim - 1] == pytest.approx(max(worth))


def test_while_there_is_room_everybody_is_welcome() -> None:
    """§3.4: automatically a viable friend."""
    nothing_in_common: Place = (feeds(29), (1_000.0, 0.0))
    assert friendship_of((A, (0.0, 0.0)), [(B, (1.0, 0.0))], friends=2).victim(known(nothing_in_common)) == (True, None)


@pytest.mark.parametrize(("distance_ms", "welcome"), [(9.95, False), (9.85, True)])
def test_a_friend_is_exchanged_for_more_than_one_percent_only(distance_ms: float, welcome: bool) -> None:
    """§3.4: δ."""
    friendship = friendship_of((A, (0.0, 0.0)), [(B, (10.0, 0.0))], friends=1)
    assert friendship.victim(known((B, (0.0, distance_ms))))[0] == welcome


# Candidates


def test_whoever_is_heard_of_gets_a_vote() -> None:
    """§3.3."""
    friendship = friendship_of((A, (0.0, 0.0)), [(B, (1.0, 0.0))])
    friendship.hear_of([7, 8, 7])
    friendship.hear_of([7, 0, 1])  # itself and a friend are no candidates
    assert {node: candidate.votes for node, candidate in friendship.candidates.items()} == {8: 1, 7: 3}


@given(st.lists(st.lists(st.integers(1, 12), max_size=6), max_size=20), st.integers(1, 2))
def test_the_least_recently_heard_of_candidate_makes_room(rumours: list[list[Address]], most: int) -> None:
    """§3.3: at most 3 α² + 2 α."""
    friendship = friendship_of((A, (0.0, 0.0)), friends=most)
    for heard in rumours:
        friendship.hear_of(heard)
    last_heard = list(dict.fromkeys(reversed([node for heard in rumours for node in heard])))
    assert list(friendship.candidates) == last_heard[: 3 * most**2 + 2 * most][::-1]


def test_candidates_are_audited_by_their_votes_and_once() -> None:
    """§3.4; of equal votes the one heard of last."""
    friendship = friendship_of((A, (0.0, 0.0)))
    friendship.hear_of([5, 6, 7, 8, 6, 6, 7, 7])
    assert [friendship.next_candidate() for _ in range(5)] == [7, 6, 8, 5, None]


def test_every_change_of_friends_opens_all_candidates_to_audits_again() -> None:
    """§3.4: audited is false and votes are 0."""
    friendship = friendship_of((A, (0.0, 0.0)), [(B, (1.0, 0.0))])
    friendship.hear_of([5, 6, 5])
    friendship.next_candidate()
    friendship.befriend(6, known((C, (2.0, 0.0))), victim=1)
    assert set(friendship.friends) == {6}
    assert [(c.votes, c.audited) for c in friendship.candidates.values()] == [(0, False)]
    friendship.next_candidate()
    friendship.lose(6)
    assert [(c.votes, c.audited) for c in friendship.candidates.values()] == [(0, False)]
    friendship.next_candidate()
    friendship.lose(6)  # no friend any more: nothing changes
    assert friendship.candidates[5].audited


# Fans


def test_fans_are_taken_first_come_first_served_up_to_twice_the_friends() -> None:
    """§3.1.2, §3.4."""
    friendship = friendship_of((A, (0.0, 0.0)), friends=2)
    assert [friendship.accept_fan(node, 0.0) for node in (5, 6, 7, 8, 9, 5)] == [True] * 4 + [False, True]


def test_a_fan_that_is_silent_for_too_long_is_none() -> None:
    """§3.3: the keep-alive period plus the time-out."""
    friendship = friendship_of((A, (0.0, 0.0)))
    friendship.accept_fan(5, 10.0)
    friendship.accept_fan(6, 60.0)
    friendship.drop_silent_fans(before=100.0 - 45.0)
    assert set(friendship.fans) == {6}


def test_friends_who_seem_to_have_a_feed_are_asked_the_closest_first() -> None:
    """§5.1."""
    has, has_not = bloom.bloom_of(["x", "y"]), bloom.bloom_of(["y"])
    friendship = friendship_of((A, (0.0, 0.0)))
    for node, (filter_, x) in enumerate([(has, 30.0), (has_not, 1.0), (has, 20.0)], 1):
        friendship.friends[node] = Known.of(Profile((1, 1), bloom.to_bytes(filter_), (x, 0.0)))
    assert friendship.covering(bloom.mask("x")) == [3, 1]
