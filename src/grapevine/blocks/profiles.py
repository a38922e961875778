"""Profiles: what a node tells about itself, its ring id and its topics, as one table with a row per known node.

A simulation passes the whole network's table, a live peer its own small one; rules see row numbers only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapevine.kernels.bits import ask_for
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import inlined, njit

RATE_ONE = float(2**40)  # the largest rate, in fixed point: sums are exact, so their order does not matter

_33 = np.uint64(33)
_LAST_STAMP = 255
_LINE = 32  # topics of two bytes in a cache line of 64


class Profiles(NamedTuple):
    """Descriptors by row: ring id, topics (ascending), and the summed rate of the topics."""

    ids: NDArray[np.uint64]
    starts: Starts  # row → its topics
    topics: NDArray[Any]  # uint16 where the numbers allow it, else int32
    weights: NDArray[np.int64]  # per topic: its rate in fixed point; all 1 where rates are equal
    mass: NDArray[np.int64]  # per row: the weights of its topics, summed


def make_profiles(ids: NDArray[np.uint64], starts: Starts, topics: Columns, rates: NDArray[np.float64]) -> Profiles:
    """The table of nodes with these ring ids and topics (rows of ascending numbers), for topics of these rates."""
    weights = fixed_point(rates)
    small = topics.astype(np.uint16) if len(rates) <= 2**16 else topics  # half the cache lines to fetch
    return Profiles(ids, starts, small, weights, _mass(starts, small, weights))


def fixed_point(rates: ArrayLike) -> NDArray[np.int64]:
    """Rates as integers in proportion. Equal rates are all 1."""
    rates = np.asarray(rates, np.float64)
    if len(rates) == 0 or rates.min() == rates.max():
        return np.ones(len(rates), np.int64)
    return np.asarray(np.round(rates / rates.max() * RATE_ONE), np.int64)


@njit
def _mass(starts: Starts, topics: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.int64]:
    mass = np.zeros(len(starts) - 1, np.int64)
    for row in range(len(mass)):
        for topic in topics[starts[row] : starts[row + 1]]:
            mass[row] += weights[topic]
    return mass


class Marks(NamedTuple):
    """The topics of one node at a time, so that those of others are compared with them in one pass."""

    wanted: NDArray[np.uint8]  # by topic: the stamp if it is one of them. Bytes, which stay in the nearest cache
    stamp: NDArray[np.uint8]  # one number, another for every node, so that nothing has to be cleared
    alike: bool  # whether all topics weigh 1, so that weights need not be read


@njit
def new_marks(profiles: Profiles) -> Marks:
    """Room to mark topics of these profiles; none is marked."""
    alike = True
    for weight in profiles.weights:
        alike &= weight == 1
    return Marks(np.zeros(len(profiles.weights), np.uint8), np.zeros(1, np.uint8), alike)


@inlined
def mark(row: int, profiles: Profiles, marks: Marks) -> None:
    """Mark the topics of the row, and no others."""
    if marks.stamp[0] == _LAST_STAMP:
        marks.stamp[0] = 0
        for topic in range(len(marks.wanted)):
            marks.wanted[topic] = 0
    marks.stamp[0] += np.uint8(1)
    stamp = marks.stamp[0]
    for at in range(np.uint64(profiles.starts[row]), np.uint64(profiles.starts[row + 1])):
        marks.wanted[np.uint32(profiles.topics[at])] = stamp


@inlined
def utility(row: int, other: int, profiles: Profiles, marks: Marks) -> float:
    """Vitis Eq. 1: the rates of the common topics over the rates of all topics of the two; 0 when there are none.

    The topics of `row` are marked; one pass over the other's topics then suffices.
    """
    common, wanted, topics, stamp = np.int64(0), marks.wanted, profiles.topics, marks.stamp[0]
    first, last = np.uint64(profiles.starts[other]), np.uint64(profiles.starts[other + 1])
    if marks.alike:
        for at in range(first, last):  # unsigned indices halve the time: no test for negative ones
            common += wanted[np.uint32(topics[at])] == stamp
    else:
        for at in range(first, last):
            common += (wanted[np.uint32(topics[at])] == stamp) * profiles.weights[np.uint32(topics[at])]
    union = profiles.mass[row] + profiles.mass[other] - common
    return common / union if union > 0 else 0.0


@inlined
def ask_for_topics(rows: NDArray[np.int32], count: int, profiles: Profiles) -> None:
    """Begin to load the topics of the first `count` rows, before `utility` needs them one after the other."""
    for i in range(np.uint64(count)):
        row = np.uint64(rows[i])
        for at in range(profiles.starts[row], profiles.starts[row + np.uint64(1)], _LINE):
            ask_for(profiles.topics, at)


@inlined
def preference(value: float, tie: np.uint64) -> np.int64:
    """A sort key for a utility in 0 … 1: 32 bits of it, then 31 bits of a hash that decides ties. Never negative."""
    return np.int64(value * 2147483648.0) << 31 | np.int64(tie >> _33)
