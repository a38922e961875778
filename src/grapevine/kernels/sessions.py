"""Alternating sessions: there, away, there, …, each for an exponential time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, stream, unit

ONOFF = 11  # the `round` word of these draws


@njit
def alternate(
    seed: int, first: int, last: int, mean_up: float, mean_down: float, duration: float
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    """Sessions (node, joined, left) of the nodes first … last-1 from 0 to `duration`; left is NaN where one outlasts
    it.

    Sorted by node, then by time; all times in the unit of the means. A node's sessions depend on the seed and the node
    alone. A node starts there with probability up/(up+down): the exponential law has no memory, so this is the steady
    state.
    """
    nodes, joined, left = [np.int32(0) for _ in range(0)], [0.0 for _ in range(0)], [0.0 for _ in range(0)]
    for node in range(first, last):
        state = stream(seed, ONOFF, node)
        up, now, salt = unit(absorb(state, 0)) < mean_up / (mean_up + mean_down), 0.0, 1
        while now < duration:
            end = now - (mean_up if up else mean_down) * np.log1p(-unit(absorb(state, salt)))
            if up:
                nodes.append(np.int32(node))
                joined.append(now)
                left.append(end if end < duration else np.nan)
            up, now, salt = not up, end, salt + 1
    return np.array(nodes, np.int32), np.array(joined, np.float64), np.array(left, np.float64)
