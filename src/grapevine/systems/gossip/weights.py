"""What topics weigh in a profile: rates in fixed point, so that sums are exact and both ends of a link find the same.

A weight travels with a profile as a float of 32 bits, which holds every weight exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Weights = NDArray[np.int64]

RATE = np.dtype("<f4")
MOST_RATE = 2.0**20  # so the weights of a million topics, twice, are below 2**63
ONE = 1 << 20  # the weight of rate 1; what is published a million times less often weighs nothing


def weights_of(rates: ArrayLike) -> Weights:
    """Rates, from 0 up to the most that counts, as weights."""
    told = np.minimum(np.asarray(rates, np.float64), MOST_RATE).astype(RATE).astype(np.float64)
    return np.asarray(np.round(told * ONE), np.int64)


def weight_of(rate: float) -> int:
    """One rate as a weight."""
    return int(weights_of([rate])[0])


def pack_weights(weights: Weights) -> bytes:
    """Weights as they travel; the inverse of `unpack_weights`."""
    return (weights / ONE).astype(RATE).tobytes()


def unpack_weights(content: bytes, count: int) -> Weights | None:
    """The weights of so many topics that came; all alike if nothing was said. None: these bytes cannot be rates."""
    if not content:
        return np.full(count, ONE, np.int64)
    if len(content) != count * RATE.itemsize:
        return None
    rates = np.frombuffer(content, RATE)
    return weights_of(rates) if ((rates >= 0) & (rates <= MOST_RATE)).all() else None
