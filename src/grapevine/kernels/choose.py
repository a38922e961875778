"""Choosing distinct items at random, uniformly or by weight, from one hash stream.

`marks` is scratch of one entry per item; an item is taken when its mark equals `stamp`, so nothing is cleared
between calls that use different stamps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, below, unit

Marks = NDArray[np.int64]


@njit
def choose_uniform(state: np.uint64, count: int, bound: int, marks: Marks, stamp: int, out: NDArray[np.int32]) -> None:
    """`count` distinct integers below `bound` into `out`, in no order: Floyd's algorithm, one draw an item.

    `count` is at most `bound`, which is the length of `marks`.
    """
    for i in range(count):
        last = bound - count + i
        item = below(absorb(state, i), last + 1)
        if marks[item] == stamp:
            item = np.int64(last)
        marks[item] = stamp
        out[i] = item


@njit
def choose_weighted(
    state: np.uint64,
    count: int,
    weights: NDArray[np.float64],
    cumulative: NDArray[np.float64],
    marks: Marks,
    stamp: int,
    out: NDArray[np.int32],
) -> None:
    """`count` distinct items into `out`, each next one with probability ∝ weight among those not yet taken.

    `cumulative` is the running sum of `weights`, of which at least `count` are positive. Repeats of plain draws are
    refused at first. When the heavy items are taken and refusals pile up, the rest comes from exponential clocks (item
    i rings after Exp(weight i); the first to ring are chosen), which follows the same law, so the work is O(count log
    items) as a rule and O(items log items) at worst.
    """
    taken = 0
    draws = 0
    while taken < count and draws < 4 * count + 16:
        item = np.searchsorted(cumulative, unit(absorb(state, draws)) * cumulative[-1], side="right")
        draws += 1
        if marks[item] != stamp:
            marks[item] = stamp
            out[taken] = item
            taken += 1
    if taken == count:
        return
    rings = np.full(len(weights), np.inf)
    for item in range(len(weights)):
        if marks[item] != stamp and weights[item] > 0.0:
            rings[item] = -np.log(1.0 - unit(absorb(state, draws + item))) / weights[item]
    order = np.argsort(rings)
    for i in range(count - taken):
        marks[order[i]] = stamp
        out[taken + i] = order[i]


@njit
def pick(state: np.uint64, salt: int, cumulative: NDArray[np.float64]) -> int:
    """One item with probability ∝ its step in `cumulative`, a running sum of weights, by the draw for this salt."""
    return int(np.searchsorted(cumulative, unit(absorb(state, salt)) * cumulative[-1], side="right"))
