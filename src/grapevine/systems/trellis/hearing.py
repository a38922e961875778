"""One round of heartbeats: every node takes its labels, offers and choices anew from what its neighbours told.

All of a round's start is read, and a second set of labels written, so nodes may be done in any order and on any thread.
A neighbour that gave no sign of life in this round is not heard: nothing that it told before counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import borrowing, inlined, njit
from grapevine.systems.trellis.rules import (
    MOST_HOPS,
    has_lost_parent,
    has_stalled,
    is_better_label,
    is_better_offer,
    is_buried,
    is_other_way,
    may_adopt,
    offer_hash,
    parent_tie,
    rank_of,
    shared_value,
)
from grapevine.systems.trellis.state import Labels, Memory, Overlay, entry_of, slot_of

_WORST = np.uint64(2**64 - 1)


class Patience(NamedTuple):
    """How long labels and bridges are kept (`TrellisRules`), and what links are worth."""

    stall_rounds: int
    linger_rounds: int
    enough: int
    spare: float
    surplus: float


class Best(NamedTuple):
    """The best label that a node has found so far in each of its topics, by position in its row; and what else it
    heard of the topic."""

    rank: NDArray[np.uint64]
    tie: NDArray[np.uint64]
    root: Columns
    tick: Columns
    hops: Columns
    parent: Columns
    neighbours: Columns
    bridge_hash: NDArray[np.uint64]  # of the best offer
    member_hash: NDArray[np.uint64]
    bridge: Columns
    member: Columns
    below: Columns  # how far the best offer has come
    choice: Columns  # the entry whose choice is the node's now: the parent's or its own; NOBODY: none is left


@njit
def new_best(topics: int) -> Best:
    """Room for a node with so many topics."""
    numbers = np.empty((9, topics), np.int32)
    words = np.empty((4, topics), np.uint64)
    return Best(
        *(words[0], words[1], numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], words[2], words[3]),
        *(numbers[5], numbers[6], numbers[7], numbers[8]),
    )


@njit
def hear(
    nodes: tuple[int, int],
    overlay: Overlay,
    patience: Patience,
    offers: Columns,
    before: Labels,
    memory: Memory,
    out: tuple[Labels, NDArray[np.float64], NDArray[np.int32]],
) -> None:
    """Labels of the nodes first … last-1 after this round, and what each of their links is worth in the topics that
    both ends want ([node, slot]), into `out`.

    `offers` has the best bridge that offered itself to each entry in this round, or NOBODY. The third of `out` are the
    rounds in which links were made: in its first round a link keeps the value that it was made for, since what both
    ends tell was decided before they knew of it.
    """
    starts, most = overlay.profiles.starts, 0
    for p in range(nodes[0], nodes[1]):
        most = max(most, starts[p + 1] - starts[p])
    _hear_all(nodes, overlay, patience, (offers, before), memory, new_best(most), out)


@borrowing
def _hear_all(
    nodes: tuple[int, int],
    overlay: Overlay,
    patience: Patience,
    told: tuple[Columns, Labels],
    memory: Memory,
    best: Best,
    out: tuple[Labels, NDArray[np.float64], NDArray[np.int32]],
) -> None:
    (offers, before), (after, values, made), starts = told, out, overlay.profiles.starts
    for p in range(nodes[0], nodes[1]):
        if not overlay.alive[p]:
            for e in range(starts[p], starts[p + 1]):  # samples of it still tell its last label
                after.root[e], after.changed[e] = before.root[e], before.changed[e]
            continue
        _start(p, overlay, offers, before, memory, best)
        for s in range(overlay.links.shape[1]):
            q, value = overlay.links[p, s], 0.0
            if q != NOBODY and overlay.alive[q]:
                value = _hear_one((p, q), overlay, patience, before, memory, best, after)
                if made[p, s] == overlay.now - 1:
                    value = max(value, values[p, s])
            values[p, s] = value
        _finish(p, overlay, patience, before, memory, best, after)


@inlined
def _start(p: int, overlay: Overlay, offers: Columns, before: Labels, memory: Memory, best: Best) -> None:
    """The node's own label is the first candidate, and what was offered to itself the first offer. A lost parent's
    label is buried."""
    profiles = overlay.profiles
    first = profiles.starts[p]
    for e in range(first, profiles.starts[p + 1]):
        i, topic = e - first, int(profiles.topics[e])
        best.rank[i], best.root[i], best.tick[i], best.hops[i] = rank_of(topic, p), p, overlay.now, 0
        best.parent[i], best.tie[i], best.neighbours[i], best.choice[i] = NOBODY, _WORST, 0, NOBODY
        best.bridge[i], best.member[i], best.below[i] = offers[e], p, 0
        best.bridge_hash[i], best.member_hash[i] = _WORST, _WORST
        if offers[e] != NOBODY:
            best.bridge_hash[i], best.member_hash[i] = offer_hash(topic, offers[e]), offer_hash(topic, p)
        parent = before.parent[e]
        if parent != NOBODY:
            f = np.int64(-1)
            if overlay.alive[parent] and slot_of(overlay.links, p, parent) >= 0:
                f = entry_of(parent, topic, profiles)
            rank = before.rank[f] if f >= 0 else _WORST
            if has_lost_parent(bool(f >= 0), before.rank[e], rank):
                memory.tomb_root[e], memory.tomb_tick[e] = before.root[e], before.tick[e]
                memory.tomb_hops[e] = before.hops[e]


@inlined
def _hear_one(
    pair: tuple[int, int],
    overlay: Overlay,
    patience: Patience,
    before: Labels,
    memory: Memory,
    best: Best,
    after: Labels,
) -> float:
    """Take in what the second of the pair told of the topics that both want; returns what the link is worth in them."""
    (p, q), starts, topics = pair, overlay.profiles.starts, overlay.profiles.topics
    first, value = starts[p], 0.0
    e, end, f, last = first, starts[p + 1], starts[q], starts[q + 1]
    while e < end and f < last:
        if topics[e] < topics[f]:
            e += 1
        elif topics[e] > topics[f]:
            f += 1
        else:
            is_parent, is_child = before.parent[e] == q, before.parent[f] == p
            same = before.root[e] == before.root[f]
            needed = (is_parent and not before.has_other_way[e]) or (is_child and not before.has_other_way[f])
            count = memory.neighbours[e]
            value += shared_value(needed, count, patience.enough, patience.spare, patience.surplus)
            i = e - first
            if best.neighbours[i] == 0:
                after.has_other_way[e] = False
            best.neighbours[i] += 1
            if is_other_way(same, before.hops[f], before.hops[e], is_parent, is_child):
                after.has_other_way[e] = True
            _hear_label(pair, (e, f), i, before, memory, best)
            if is_parent:
                best.choice[i] = f if same else e  # a parent that moves to another root has nothing to say of this one
            if is_child and same:
                _hear_offer(int(topics[e]), f, i, before, best)
            e += 1
            f += 1
    return value


@inlined
def _hear_label(
    pair: tuple[int, int], entries: tuple[int, int], i: int, before: Labels, memory: Memory, best: Best
) -> None:
    """The neighbour's label is a candidate of the node's, at position i. Both are nodes and their entries."""
    (p, q), (e, f) = pair, entries
    rank, root, hops = before.rank[f], before.root[f], int(before.hops[f])
    if rank > best.rank[i] or (rank == best.rank[i] and hops + 1 > best.hops[i]):
        return  # most are not better; so ask before anything is hashed
    buried = root == memory.tomb_root[e] and is_buried(
        before.tick[f], hops, memory.tomb_tick[e], int(memory.tomb_hops[e])
    )
    if not may_adopt(hops, root == p or before.parent[f] == p, buried):
        return
    tie = parent_tie(p, q, before.parent[e] == q)
    if is_better_label((rank, hops + 1, tie), (best.rank[i], int(best.hops[i]), best.tie[i])):
        best.rank[i], best.tie[i], best.root[i] = rank, tie, root
        best.tick[i], best.hops[i], best.parent[i] = before.tick[f], hops + 1, q


@inlined
def _hear_offer(topic: int, f: int, i: int, before: Labels, best: Best) -> None:
    """What a child, of the same cluster, was offered goes up."""
    if before.offer_bridge[f] != NOBODY and before.offer_hops[f] < MOST_HOPS:
        offer = offer_hash(topic, before.offer_bridge[f]), offer_hash(topic, before.offer_member[f])
        if is_better_offer(offer, (best.bridge_hash[i], best.member_hash[i])):
            best.bridge_hash[i], best.member_hash[i] = offer[0], offer[1]
            best.bridge[i], best.member[i] = before.offer_bridge[f], before.offer_member[f]
            best.below[i] = before.offer_hops[f] + 1


@inlined
def _finish(
    p: int, overlay: Overlay, patience: Patience, before: Labels, memory: Memory, best: Best, after: Labels
) -> None:
    """Write what was found, unless the root has been silent for too long."""
    first, now = overlay.profiles.starts[p], overlay.now
    for e in range(first, overlay.profiles.starts[p + 1]):
        i = e - first
        rank, root, parent, hops = best.rank[i], best.root[i], best.parent[i], best.hops[i]
        tick, changed = best.tick[i], before.changed[e]
        if root == before.root[e]:
            if tick > before.tick[e] or parent == NOBODY:
                memory.advanced[e] = now
            elif has_stalled(now, memory.advanced[e], patience.stall_rounds):
                memory.tomb_root[e], memory.tomb_tick[e], memory.tomb_hops[e] = root, before.tick[e], -1
                rank, root, parent, hops = rank_of(int(overlay.profiles.topics[e]), p), p, NOBODY, 0
                tick, changed, memory.advanced[e] = now, now, now
            else:
                tick = before.tick[e]
        else:
            changed, memory.advanced[e] = now, now
        after.rank[e], after.root[e], after.parent[e], after.hops[e] = rank, root, parent, hops
        after.tick[e], after.changed[e] = tick, changed
        after.offer_bridge[e], after.offer_member[e], after.offer_hops[e] = NOBODY, NOBODY, 0
        if best.bridge[i] != NOBODY:
            after.offer_bridge[e], after.offer_member[e] = best.bridge[i], best.member[i]
            after.offer_hops[e] = best.below[i]
        if best.neighbours[i] == 0:
            after.has_other_way[e] = False
        memory.neighbours[e] = best.neighbours[i]
        _choose(p, e, (now, patience.linger_rounds), before, memory, best.choice[i], after)


@inlined
def _choose(
    p: int, e: int, times: tuple[int, int], before: Labels, memory: Memory, follows: int, after: Labels
) -> None:
    """A root chooses the best offer; the others take the choice of the entry `follows`, and forget the last one with a
    parent that is gone. Whose bridge was given up keeps it for a while."""
    now, linger_rounds = times
    bridge, member = before.choice_bridge[e], before.choice_member[e]
    if after.root[e] == p:
        new_bridge, new_member = after.offer_bridge[e], after.offer_member[e]
        if new_bridge != bridge or new_member != member:
            memory.chosen[e] = now
    elif follows != NOBODY:
        new_bridge, new_member = before.choice_bridge[follows], before.choice_member[follows]
    elif before.parent[e] == NOBODY:
        new_bridge, new_member = bridge, member
    else:
        new_bridge, new_member = np.int32(NOBODY), np.int32(NOBODY)
    if member == p and bridge != NOBODY and (new_member != p or new_bridge != bridge):
        memory.linger_bridge[e], memory.linger_until[e] = bridge, now + linger_rounds
    after.choice_bridge[e], after.choice_member[e] = new_bridge, new_member
