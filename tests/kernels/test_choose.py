from math import comb

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare

from grapevine.kernels.choose import choose_uniform, choose_weighted
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import stream


@njit
def _uniform(seed: int, count: int, bound: int, times: int) -> NDArray[np.int32]:
    out, marks = np.empty((times, count), np.int32), np.full(bound, -1)
    for i in range(times):
        choose_uniform(stream(seed, 0, i), count, bound, marks, i, out[i])
    return out


@njit
def _weighted(seed: int, count: int, weights: NDArray[np.float64], times: int) -> NDArray[np.int32]:
    out, marks, cumulative = np.empty((times, count), np.int32), np.full(len(weights), -1), np.cumsum(weights)
    for i in range(times):
        choose_weighted(stream(seed, 0, i), count, weights, cumulative, marks, i, out[i])
    return out


@given(st.integers(0, 2**40), st.integers(1, 40), st.integers(0, 40))
def test_chosen_items_are_distinct_and_in_range(seed: int, count: int, spare: int) -> None:
    bound = count + spare
    weights = 1.0 / np.arange(1, bound + 1) ** 2
    for chosen in (_uniform(seed, count, bound, 3), _weighted(seed, count, weights, 3)):
        for row in chosen:
            assert len(set(row.tolist())) == count
            assert row.min() >= 0
            assert row.max() < bound


def test_every_subset_is_equally_likely() -> None:
    rows = np.sort(_uniform(1, 2, 5, 20_000), axis=1)
    _, counts = np.unique(rows[:, 0] * 5 + rows[:, 1], return_counts=True)
    assert len(counts) == comb(5, 2)
    assert chisquare(counts).pvalue > 1e-4


def test_weighted_choice_follows_the_law_of_successive_draws() -> None:
    """Against exact probabilities of ordered pairs: p_a · p_b / (1 - p_a)."""
    weights = np.array([8.0, 4.0, 2.0, 1.0])
    times, p = 40_000, weights / weights.sum()
    rows = _weighted(2, 2, weights, times)
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    seen = [int(np.sum((rows[:, 0] == a) & (rows[:, 1] == b))) for a, b in pairs]
    assert chisquare(seen, [times * p[a] * p[b] / (1 - p[a]) for a, b in pairs]).pvalue > 1e-4


def test_the_clocks_follow_the_same_law_when_refusals_pile_up() -> None:
    """One item has nearly all the weight: the second always comes from the exponential clocks."""
    weights = np.array([1e9, 3.0, 1.0])
    rows = _weighted(3, 2, weights, 20_000)
    assert np.all(rows[:, 0] == 0)
    assert chisquare(np.bincount(rows[:, 1], minlength=3)[1:], [15_000, 5_000]).pvalue > 1e-4
