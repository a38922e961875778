"""Vitis' two rules: whom to keep as neighbours (Algorithm 4), and whom to propose as gateway (Algorithm 5).

Both are functions of a table of descriptors and row numbers, so rounds pass the whole network's and a peer its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import small_world
from grapevine.blocks.exchange import Entries
from grapevine.blocks.profiles import Profiles, ask_for_topics, clear, lay_out, preference, utility
from grapevine.blocks.small_world import Settled
from grapevine.blocks.views import FRIEND_TIES, NOBODY
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import inlined, njit
from grapevine.kernels.rng import absorb, stream
from grapevine.kernels.topic_graph import Scratch


class Proposals(NamedTuple):
    """Whom each member proposes as gateway, by (topic, subscriber): positions in the topic's subscriber list."""

    gateway: NDArray[np.int32]  # NOBODY: the member was not there in the last round and starts by proposing itself
    parent: NDArray[np.int32]  # the neighbour that it has the proposal from; itself, when it proposes itself
    hops: NDArray[np.int32]  # to the gateway, along parents


class Best(NamedTuple):
    """Room for the friends that a node has chosen so far, by descending preference."""

    nodes: Columns
    keys: NDArray[np.int64]


@njit
def new_best(most: int) -> Best:
    """Room for so many friends."""
    return Best(np.empty(most, np.int32), np.empty(most, np.int64))


@inlined
def choose_friends(
    p: int,
    ties: np.uint64,
    candidates: tuple[Columns, int],
    profiles: Profiles,
    dense: NDArray[Any],
    best: Best,
    size: int,
) -> int:
    """Algorithm 4, the slots that are left: the most similar candidates (Eq. 1; `ties` decides between equals).

    `candidates` are a list and how many of its entries count; a node may stand in it several times, but none that
    serves another purpose. `best` holds `size` friends already whose keys are known; returns how many there are in the
    end. `dense` has an entry per topic, all zero before and after.
    """
    (nodes, count), room = candidates, len(best.nodes)
    if count == 0 or room == 0:
        return size
    ask_for_topics(nodes, count, profiles)
    lay_out(p, profiles, dense)
    least = best.keys[room - 1] if size == room else np.int64(-1)
    for i in range(np.uint64(count)):
        node = nodes[i]
        key = preference(utility(p, node, profiles, dense), absorb(ties, node))
        if key <= least or is_among(node, best.nodes, 0, size):
            continue
        at = size if size < room else room - 1
        while at > 0 and best.keys[at - 1] < key:
            best.nodes[at], best.keys[at] = best.nodes[at - 1], best.keys[at - 1]
            at -= 1
        best.nodes[at], best.keys[at] = node, key
        size = min(size + 1, room)
        least = best.keys[room - 1] if size == room else least
    clear(p, profiles, dense)
    return size


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


@njit
def select_neighbors(
    draws: tuple[int, int],
    heard_of: Entries,
    others: int,
    settled: Settled,
    profiles: Profiles,
    structured: int,
    out: tuple[Columns, Columns],
) -> None:
    """Algorithm 4 for one node that remembers nothing of its last choice: its table and ring backups into `out`.

    `draws` are the seed and the node. The first `others` entries are ring backups and serve the ring alone. The first
    `structured` slots of the table are for ring and long links.
    """
    (_, p), (links, backups), count = draws, out, len(heard_of.nodes)
    near, table = small_world.new_nearest(len(backups)), (links, 0)
    small_world.read_ids(heard_of, count, profiles.ids)
    small_world.find_nearest(profiles.ids[p], heard_of, count, settled[0], near)
    backups[:] = near.nodes
    small_world.choose_ring(profiles.ids[p], heard_of, count, settled, near, table)
    slots = small_world.RING_SLOTS, structured
    small_world.choose_long(draws, profiles.ids, heard_of, (others, count), slots, table)
    best, dense = new_best(len(links) - structured), np.zeros_like(profiles.weights)
    strangers = heard_of.nodes[others:].copy()
    left = leave_out(strangers, len(strangers), links, 0, structured)
    found = choose_friends(p, stream(draws[0], FRIEND_TIES, p), (strangers, left), profiles, dense, best, 0)
    links[structured : structured + found] = best.nodes[:found]
    links[structured + found :] = NOBODY


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
