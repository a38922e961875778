"""Profiles: what a node tells about itself, its ring id and its topics, as one table with a row per known node.

A simulation passes the whole network's table, a live peer its own small one; rules see row numbers only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit

RATE_ONE = float(2**40)  # the largest rate, in fixed point: sums are exact, so their order does not matter

_33 = np.uint64(33)


class Profiles(NamedTuple):
    """Descriptors by row: ring id, topics (ascending), and the summed rate of the topics."""

    ids: NDArray[np.uint64]
    starts: Starts
    topics: Columns
    weights: NDArray[np.int64]  # per topic: its rate in fixed point
    mass: NDArray[np.int64]  # per row: the weights of its topics, summed


def make_profiles(ids: NDArray[np.uint64], starts: Starts, topics: Columns, rates: NDArray[np.float64]) -> Profiles:
    """Profiles of known subscriptions and publication rates."""
    weights = fixed_point(rates)
    return Profiles(ids, starts, topics, weights, _mass(starts, topics, weights))


def fixed_point(rates: ArrayLike) -> NDArray[np.int64]:
    """Rates as integers in proportion. Equal rates are all 1, which keeps plain counts readable."""
    rates = np.asarray(rates, np.float64)
    if len(rates) == 0 or rates.min() == rates.max():
        return np.ones(len(rates), np.int64)
    return np.asarray(np.round(rates / rates.max() * RATE_ONE), np.int64)


@njit
def _mass(starts: Starts, topics: Columns, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    mass = np.zeros(len(starts) - 1, np.int64)
    for row in range(len(mass)):
        for topic in topics[starts[row] : starts[row + 1]]:
            mass[row] += weights[topic]
    return mass


@njit
def lay_out(row: int, profiles: Profiles, dense: NDArray[np.int64]) -> None:
    """Write the weights of the row's topics into `dense` (one entry per topic, zero elsewhere)."""
    for topic in profiles.topics[profiles.starts[row] : profiles.starts[row + 1]]:
        dense[topic] = profiles.weights[topic]


@njit
def clear(row: int, profiles: Profiles, dense: NDArray[np.int64]) -> None:
    """Undo `lay_out`."""
    for topic in profiles.topics[profiles.starts[row] : profiles.starts[row + 1]]:
        dense[topic] = 0


@njit
def utility(row: int, other: int, profiles: Profiles, dense: NDArray[np.int64]) -> float:
    """Vitis Eq. 1: the rates of the common topics over the rates of all topics of the two; 0 when there are none.

    `dense` holds the topics of `row` (`lay_out`); one pass over the other's topics then suffices.
    """
    common = np.int64(0)
    for at in range(np.uint64(profiles.starts[other]), np.uint64(profiles.starts[other + 1])):
        common += dense[np.uint32(profiles.topics[at])]  # unsigned indices halve the time: no test for negative ones
    union = profiles.mass[row] + profiles.mass[other] - common
    return common / union if union > 0 else 0.0


@njit
def preference(value: float, tie: np.uint64) -> np.int64:
    """A sort key for a utility in 0 … 1: 32 bits of it, then 31 bits of a hash that decides ties."""
    return np.int64(value * 2147483648.0) << 31 | np.int64(tie >> _33)
