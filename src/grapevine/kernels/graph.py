"""Traversal of CSR graphs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit


@njit
def breadth_first(
    starts: Starts, targets: Columns, rank: NDArray[np.uint64], roots: Columns, root_count: int, wanted: int
) -> NDArray[np.bool_]:
    """Flags of `wanted` vertices, found from the first `root_count` roots outwards, level by level.

    Vertex v leads to targets[starts[v] … starts[v + 1]-1]; targets below 0 lead nowhere. Of a level that would be too
    much, the vertices of the lowest rank are taken. When a search ends early, the next root starts another; fewer
    vertices than wanted are found when the roots are used up.
    """
    kept = np.zeros(len(rank), np.bool_)
    level = np.empty(0, np.int32)
    count, next_root = 0, 0
    while count < wanted:
        if len(level) == 0:
            if next_root == len(roots):
                break
            last = min(next_root + root_count, len(roots)) if next_root == 0 else next_root + 1
            level = np.array([root for root in roots[next_root:last] if not kept[root]], np.int32)
            next_root = last
            if len(level) == 0:
                continue
        if count + len(level) > wanted:
            level = level[np.argsort(rank[level])[: wanted - count]]
        kept[level] = True
        count += len(level)
        reached = np.zeros(len(rank), np.bool_)
        for vertex in level:
            for target in targets[starts[vertex] : starts[vertex + 1]]:
                if target >= 0 and not kept[target]:
                    reached[target] = True
        level = np.flatnonzero(reached).astype(np.int32)
    return kept
