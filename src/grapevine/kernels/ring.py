"""The identifier ring in kernels: 64-bit ids whose subtraction wraps by itself."""

from __future__ import annotations

import numpy as np

from grapevine.kernels.jit import njit


@njit
def clockwise(start: np.uint64, end: np.uint64) -> np.uint64:
    """Steps from start to end in the direction of growing ids; 0 when they are the same."""
    return end - start


@njit
def ring_distance(a: np.uint64, b: np.uint64) -> np.uint64:
    """Steps of the shorter way round the ring: 0 … 2^63."""
    steps = a - b
    back = b - a
    return steps if steps < back else back
