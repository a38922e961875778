"""Nodes offer themselves as bridges of topics that they do not want but see two clusters of (`rules`, 3).

Everybody reads what its neighbours told in the round's start, and tells each of them what it offers. What comes of all
offers is the best one for every entry, whatever their order, and how many edges of bridges in use each link is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import borrowing, inlined, njit
from grapevine.systems.trellis.rules import link_tie, offer_hash
from grapevine.systems.trellis.state import Flags, Labels, Overlay, slot_of

_WORST = np.uint64(2**64 - 1)


class Offers(NamedTuple):
    """What was offered in a round. Several of them are joined by `join_offers`."""

    bridge: Columns  # by entry: the best node that offered itself; NOBODY: none
    in_use: NDArray[np.int16]  # [node, slot]: topics whose bridges this link is an edge of


class Sight(NamedTuple):
    """The lowest cluster that a node sees of each topic. Between two nodes `rank` is 2^64-1 everywhere and `is_mine`
    false."""

    rank: NDArray[np.uint64]
    hops: Columns
    tie: NDArray[np.uint64]
    slot: Columns  # of the neighbour that is the target of a bridge: of the lowest rank the nearest to the root
    is_mine: Flags


def no_offers(entries: int, shape: tuple[int, ...]) -> Offers:
    """Nobody has offered anything."""
    return Offers(np.full(entries, NOBODY, np.int32), np.zeros(shape, np.int16))


@njit
def new_sight(topics: int) -> Sight:
    """Room for what one node sees."""
    return Sight(
        np.full(topics, _WORST, np.uint64),
        np.zeros(topics, np.int32),
        np.zeros(topics, np.uint64),
        np.zeros(topics, np.int32),
        np.zeros(topics, np.bool_),
    )


@njit
def offer(nodes: tuple[int, int], overlay: Overlay, labels: Labels, out: Offers) -> None:
    """What the nodes first … last-1 offer, added to `out`."""
    _offer_all(nodes, overlay, labels, new_sight(len(overlay.profiles.weights)), out)


@borrowing
def _offer_all(nodes: tuple[int, int], overlay: Overlay, labels: Labels, sight: Sight, out: Offers) -> None:
    starts, topics, links = overlay.profiles.starts, overlay.profiles.topics, overlay.links
    for b in range(nodes[0], nodes[1]):
        if not overlay.alive[b]:
            continue
        for e in range(starts[b], starts[b + 1]):
            sight.is_mine[topics[e]] = True
        for s in range(links.shape[1]):
            m = links[b, s]
            if m != NOBODY and overlay.alive[m]:
                _look(b, s, overlay, labels, sight)
        for s in range(links.shape[1]):
            m = links[b, s]
            if m != NOBODY and overlay.alive[m]:
                _offer_to(b, s, overlay, labels, sight, out)
        for s in range(links.shape[1]):
            m = links[b, s]
            if m != NOBODY and overlay.alive[m]:
                for e in range(starts[m], starts[m + 1]):
                    sight.rank[topics[e]] = _WORST
        for e in range(starts[b], starts[b + 1]):
            sight.is_mine[topics[e]] = False


@inlined
def _look(b: int, s: int, overlay: Overlay, labels: Labels, sight: Sight) -> None:
    """Take in the clusters of the neighbour in this slot."""
    m, starts, topics = overlay.links[b, s], overlay.profiles.starts, overlay.profiles.topics
    tie = link_tie(b, m)
    for e in range(starts[m], starts[m + 1]):
        t, rank, hops = topics[e], labels.rank[e], labels.hops[e]
        if rank > sight.rank[t] or sight.is_mine[t]:
            continue
        if rank < sight.rank[t] or hops < sight.hops[t] or (hops == sight.hops[t] and tie < sight.tie[t]):
            sight.rank[t], sight.hops[t], sight.tie[t], sight.slot[t] = rank, hops, tie, s


@inlined
def _offer_to(b: int, s: int, overlay: Overlay, labels: Labels, sight: Sight, out: Offers) -> None:
    """Offer a bridge to the neighbour in this slot, in every topic in which its cluster is not the lowest."""
    m, starts, topics = overlay.links[b, s], overlay.profiles.starts, overlay.profiles.topics
    for e in range(starts[m], starts[m + 1]):
        t = topics[e]
        if sight.is_mine[t] or labels.rank[e] <= sight.rank[t]:
            continue
        rival, topic = out.bridge[e], int(t)
        if rival == NOBODY or offer_hash(topic, b) < offer_hash(topic, rival):
            out.bridge[e] = b
        if labels.choice_bridge[e] == b and labels.choice_member[e] == m:
            target = overlay.links[b, sight.slot[t]]
            out.in_use[b, s] += 1
            out.in_use[m, slot_of(overlay.links, m, b)] += 1
            out.in_use[b, sight.slot[t]] += 1
            out.in_use[target, slot_of(overlay.links, target, b)] += 1


@njit
def join_offers(profiles: Profiles, some: Offers, out: Offers) -> None:
    """Add what others offered to `out`."""
    for e in range(len(some.bridge)):
        b, rival = some.bridge[e], out.bridge[e]
        if b != NOBODY:
            topic = int(profiles.topics[e])
            if rival == NOBODY or offer_hash(topic, b) < offer_hash(topic, rival):
                out.bridge[e] = b
    out.in_use[:] += some.in_use
