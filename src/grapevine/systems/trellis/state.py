"""What nodes of Trellis know beyond links and samples, as arrays.

An *entry* is a (node, own topic), numbered as in `Profiles.topics`: entries starts[p] … starts[p + 1]-1 are node p's.
`Labels` are what heartbeats tell, so a step reads those of the round's start and writes others; the rest is read by its
owner alone and renewed in place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import inlined, njit
from grapevine.systems.trellis.rules import rank_of

LONG_AGO = -(2**20)  # a round before all others
Flags = NDArray[np.bool_]
Shorts = NDArray[np.int16]


class Labels(NamedTuple):
    """What a heartbeat tells of each of its sender's topics, by entry."""

    rank: NDArray[np.uint64]  # of the root; 2^64-1: none yet
    root: Columns
    tick: Columns  # the latest of the root that was heard of
    hops: Shorts
    parent: Columns  # NOBODY: the root itself
    changed: Columns  # the round in which the root became another
    has_other_way: Flags  # a neighbour would do as parent if the present one were gone
    offer_bridge: Columns  # the best bridge that was offered to the node or to anybody below it; NOBODY: none
    offer_member: Columns  # to whom
    offer_hops: Shorts  # and how far below
    choice_bridge: Columns  # the bridge that the root chose, as far as this has come down; NOBODY: none
    choice_member: Columns  # who is to use it


class Memory(NamedTuple):
    """What a node remembers of each of its topics for itself, by entry."""

    advanced: Columns  # the round of the last new tick
    tomb_root: Columns  # the buried root; NOBODY: none
    tomb_tick: Columns
    tomb_hops: Shorts
    neighbours: Shorts  # in the topic, in the last round
    chosen: Columns  # at a root: the round in which it chose its bridge
    linger_bridge: Columns  # the bridge that was given up last …
    linger_until: Columns  # … and until when it is kept


class Standing(NamedTuple):
    """How calm a node is, by node."""

    interval: Columns  # rounds between two looks for friends
    quiet_since: Columns  # the round of the last loss of any kind, or of the join
    lost: Columns  # the round in which a neighbour was missed for the last time
    freed: Columns  # the round in which a link was lost for the last time, however
    degree: Columns  # links at the end of the last round


class Overlay(NamedTuple):
    """What all steps of a round read: who is there, what they want, and whom they are linked to."""

    now: int
    alive: Flags
    joined: Columns  # by node: the round of the last join
    profiles: Profiles
    links: NDArray[np.int32]  # [node, slot]; NOBODY: free. A link stands in the rows of both its ends


def new_labels(entries: int) -> Labels:
    """Room for the labels of so many entries; nobody has begun."""
    rank, root = np.full(entries, 2**64 - 1, np.uint64), np.full(entries, NOBODY, np.int32)
    numbers = [np.full(entries, NOBODY, np.int32) for _ in range(7)]
    tick, parent, changed, *rest = numbers
    hops, offer_hops = np.zeros((2, entries), np.int16)
    flags = np.zeros(entries, np.bool_)
    return Labels(rank, root, tick, hops, parent, changed, flags, rest[0], rest[1], offer_hops, rest[2], rest[3])


def new_memory(entries: int) -> Memory:
    """Nothing is remembered."""
    advanced, tick, chosen, until = np.zeros((4, entries), np.int32)
    tomb, linger = np.full((2, entries), NOBODY, np.int32)
    hops, neighbours = np.zeros((2, entries), np.int16)
    return Memory(advanced, tomb, tick, hops, neighbours, chosen, linger, until)


def new_standing(nodes: int) -> Standing:
    """Everybody looks for friends in every round, and has lost nobody."""
    interval, quiet, freed, degree = np.zeros((4, nodes), np.int32)
    interval[:] = 1
    return Standing(interval, quiet, np.full(nodes, LONG_AGO, np.int32), freed, degree)


@njit
def begin(nodes: Columns, now: int, profiles: Profiles, labels: Labels, memory: Memory) -> None:
    """These nodes are their own roots in all their topics, and remember nothing."""
    for p in nodes:
        for e in range(profiles.starts[p], profiles.starts[p + 1]):
            begin_entry(e, p, now, profiles, labels, memory)


@njit
def begin_entry(e: int, p: int, now: int, profiles: Profiles, labels: Labels, memory: Memory) -> None:
    """The node p is its own root in the topic of its entry e, and remembers nothing."""
    labels.rank[e], labels.root[e] = rank_of(profiles.topics[e], p), p
    labels.tick[e], labels.hops[e], labels.parent[e], labels.changed[e] = now, 0, NOBODY, now
    labels.has_other_way[e] = False
    labels.offer_bridge[e], labels.offer_member[e], labels.offer_hops[e] = NOBODY, NOBODY, 0
    labels.choice_bridge[e], labels.choice_member[e] = NOBODY, NOBODY
    memory.advanced[e], memory.tomb_root[e], memory.tomb_tick[e], memory.tomb_hops[e] = now, NOBODY, 0, 0
    memory.neighbours[e], memory.chosen[e] = 0, now
    memory.linger_bridge[e], memory.linger_until[e] = NOBODY, 0


@njit
def where_entries_were(old: tuple[Starts, NDArray[Any]], new: tuple[Starts, NDArray[Any]]) -> NDArray[np.int64]:
    """For every new entry the old one of the same node and topic, NOBODY where there is none. Rows of topics ascend."""
    (old_starts, old_topics), (starts, topics) = old, new
    out = np.full(len(topics), NOBODY, np.int64)
    for p in range(len(starts) - 1):
        at = old_starts[p]
        for e in range(starts[p], starts[p + 1]):
            while at < old_starts[p + 1] and old_topics[at] < topics[e]:
                at += 1
            if at < old_starts[p + 1] and old_topics[at] == topics[e]:
                out[e] = at
    return out


@inlined
def entry_of(q: int, topic: int, profiles: Profiles) -> int:
    """The entry of the node q for this topic; -1 if it does not want it."""
    low, high = profiles.starts[q], profiles.starts[q + 1]
    while low < high:
        middle = (low + high) >> 1
        if profiles.topics[middle] < topic:
            low = middle + 1
        else:
            high = middle
    return low if low < profiles.starts[q + 1] and profiles.topics[low] == topic else -1


@inlined
def slot_of(links: NDArray[np.int32], p: int, q: int) -> int:
    """The slot of p's row in which q stands; -1 if it does not."""
    found = -1
    for s in range(links.shape[1]):
        found = s if links[p, s] == q else found
    return found
