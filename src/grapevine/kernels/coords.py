"""Vivaldi (Dabek et al., SIGCOMM 2004): a node moves as if springs of the measured length tied it to the others.

Positions are points of a Euclidean space in which distances are round trips in milliseconds. An error is relative, 1 at
first: how far measured and computed distances were apart lately.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.jit import njit

Position = NDArray[np.float64]
MOVE, TRUST = 0.25, 0.25  # c_c and c_e, Vivaldi §4
_STILL_MS = 0.01
_LEAST_MS = 0.5  # what is nearer is not told apart: errors are relative
_STRAY = 1.0  # the direction of two nodes at the same place: apart along a fixed diagonal


@njit
def pull(position: Position, error: float, other: Position, other_error: float, measured: float) -> float:
    """Move `position`, in place, by one measurement of the round trip to another node (Vivaldi Fig. 4).

    `error` and `other_error` are the two nodes' relative errors; returns the new one of the node that moves.
    """
    distance = 0.0
    for i in range(len(position)):
        distance += (position[i] - other[i]) ** 2
    distance = math.sqrt(distance)
    weight = error / (error + other_error) if error + other_error > 0 else 0.5
    sample = abs(distance - measured) / max(measured, _LEAST_MS)
    step = MOVE * weight * (measured - distance)
    for i in range(len(position)):
        if distance > 0:
            position[i] += step * (position[i] - other[i]) / distance
        else:
            position[i] += step * (_STRAY if i % 2 == 0 else -_STRAY) / math.sqrt(len(position))
    return sample * TRUST * weight + error * (1 - TRUST * weight)


@njit
def settle(
    position: Position, others: NDArray[np.float64], errors: NDArray[np.float64], measured: Position, passes: int
) -> float:
    """Repeat the measurements to nodes at these positions ([node, dimension]) until `position` rests, or for so many
    passes; moves it in place and returns its mean relative error.

    Steps become smaller every few passes: springs that cannot all be content would swing for ever.
    """
    error, patience = 1.0, 1.0
    before = position.copy()
    for done in range(passes):
        before[:] = position
        for k in range(len(measured)):
            error = pull(position, error, others[k], max(errors[k] * patience, 1e-6), measured[k])
        moved = 0.0
        for i in range(len(position)):
            position[i] = before[i] + (position[i] - before[i]) / patience
            moved += (position[i] - before[i]) ** 2
        if math.sqrt(moved) < _STILL_MS:
            break
        if done % 8 == 7:
            patience *= 1.5
    total = 0.0
    for k in range(len(measured)):
        distance = 0.0
        for i in range(len(position)):
            distance += (position[i] - others[k, i]) ** 2
        total += abs(math.sqrt(distance) - measured[k]) / max(measured[k], _LEAST_MS)
    return total / max(len(measured), 1)
