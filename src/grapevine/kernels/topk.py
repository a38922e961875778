"""The k positions of largest key, in descending order: insertion into a short sorted list.

Most keys are refused by one comparison with the last one kept, so for the k of a routing table (5 … 40) this beats a
heap. It takes all keys at once: a compiled call per item would cost more than the item.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.jit import njit


@njit
def largest(keys: NDArray[np.int64], k: int, out: NDArray[np.int32]) -> int:
    """Positions of the k largest keys into `out`, the largest first; negative keys do not count. Returns how many were
    found.

    Equal keys keep their order. `out` has room for k; what is behind the found ones is left as it is.
    """
    size = 0
    if k == 0:
        return size
    least = np.int64(-1)  # a key must exceed it
    for position in range(len(keys)):
        key = keys[position]
        if key <= least:
            continue
        at = size if size < k else k - 1
        while at > 0 and keys[out[at - 1]] < key:
            out[at] = out[at - 1]
            at -= 1
        out[at] = position
        if size < k:
            size += 1
        if size == k:
            least = keys[out[k - 1]]
    return size
