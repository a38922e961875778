"""Views: what every node knows of others at the start of a round. Its table of links, and its cache of samples.

Also the numbers that tell the random decisions of rounds apart: `draw(seed, round, node, salt)` has one salt a purpose.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts, count_rows, fill_rows
from grapevine.kernels.jit import inlined, njit
from grapevine.kernels.rng import below

NOBODY = -1

# The `salt` word of the draws, one number a purpose, so that no two decisions share their randomness.
SAMPLE_PARTNER, EXCHANGE_PARTNER, SAMPLE_TIES, LONG_LINKS, BOOTSTRAP, PUBLISHER, GATEWAY_TIES = range(1, 8)
CONNECT_TIES, DISCONNECT_TIES, REDIRECT_TIES, ARRIVAL = range(8, 12)
BACKUP_TOPICS, BACKUP_TIES, REPAIR_TIES = range(20, 23)
FINGERS = 30
# These stand where draws have the round: they are the same in every round.
FRIEND_TIES, ACCEPTANCE, MEMBERSHIP, EDGE_TIES, INTEREST_SAMPLES, JOIN_ORDER = (2**i for i in range(40, 46))


class Views(NamedTuple):
    """The views of some nodes, a row each. Row p has the slots starts[p] … starts[p + 1]-1 of `links`; NOBODY is a free
    entry.

    Where all nodes of a network are at hand, row p is that of node p. A part of a network (`blocks/parts`) has the rows
    of its own nodes first, and behind them those that others sent. Entries of rows, and `alive` and `settled`, always
    speak of nodes.
    """

    nodes: Columns  # row → the node whose row it is
    starts: Starts
    links: NDArray[np.int32]  # slot → neighbour
    heard: NDArray[np.int32]  # slot → the round in which the neighbour last gave a sign of life
    cache: NDArray[np.int32]  # [row, position]: samples, the freshest first
    cache_heard: NDArray[np.int32]  # [row, position]: the round in which somebody last heard from the sample
    backups: NDArray[np.int32]  # [row, position]: the nearest nodes known on the ring, after it and before it
    alive: NDArray[np.bool_]  # by node: online
    settled: NDArray[np.bool_]  # by node: long enough here to be a ring link of others and to take part in lookups


@njit
def group_contacts(partner: Columns) -> tuple[Starts, Columns]:
    """The callers of every node as rows, ascending, from the partner that each node contacts (NOBODY: no one)."""
    count = 0
    for p in range(len(partner)):
        count += partner[p] != NOBODY
    callers, called = np.empty(count, np.int32), np.empty(count, np.int32)
    count = 0
    for p in range(len(partner)):
        if partner[p] != NOBODY:
            callers[count], called[count] = p, partner[p]
            count += 1
    starts = count_rows(called, len(partner))
    return starts, fill_rows(called, callers, starts)


@inlined
def one_of(entries: Columns, first: int, last: int, bits: np.uint64) -> int:
    """One of the entries first … last-1 that are not NOBODY, by these random bits; NOBODY when there is none."""
    count = 0
    for at in range(np.uint64(first), np.uint64(last)):
        count += entries[at] != NOBODY
    skip = below(bits, count)
    for at in range(np.uint64(first), np.uint64(last)):
        if entries[at] != NOBODY:
            if skip == 0:
                return int(entries[at])
            skip -= 1
    return NOBODY


@inlined
def one_sample(cache: NDArray[np.int32], row: int, bits: np.uint64) -> int:
    """A random sample of the row, by these random bits; NOBODY when it has none. Free entries are the last of a
    cache."""
    count = cache.shape[1]
    while count > 0 and cache[row, count - 1] == NOBODY:
        count -= 1
    return int(cache[row, below(bits, count)]) if count > 0 else NOBODY


@inlined
def is_among(node: int, others: Columns, first: int, last: int) -> bool:
    """Whether the node is one of the others at first … last-1."""
    found = False
    for i in range(np.uint64(first), np.uint64(last)):
        found |= others[i] == node
    return found


@inlined
def leave_out(nodes: Columns, count: int, others: Columns, first: int, last: int) -> int:
    """Take the others at first … last-1 out of the first `count` nodes; returns how many are left, in their order."""
    kept = np.uint64(0)
    for i in range(np.uint64(count)):
        node = nodes[i]
        nodes[kept] = node
        kept += np.uint64(not is_among(node, others, first, last))
    return int(np.int64(kept))
