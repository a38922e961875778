"""The rules of Trellis, one by one: what a peer and the rounds may rely on."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from grapevine.systems.trellis import rules

words = st.integers(0, 2**64 - 1).map(np.uint64)
patiently = settings(deadline=None)  # the first call of a rule compiles it
few = st.integers(0, 5)
labels = st.tuples(words, few, words)


@patiently
@given(st.lists(labels, min_size=1, max_size=6))
def test_the_best_label_does_not_depend_on_the_order_in_which_they_came(
    heard: list[tuple[np.uint64, int, np.uint64]],
) -> None:
    best = heard[0]
    for label in heard[1:]:
        best = label if rules.is_better_label(label, best) else best
    assert best == min(heard)


@patiently
@given(st.lists(st.tuples(words, words), min_size=1, max_size=6))
def test_neither_does_the_best_offer(offers: list[tuple[np.uint64, np.uint64]]) -> None:
    best = offers[0]
    for offer in offers[1:]:
        best = offer if rules.is_better_offer(offer, best) else best
    assert best == min(offers)


@patiently
@given(words, words)
def test_a_parent_wins_every_tie(node: np.uint64, neighbour: np.uint64) -> None:
    assert rules.parent_tie(node, neighbour, True) == 0 < rules.parent_tie(node, neighbour, False)


@patiently
@given(st.integers(0, 90), st.booleans(), st.booleans())
def test_no_label_is_taken_that_may_have_come_from_oneself(hops: int, own: bool, buried: bool) -> None:
    taken = rules.may_adopt(hops, own, buried)
    assert taken == (not own and not buried and hops < rules.MOST_HOPS - 1)


@patiently
@given(few, few, few, st.integers(-1, 5))
def test_a_buried_root_is_revived_by_a_newer_tick_or_from_nearer_alone(
    tick: int, hops: int, old: int, far: int
) -> None:
    assert rules.is_buried(tick, hops, old, far) != (tick > old or hops <= far)


@patiently
@given(st.floats(0, 20), st.floats(0, 20), st.floats(0, 20), st.floats(0, 20), st.floats(0, 6))
def test_friends_link_only_if_both_together_win(g: float, h: float, v: float, w: float, margin: float) -> None:
    linked = rules.accepts_friend((g, h), (v, w), margin)
    assert linked == rules.accepts_friend((h, g), (w, v), margin)
    if linked and v + w > 0:
        assert (g + h) / 2 > v + w + margin
    if v + w == 0:
        assert linked == (g + h > 0)


def test_whoever_looks_more_rarely_wants_more() -> None:
    assert [rules.margin_now(0.75, 0.25, interval) for interval in (1, 2, 32)] == [0.75, 1.0, 2.0]
    assert [rules.next_interval(interval, 40, since, 15, 32) for interval, since in ((1, 25), (1, 24), (32, 0))] == [
        1,
        2,
        32,
    ]


def test_an_edge_of_the_tree_is_worth_most_and_a_neighbour_among_many_least() -> None:
    assert rules.shared_value(True, 9, 2, 0.25, 0.05) == 1.0
    assert [rules.shared_value(False, n, 2, 0.25, 0.05) for n in (1, 2, 3)] == [0.25, 0.25, 0.05]
    assert [rules.gain_in_topic(False, n, 2, 0.25, 0.05) for n in (1, 2)] == [0.25, 0.05]
    assert rules.gain_in_topic(True, 9, 2, 0.25, 0.05) == 1.0


def test_who_looks_for_a_way_itself() -> None:
    """A root until its choice has arrived; the end of a bridge that is gone; an orphan; nobody else."""
    assert rules.looks_for_way(True, False, True, False, False)
    assert rules.looks_for_way(True, True, False, False, False)
    assert not rules.looks_for_way(True, True, True, False, False)
    assert not rules.looks_for_way(False, True, True, False, False)
    assert rules.looks_for_way(False, True, True, True, False)
    assert rules.looks_for_way(False, False, True, False, True)
