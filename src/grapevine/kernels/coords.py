"""Vivaldi (Dabek et al., SIGCOMM 2004): a node moves as if springs of the measured length tied it to the others.

Positions are points of a Euclidean space in which distances are latencies in milliseconds. With heights (§5.4) the last
number of a position is its height, 0 or more: how far the node is from the core of the network, which every way from it
and to it passes; two heights add to the distance of the points. An error is relative, 1 at first: how far measured and
computed distances were apart lately.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.jit import njit

Position = NDArray[np.float64]
MOVE, TRUST = 0.25, 0.25  # c_c and c_e, Vivaldi §4
_STILL_MS = 0.001
_LEAST_MS = 0.5  # what is nearer is not told apart: errors are relative
_STRAY = 1.0  # the direction of two nodes at the same place: apart along a fixed diagonal


@njit
def _apart(a: Position, b: Position, points: int) -> float:
    """The distance of the points, which have so many numbers; heights aside."""
    total = 0.0
    for i in range(points):
        total += (a[i] - b[i]) * (a[i] - b[i])
    return math.sqrt(total)


@njit
def _direction(position: Position, other: Position, i: int, points: int, distance: float) -> float:
    """Number i of the unit vector from another point, at this distance, to the position's."""
    if distance > 0:
        return (position[i] - other[i]) / distance
    return (_STRAY if i % 2 == 0 else -_STRAY) / math.sqrt(points)


@njit
def pull(
    position: Position, error: float, other: Position, other_error: float, measured: float, heights: bool = False
) -> float:
    """Move `position`, in place, by one measurement of the distance to another node (Vivaldi Fig. 4).

    `error` and `other_error` are the two nodes' relative errors; returns the new one of the node that moves. With
    heights a spring's force is shared by the points and the heights, as these share the distance.
    """
    points = len(position) - heights
    between = _apart(position, other, points)
    raised = position[points] + other[points] if heights else 0.0
    distance = between + raised
    weight = error / (error + other_error) if error + other_error > 0 else 0.5
    sample = abs(distance - measured) / max(measured, _LEAST_MS)
    step = MOVE * weight * (measured - distance)
    share = between / distance if distance > 0 else 1.0
    for i in range(points):
        position[i] += step * share * _direction(position, other, i, points, between)
    if heights:
        position[points] = max(position[points] + step * (1 - share), 0.0)
    return sample * TRUST * weight + error * (1 - TRUST * weight)


@njit
def settle(
    position: Position,
    others: NDArray[np.float64],
    errors: NDArray[np.float64],
    measured: Position,
    passes: int,
    heights: bool = False,
) -> float:
    """Let springs to nodes at these positions ([node, number]) pull all at once until `position` rests, or for so many
    passes; moves it in place and returns its mean relative error.

    A pass moves the point to the mean of the places at which each spring alone would be content, weighted as `pull`
    weighs a measurement by a node that knows nothing yet (error 1); then the height to the mean of what is left. The
    springs' energy falls with every pass (it is majorised, de Leeuw 1977), so what is reached is a least-squares
    position, which steps that become smaller with time stop short of.
    """
    points = len(position) - heights
    weights = 1.0 / (1.0 + errors)
    if len(measured) == 0:
        return 0.0
    together = 0.0
    for k in range(len(measured)):
        together += weights[k]
    for _ in range(passes):
        target, left, moved = np.zeros(points), 0.0, 0.0
        for k in range(len(measured)):
            between = _apart(position, others[k], points)
            length = max(measured[k] - position[points] - others[k, points], 0.0) if heights else measured[k]
            for i in range(points):
                there = others[k, i] + length * _direction(position, others[k], i, points, between)
                target[i] += weights[k] * there
        for i in range(points):
            aside = target[i] / together - position[i]
            moved += aside * aside
            position[i] = target[i] / together
        if heights:
            for k in range(len(measured)):
                left += weights[k] * (measured[k] - others[k, points] - _apart(position, others[k], points))
            height = max(left / together, 0.0)
            moved += (height - position[points]) * (height - position[points])
            position[points] = height
        if math.sqrt(moved) < _STILL_MS:
            break
    error = 0.0
    for k in range(len(measured)):
        distance = _apart(position, others[k], points) + (position[points] + others[k, points] if heights else 0.0)
        error += abs(distance - measured[k]) / max(measured[k], _LEAST_MS)
    return error / len(measured)
