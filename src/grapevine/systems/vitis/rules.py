"""Vitis' two rules: whom to keep as neighbours (Algorithm 4), and whom to propose as gateway (Algorithm 5).

Both are functions of a table of descriptors and row numbers, so rounds pass the whole network's and a peer its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import small_world
from grapevine.blocks.entries import Entries
from grapevine.blocks.profiles import Marks, Profiles, ask_for_topics, mark, new_marks, preference, utility
from grapevine.blocks.small_world import Settled
from grapevine.blocks.views import FRIEND_TIES, NOBODY, is_among, leave_out
from grapevine.kernels.csr import Columns, find
from grapevine.kernels.jit import inlined, njit
from grapevine.kernels.ring import clockwise
from grapevine.kernels.rng import absorb, stream
from grapevine.kernels.topic_graph import Scratch

Words = NDArray[np.uint64]


class Proposals(NamedTuple):
    """Whom each member proposes as gateway, by (topic, subscriber): positions in the topic's subscriber list."""

    gateway: NDArray[np.int32]  # NOBODY: the member was not there in the last round and starts by proposing itself
    parent: NDArray[np.int32]  # the neighbour that it has the proposal from; itself, when it proposes itself
    hops: NDArray[np.int32]  # to the gateway, along parents


class Best(NamedTuple):
    """Room for the friends that a node has chosen so far, by descending preference."""

    nodes: Columns
    keys: NDArray[np.int64]


@inlined
def tie_state(seed: int, node: int, common: bool) -> np.uint64:
    """The state of the hash that orders candidates to which a node is equally similar; a common one is everybody's.

    Addresses of live nodes have 64 bits: beside a plain 0 numba would make them floats and lose the lower ones.
    """
    return stream(seed, FRIEND_TIES, np.uint64(0) if common else np.uint64(node))


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
    marks: Marks,
    best: Best,
    size: int,
) -> int:
    """Algorithm 4, the slots that are left: the most similar candidates (Eq. 1; `ties` decides between equals).

    `candidates` are a list and how many of its entries count; a node may stand in it several times, but none that
    serves another purpose. `best` holds `size` friends already whose keys are known; returns how many there are in the
    end.
    """
    (nodes, count), room = candidates, len(best.nodes)
    if count == 0 or room == 0:
        return size
    ask_for_topics(nodes, count, profiles)
    mark(p, profiles, marks)
    for i in range(np.uint64(count)):
        node = nodes[i]
        key = preference(utility(p, node, profiles, marks), absorb(ties, node))
        size = offer(node, key, best, size)
    return size


@inlined
def offer(node: int, key: np.int64, best: Best, size: int) -> int:
    """Take the node among the best, of which there are `size`, if it belongs there; returns how many there are then.

    One that is there already changes nothing, and of two equal keys the first to come stays.
    """
    room = len(best.nodes)
    if (size == room and key <= best.keys[room - 1]) or is_among(node, best.nodes, 0, size):
        return size
    at = size if size < room else room - 1
    while at > 0 and best.keys[at - 1] < key:
        best.nodes[at], best.keys[at] = best.nodes[at - 1], best.keys[at - 1]
        at -= 1
    best.nodes[at], best.keys[at] = node, key
    return min(size + 1, room)


@njit
def select_neighbors(
    draws: tuple[int, int],
    heard_of: Entries,
    others: int,
    settled: Settled,
    profiles: Profiles,
    ties: tuple[np.uint64, Words],
    structured: int,
    out: tuple[Columns, Columns],
) -> None:
    """Algorithm 4 for one node that remembers nothing of its last choice: its table and ring backups into `out`.

    `draws` are the seed and the node. `ties` are the state of the hash that decides between equally good friends, and
    the word that stands for each row in it. The first `others` entries are ring backups and serve the ring alone. The
    first `structured` slots of the table are for ring and long links.
    """
    (_, p), (links, backups), count = draws, out, len(heard_of.nodes)
    near, table = small_world.new_nearest(len(backups)), (links, 0)
    small_world.read_ids(heard_of, count, profiles.ids)
    small_world.find_nearest(profiles.ids[p], heard_of, count, settled[0], near)
    backups[:] = near.nodes
    small_world.choose_ring(profiles.ids[p], heard_of, count, settled, near, table)
    slots, (after, before) = (small_world.RING_SLOTS, structured), (links[0], links[1])
    links[small_world.RING_SLOTS : structured] = NOBODY
    if after != NOBODY and before != NOBODY:
        aims, span = np.empty(structured, np.uint64), clockwise(profiles.ids[before], profiles.ids[after])
        small_world.aim(draws, profiles.ids[p], span, slots, aims)
        small_world.choose_long(p, aims, heard_of, (others, count, count), settled[0][:0], slots, table)
    best, found = new_best(len(links) - structured), 0
    strangers = heard_of.nodes[others:].copy()
    left = leave_out(strangers, len(strangers), links, 0, structured) if len(best.nodes) else 0
    marks = new_marks(profiles)
    mark(p, profiles, marks)
    for node in strangers[:left]:
        tie = absorb(ties[0], ties[1][node])
        found = offer(node, preference(utility(p, node, profiles, marks), tie), best, found)
    links[structured : structured + found] = best.nodes[:found]
    links[structured + found :] = NOBODY


@njit
def propose_gateways(
    asked: Columns, d: int, distance: Words, ties: Words, before: Proposals, graph: Scratch, out: Proposals
) -> None:
    """Algorithm 5 for some members of one topic, from what their neighbours proposed last round (`before`, by member);
    `out` has their proposals in the order of `asked`.

    The nearest gateway to the topic's id wins (`distance` has that of every member), then the fewest hops, then the
    smaller hash of the neighbour (`ties` has the state of every member that is asked); hops stay below d. A proposal
    counts when the neighbour made it itself, or heard it from somebody who is not a neighbour of the member (line 7);
    what came from the member itself does not count. That is asked last, since most proposals are not better anyway.
    Rows of the graph are ascending.
    """
    edges = graph.edges
    for at in range(np.uint64(len(asked))):
        i = int(asked[at])
        gateway, parent, hops, least = i, i, 0, distance[np.uint64(i)]
        first, last = graph.starts[i], graph.starts[i + 1]
        for edge in range(np.uint64(first), np.uint64(last)):
            j = int(edges[edge])
            new, away = int(before.gateway[np.uint64(j)]), int(before.hops[np.uint64(j)]) + 1
            nearness = distance[np.uint64(new)]
            if nearness > least or away >= d:
                continue
            if nearness == least:
                if new != gateway or parent == i or away > hops:
                    continue
                if away == hops and absorb(ties[i], j) >= absorb(ties[i], parent):
                    continue
            source = int(before.parent[np.uint64(j)])
            if source != i and (source == j or find(edges, first, last, source) < 0):
                gateway, parent, hops, least = new, j, away, nearness
        out.gateway[at], out.parent[at], out.hops[at] = gateway, parent, hops
