"""Algorithm 5 for many topics of one node in one compiled call: what neighbours propose, numbered as the rule wants it.

Addresses have 64 bits and the rule takes indices of arrays, so each topic numbers those whom it concerns: the node
itself, its neighbours, and whomever these propose. A neighbour's own word about its ring id counts before hearsay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import GATEWAY_TIES
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import ring_distance
from grapevine.kernels.rng import absorb
from grapevine.kernels.topic_graph import Scratch
from grapevine.systems.vitis.rules import Proposals, Words, propose_gateways


class NeighbourProposals(NamedTuple):
    """Proposals of neighbours, grouped by topic: those of topic i are starts[i] … starts[i + 1]-1."""

    starts: NDArray[np.int64]
    nodes: Words  # the neighbours that propose
    ids: Words  # their ring ids
    gateways: Words
    gateway_ids: Words
    parents: Words
    hops: NDArray[np.int32]


class Chosen(NamedTuple):
    """This node's proposal for each topic: written by `choose_gateways`."""

    gateways: Words
    gateway_ids: Words
    parents: Words
    hops: NDArray[np.int32]


@njit
def _number(name: np.uint64, id: np.uint64, names: Words, ids: Words, count: int) -> tuple[int, int]:
    """The number of an address in `names`, a new one if need be, with its ring id; and how many there are now."""
    for at in range(count):
        if names[at] == name:
            return at, count
    names[count], ids[count] = name, id
    return count, count + 1


@njit
def choose_gateways(
    d: int, me: np.uint64, my_id: np.uint64, topics: Words, keys: Words, proposed: NeighbourProposals, out: Chosen
) -> None:
    """Algorithm 5 (`propose_gateways`) for each topic; `keys` are the topics' ring ids."""
    widest = np.int64(0)
    for i in range(len(topics)):
        widest = max(widest, proposed.starts[i + 1] - proposed.starts[i])
    room = 1 + 3 * widest
    names, ids, away = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.uint64)
    made = Proposals(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32))
    mine = Proposals(np.empty(1, np.int32), np.empty(1, np.int32), np.empty(1, np.int32))
    asked, ties = np.zeros(1, np.int32), np.empty(1, np.uint64)
    starts, edges = np.zeros(2, np.int64), np.arange(1, widest + 1).astype(np.int32)
    graph = Scratch(np.empty(0, np.int32), starts, edges)
    for i in range(len(topics)):
        first, last = proposed.starts[i], proposed.starts[i + 1]
        names[0], ids[0], count = me, my_id, 1
        for at in range(first, last):
            names[count], ids[count] = proposed.nodes[at], proposed.ids[at]
            count += 1
        for at in range(first, last):
            j = 1 + at - first
            made.gateway[j], count = _number(proposed.gateways[at], proposed.gateway_ids[at], names, ids, count)
            made.hops[j] = proposed.hops[at]
        for at in range(first, last):  # after the gateways: nobody says a parent's id, and a gateway's is needed
            made.parent[1 + at - first], count = _number(proposed.parents[at], np.uint64(0), names, ids, count)
        for at in range(count):
            away[at] = ring_distance(ids[at], keys[i])
        starts[1] = last - first
        ties[0] = absorb(absorb(my_id, topics[i]), GATEWAY_TIES)
        propose_gateways(asked, d, away, ties, made, graph, mine)
        out.gateways[i], out.gateway_ids[i] = names[mine.gateway[0]], ids[mine.gateway[0]]
        out.parents[i], out.hops[i] = names[mine.parent[0]], mine.hops[0]
