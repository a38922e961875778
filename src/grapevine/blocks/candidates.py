"""The buffer of a gossip exchange: distinct nodes, each with the round in which somebody last heard from it.

A small open-addressing table finds duplicates. It fits the first-level cache whatever the size of the network, and
a live peer can use it as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.jit import njit

_SPREAD, _ONE = np.uint64(0x9E3779B1), np.uint64(1)


class Candidates(NamedTuple):
    """Nodes in order of arrival and when they were last heard; `size[0]` are in use, `size[1]` is the slot mask."""

    nodes: NDArray[np.int32]
    heard: NDArray[np.int32]
    slots: NDArray[np.int32]  # position + 1 of the node that hashes here, 0: free
    size: NDArray[np.int64]


@njit
def new_candidates(capacity: int) -> Candidates:
    """A buffer with room for so many distinct nodes; `start_over` comes before its first use."""
    slots = 8
    while slots < 2 * capacity:
        slots *= 2
    return Candidates(
        np.empty(capacity, np.int32), np.empty(capacity, np.int32), np.zeros(slots, np.int32), np.zeros(2, np.int64)
    )


@njit
def start_over(into: Candidates, most: int) -> None:
    """Empty the buffer for at most so many distinct nodes, no more than its capacity.

    Only the part of the table that they need is used and cleared. More nodes than `most` would overrun it: nobody
    checks.
    """
    slots = 8
    while slots < 2 * most:
        slots *= 2
    into.slots[:slots] = 0
    into.size[0] = 0
    into.size[1] = slots - 1


@njit
def offer_all(into: Candidates, nodes: NDArray[np.int32], heard: NDArray[np.int32], oldest: int, but: int) -> None:
    """Add the nodes, or renew those that are there; of two copies the more recently heard counts.

    Free places (below 0), the node `but` and what was last heard before `oldest` are passed over. A row at a time,
    because a compiled call per node costs ten times the work inside it; unsigned indices spare the test for negative
    ones.
    """
    known, known_heard, slots = into.nodes, into.heard, into.slots
    size, mask = np.uint32(into.size[0]), np.uint64(into.size[1])
    for i in range(len(nodes)):
        node, when = nodes[i], heard[i]
        if node < 0 or node == but or when < oldest:
            continue
        slot = (np.uint64(node) * _SPREAD) & mask
        found = False
        while slots[slot] != 0:
            at = np.uint32(slots[slot] - 1)
            if known[at] == node:
                known_heard[at] = max(known_heard[at], when)
                found = True
                break
            slot = (slot + _ONE) & mask
        if not found:
            known[size], known_heard[size] = node, when
            size = np.uint32(size + 1)
            slots[slot] = np.int32(size)
    into.size[0] = np.int64(size)
