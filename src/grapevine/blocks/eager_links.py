"""Eager and lazy links: an event travels along a tree, and the other links tell ids of events only.

Theory (Leitao, Pereira & Rodrigues, SRDS 2007: Plumtree). The first event of a topic floods its graph. Whoever gets it
twice prunes the link by which it came later, so what is left is the tree of first arrivals: every node has the link to
whom it had it from, and those to whom it gave it. A node that does not want the topic and has one such link left prunes
that, too, for nothing is behind it. Pruned links between nodes that are left are *lazy*: a node asks a few of its
neighbours on them to tell the ids of what they have, and grafts a link when an id comes and the event does not.

By rounds that is what is left when all pruning is done: the tree of fewest hops from a root that all events share, so
that no event floods anew. Its upkeep is counted with every event as the ids that it causes.
"""

from __future__ import annotations

import numpy as np

from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, stream

LAZY_LINKS = 2  # of a node and topic, on which ids come in: one may fail together with the tree's
_LAZY = 1 << 46  # what these hashes are for


@njit
def grow_tree(roots: Columns, rows: tuple[Starts, Columns], parent: Columns, hops: Columns) -> None:
    """Trees of fewest hops from the roots, in their order, as far as no earlier one has come: `parent` and `hops` of
    every node; a root has no parent, and who is not reached has no hops either (NOBODY). Of equally short ways a node
    takes that by the neighbour found first."""
    starts, edges = rows
    parent[:], hops[:] = NOBODY, NOBODY
    queue = np.empty(len(hops), np.int32)
    for root in roots:
        if hops[root] != NOBODY:
            continue
        queue[0], hops[root], head, tail = root, 0, 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            for at in range(starts[i], starts[i + 1]):
                j = edges[at]
                if hops[j] == NOBODY:
                    parent[j], hops[j], queue[tail] = i, hops[i] + 1, j
                    tail += 1


@njit
def prune_relays(size: int, keep: int, parent: Columns, hops: Columns) -> None:
    """Take relays out of the trees that lead to nobody else: those from `size` on, but for `keep`, with one link left
    or none. They have no hops afterwards."""
    degree = np.zeros(len(hops), np.int32)
    for i in range(len(hops)):
        if parent[i] != NOBODY:
            degree[i] += 1
            degree[parent[i]] += 1
    for start in range(size, len(hops)):
        i = start
        while i >= size and i != keep and hops[i] != NOBODY and degree[i] <= 1:
            above = parent[i]
            parent[i], hops[i] = NOBODY, NOBODY
            if above == NOBODY:
                break
            degree[above] -= 1
            i = above


@njit
def split_links(
    seed: int, rows: tuple[Starts, Columns], parent: Columns, hops: Columns
) -> tuple[tuple[Starts, Columns], tuple[Starts, Columns]]:
    """The links of the trees as rows of both ends, and the lazy ones as rows of those who tell ids on them.

    A node has ids from `LAZY_LINKS` neighbours at most: from those nearest to the root, where events are early, and of
    equally near ones by a hash.
    """
    starts, edges = rows
    count = len(hops)
    eager_starts, lazy_starts = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    eager, tellers = np.empty(len(edges), np.int32), np.full((count, LAZY_LINKS), NOBODY, np.int32)
    filled = 0
    for i in range(count):
        ties = stream(seed, _LAZY, i)
        for at in range(starts[i], starts[i + 1]):
            j = edges[at]
            if parent[i] == j or parent[j] == i:
                eager[filled] = j
                filled += 1
            elif hops[i] != NOBODY and hops[j] != NOBODY:
                _offer(j, ties, hops, tellers[i])
        eager_starts[i + 1] = filled
    for i in range(count):
        for j in tellers[i]:
            if j != NOBODY:
                lazy_starts[j + 1] += 1
    for i in range(count):
        lazy_starts[i + 1] += lazy_starts[i]
    lazy, cursor = np.empty(lazy_starts[count], np.int32), lazy_starts[:count].copy()
    for i in range(count):
        for j in tellers[i]:
            if j != NOBODY:
                lazy[cursor[j]] = i
                cursor[j] += 1
    return (eager_starts, eager[:filled]), (lazy_starts, lazy)


@njit
def _offer(j: int, ties: np.uint64, hops: Columns, tellers: Columns) -> None:
    """Take j among those who tell ids, which stand by preference, if it is better than one of them."""
    at = len(tellers)
    while at > 0:
        k = tellers[at - 1]
        if k == j or (k != NOBODY and (hops[k], absorb(ties, k)) <= (hops[j], absorb(ties, j))):
            break
        at -= 1
    if at < len(tellers) and not (at > 0 and tellers[at - 1] == j):
        for z in range(len(tellers) - 1, at, -1):
            tellers[z] = tellers[z - 1]
        tellers[at] = j
