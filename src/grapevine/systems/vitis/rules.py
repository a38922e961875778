"""Vitis' two rules: whom to keep as neighbours (Algorithm 4), and whom to propose as gateway (Algorithm 5).

Both are functions of a table of descriptors and row numbers, so rounds pass the whole network's and a peer its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import small_world
from grapevine.blocks.candidates import Candidates
from grapevine.blocks.profiles import Profiles, clear, fetch, lay_out, preference, utility
from grapevine.blocks.views import FRIEND_TIES, NOBODY
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, stream
from grapevine.kernels.topic_graph import Scratch
from grapevine.kernels.topk import largest


class Proposals(NamedTuple):
    """Whom each member proposes as gateway, by (topic, subscriber): positions in the topic's subscriber list."""

    gateway: NDArray[np.int32]  # NOBODY: the member was not there in the last round and starts by proposing itself
    parent: NDArray[np.int32]  # the neighbour that it has the proposal from; itself, when it proposes itself
    hops: NDArray[np.int32]  # to the gateway, along parents


@njit
def select_neighbors(
    seed: int,
    p: int,
    pool: Candidates,
    profiles: Profiles,
    structured: int,
    scratch: tuple[NDArray[Any], NDArray[np.int64]],
    picks: Columns,
) -> None:
    """Algorithm 4 after the ring links: long links, and for the rest the most similar (ties by hash).

    `picks` has an entry per slot of p's table; the ring links are there already, the next up to `structured` become
    long links, the others friends. Picks are positions in the pool, NOBODY where there are too few candidates; a
    candidate is picked once. `scratch` is a weight per topic (all zero before and after) and a key per candidate.
    """
    small_world.choose_long(seed, p, profiles.ids, pool, (small_world.RING_SLOTS, structured), picks)
    dense, keys = scratch
    count = pool.size[0]
    fetch(pool.nodes[:count], profiles, keys)
    lay_out(p, profiles, dense)
    ties = stream(seed, FRIEND_TIES, p)
    for at in range(count):
        other = pool.nodes[at]
        keys[at] = preference(utility(p, other, profiles, dense), absorb(ties, other))
    clear(p, profiles, dense)
    for slot in range(structured):
        if NOBODY < picks[slot] < count:
            keys[picks[slot]] = -1
    found = largest(keys[:count], len(picks) - structured, picks[structured:])
    picks[structured + found :] = NOBODY


@njit
def choose_gateway(
    i: int, d: int, distance: NDArray[np.uint64], before: Proposals, graph: Scratch, seen: Columns, ties: np.uint64
) -> tuple[int, int, int]:
    """Algorithm 5 for one member and topic: (gateway, parent, hops), from what its neighbours proposed last round.

    The nearest gateway to the topic's id wins (`distance` has that of every member), then the fewest hops, then the
    smaller hash of the neighbour; hops stay below d. A proposal counts when the neighbour made it itself, or heard it
    from somebody who is not a neighbour of i (line 7); what came from i does not count. `seen` is scratch with an entry
    per member, none of which is i at first.
    """
    gateway, parent, hops, tie = i, i, 0, np.uint64(0)
    for at in range(graph.starts[i], graph.starts[i + 1]):
        seen[graph.edges[at]] = i
    for at in range(graph.starts[i], graph.starts[i + 1]):
        j = graph.edges[at]
        source = before.parent[j]
        if source == i or before.hops[j] + 1 >= d or (source != j and seen[source] == i):
            continue
        new, away = before.gateway[j], before.hops[j] + 1
        better = distance[new] < distance[gateway]
        if new == gateway and parent != i:
            better = away < hops or (away == hops and absorb(ties, j) < tie)
        if better:
            gateway, parent, hops, tie = int(new), int(j), int(away), absorb(ties, j)
    return gateway, parent, hops
