"""The counter hash is pinned by vectors: a changed draw would silently change every stored result."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from grapevine.kernels import rng
from grapevine.kernels.jit import njit
from tests import naive

words = st.integers(0, 2**63 - 1)


@njit
def _mixed(z: int, times: int) -> np.uint64:
    return rng.mix(np.uint64(z) + np.uint64(times) * rng.GAMMA)


@njit
def _units(seed: int, count: int) -> np.ndarray:
    out = np.empty(count)
    for i in range(count):
        out[i] = rng.unit(rng.draw(seed, 0, i, 0))
    return out


@njit
def _belows(seed: int, bound: int, count: int) -> np.ndarray:
    out = np.empty(count, np.int64)
    for i in range(count):
        out[i] = rng.below(rng.draw(seed, 0, i, 0), bound)
    return out


def test_mix_gives_the_published_splitmix64_sequence() -> None:
    # Seed 1234567, as printed in the reference implementations of SplitMix64.
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert [int(_mixed(1234567, i)) for i in range(1, 6)] == published


def test_draw_has_not_changed() -> None:
    vectors = {
        (0, 0, 0, 0): 2391539541053276776,
        (1, 2, 3, 4): 15374388949593934587,
        (42, 0, 9_999, 7): 1387273319590262016,
    }
    assert {key: int(rng.draw(*key)) for key in vectors} == vectors


@given(words, words, words, words)
def test_draw_is_the_plain_integer_hash(seed: int, round: int, node: int, salt: int) -> None:
    assert int(rng.draw(seed, round, node, salt)) == naive.draw(seed, round, node, salt)


def test_units_are_uniform_and_neighbouring_counters_independent() -> None:
    values = _units(3, 100_000)
    assert values.min() >= 0
    assert values.max() < 1
    assert kstest(values, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.02


def test_below_is_uniform() -> None:
    values = _belows(5, 7, 70_000)
    assert chisquare(np.bincount(values, minlength=7)).pvalue > 1e-4


def test_one_flipped_bit_moves_half_of_the_output() -> None:
    flips = [(naive.draw(1, 0, 5, 0) ^ int(rng.draw(1, 0, 5 ^ 1 << bit, 0))).bit_count() for bit in range(63)]
    assert 24 < np.mean(flips) < 40


def test_priorities_are_draws() -> None:
    assert [int(p) for p in rng.priorities(9, 4, 3)] == [naive.draw(9, 4, i, 0) for i in range(3)]
