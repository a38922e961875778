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


@njit
def with_followees(
    starts: Starts, targets: Columns, rank: NDArray[np.uint64], roots: Columns, wanted: int
) -> NDArray[np.bool_]:
    """Flags of `wanted` vertices: root after root, each with all that it leads to, as in `breadth_first`.

    Of the last root's targets, those of the lowest rank are taken. Fewer than wanted when the roots are used up.
    """
    kept = np.zeros(len(rank), np.bool_)
    count = 0
    for root in roots:
        if count == wanted:
            break
        if not kept[root]:
            kept[root] = True
            count += 1
        row = targets[starts[root] : starts[root + 1]]
        new = np.array([target for target in row if target >= 0 and not kept[target]], np.int32)
        new = new[np.argsort(rank[new])[: wanted - count]]
        kept[new] = True
        count += len(new)
    return kept


@njit
def core_numbers(starts: Starts, neighbours: Columns) -> NDArray[np.int64]:
    """For each vertex the largest k of which it is in the k-core: the most vertices that have k neighbours each among
    themselves.

    The graph has no direction, no loops and no double edges: who is in one's row has one in its own. Vertices are
    removed in the order of their remaining degrees, which are kept sorted in buckets (Batagelj & Zaveršnik 2003).
    """
    count = len(starts) - 1
    degree = starts[1:] - starts[:-1]
    order = np.argsort(degree, kind="mergesort")
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    bucket = np.searchsorted(degree[order], np.arange(count + 1))  # where each degree begins in `order`
    for i in range(count):
        vertex = order[i]
        for other in neighbours[starts[vertex] : starts[vertex + 1]]:
            if degree[other] > degree[vertex]:
                first = bucket[degree[other]]  # swap with the first of its bucket, which then begins one later
                swapped, was = order[first], place[other]
                order[was], place[swapped] = swapped, was
                order[first], place[other] = other, first
                bucket[degree[other]] += 1
                degree[other] -= 1
    return degree
