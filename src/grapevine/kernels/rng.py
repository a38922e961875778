"""Randomness as a counter hash: `draw(seed, round, node, salt)` is a pure function of its four words.

So a result depends on the seed alone: not on threads, partitions, processes, nor on local or cluster runs.
The word `round` is a round, or for decisions that are made once a number that stands for their purpose; `salt` tells
several draws of one node and round apart. Whoever draws declares its numbers, so that no two decisions share any.
`mix` is the finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014); `draw` absorbs one word per application.
All arithmetic stays in uint64: numba turns a mixture of int64 and uint64 into float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.jit import njit

Word = int | np.uint64

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
_27 = np.uint64(27)
_30 = np.uint64(30)
_31 = np.uint64(31)
_32 = np.uint64(32)
_11 = np.uint64(11)


@njit
def mix(z: np.uint64) -> np.uint64:
    """SplitMix64's finaliser: a bijection of 64-bit words in which every input bit moves half the output bits."""
    z = (z ^ (z >> _30)) * FIRST_FACTOR
    z = (z ^ (z >> _27)) * SECOND_FACTOR
    return z ^ (z >> _31)


@njit
def absorb(state: np.uint64, word: Word) -> np.uint64:
    """The hash state after one more word, which is itself 64 random bits."""
    return mix((state ^ np.uint64(word)) + GAMMA)


@njit
def draw(seed: Word, round: Word, node: Word, salt: Word) -> np.uint64:
    """64 random bits for one (seed, round, node, salt)."""
    return absorb(absorb(absorb(absorb(np.uint64(0), seed), round), node), salt)


@njit
def stream(seed: Word, round: Word, node: Word) -> np.uint64:
    """The common prefix of many draws: `draw(seed, round, node, salt) == absorb(stream(seed, round, node), salt)`."""
    return absorb(absorb(absorb(np.uint64(0), seed), round), node)


@njit
def unit(bits: np.uint64) -> float:
    """A float in [0, 1) from the upper 53 bits."""
    return np.float64(bits >> _11) * (1.0 / 9007199254740992.0)


@njit
def below(bits: np.uint64, bound: int) -> np.int64:
    """An integer in [0, bound) from the upper 32 bits; bound < 2**32, bias below bound / 2**32."""
    return np.int64(((bits >> _32) * np.uint64(bound)) >> _32)


@njit
def priorities(seed: int, purpose: int, count: int) -> NDArray[np.uint64]:
    """A random rank for each of the items 0 … count-1: sorted by it they are in random order."""
    out = np.empty(count, np.uint64)
    for i in range(count):
        out[i] = draw(seed, purpose, i, 0)
    return out
