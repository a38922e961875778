"""The ways between the clusters of a topic: bridges in use, and what members found that looked for a way themselves.

Theory. Every cluster but the lowest has a way to a lower rank: its bridge; else one by one or two nodes that do not
want the topic; else a lookup towards the topic's id, which ends at a member of a lower cluster, beside one, at a relay
whose own way leads lower, or at the rendezvous, whose rank counts as 0. Along ways the rank falls strictly, so once
labels rest there are no cycles, and all clusters are joined.

A relay's `target` is the lowest rank that its ways lead to. Ways are found as events find them: with the labels and
links of the moment, and without delay. Nobody passes by a neighbour that gave no sign of life in this round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import ring_distance
from grapevine.systems.trellis.rules import link_tie, looks_for_way, probe_order, rank_of
from grapevine.systems.trellis.state import Labels, Memory, Overlay, slot_of

_NOWHERE = np.uint64(2**64 - 1)
_RENDEZVOUS = np.uint64(0)
MOST_STEPS = 200  # of a lookup
_ROOM = 2 * MOST_STEPS  # edges that one member adds at most
NODES, EDGES, MEMBERS = range(3)


class Topics(NamedTuple):
    """Who wants what: entries of `Labels` by topic, in the order of subscribers."""

    ids: NDArray[np.uint64]  # by topic
    starts: Starts
    nodes: Columns
    entries: Columns


class Sought(NamedTuple):
    """Which of the ways there are (`TrellisConfig`)."""

    bridges: bool
    probes: bool


class Room(NamedTuple):
    """The topic's nodes and the edges of its ways, by local number: members first, then relays."""

    local: Columns  # by node; NOBODY: not of this topic
    nodes: Columns
    target: NDArray[np.uint64]  # of a member the rank of its cluster, of a relay the lowest that it leads to
    hops: Columns  # of a member from its root
    edges: NDArray[np.int64]  # the two ends of each, the lower number above the other's 32 bits
    counts: NDArray[np.int64]  # NODES, EDGES, MEMBERS


@njit
def find_ways(
    topics: tuple[int, int], wants: Topics, overlay: Overlay, labels: Labels, memory: Memory, sought: Sought
) -> tuple[NDArray[np.int64], Columns, Columns]:
    """The ways of the topics first … last-1, as edges between nodes: how many each topic has, and their two ends. An
    edge between two subscribers is left out, since it is one of the links that carry the topic anyway."""
    size, first = len(overlay.alive), topics[0]
    room = Room(
        *(np.full(size, NOBODY, np.int32), np.empty(size, np.int32), np.empty(size, np.uint64)),
        *(np.empty(size, np.int32), np.empty(_ROOM, np.int64), np.zeros(3, np.int64)),
    )
    found, total = np.zeros(topics[1] - first, np.int64), 0
    sources, targets = np.empty(64, np.int32), np.empty(64, np.int32)
    for topic in range(topics[0], topics[1]):
        _enter(topic, wants, overlay, labels, room)
        for looking in range(2):
            for at in range(wants.starts[topic], wants.starts[topic + 1]):
                p, e = int(wants.nodes[at]), int(wants.entries[at])
                if not overlay.alive[p]:
                    continue
                room = _with_room(room)
                if looking == 0 and sought.bridges:
                    _take_bridge(p, e, overlay, labels, memory, room)
                elif looking == 1 and _needs_way(p, e, overlay, labels, memory, sought):
                    _find_way(topic, p, e, wants.ids[topic], overlay, labels, (sought, room))
        edges = np.unique(room.edges[: room.counts[EDGES]])
        for edge in edges:
            a, b = edge >> 32, edge & 0xFFFFFFFF
            if b >= room.counts[MEMBERS]:
                if total == len(sources):
                    sources, targets = _twice(sources), _twice(targets)
                sources[total], targets[total] = room.nodes[a], room.nodes[b]
                total += 1
                found[topic - first] += 1
        room.local[room.nodes[: room.counts[NODES]]] = NOBODY
    return found, sources[:total], targets[:total]


@njit
def _twice(some: Columns) -> Columns:
    out = np.empty(2 * len(some), np.int32)
    out[: len(some)] = some
    return out


@njit
def _with_room(room: Room) -> Room:
    """The same, with room for what one more member adds."""
    if room.counts[EDGES] + _ROOM <= len(room.edges):
        return room
    edges = np.empty(2 * len(room.edges), np.int64)
    edges[: len(room.edges)] = room.edges
    return Room(room.local, room.nodes, room.target, room.hops, edges, room.counts)


@njit
def _enter(topic: int, wants: Topics, overlay: Overlay, labels: Labels, room: Room) -> None:
    """Number the subscribers that are there."""
    room.counts[:] = 0
    for at in range(wants.starts[topic], wants.starts[topic + 1]):
        p, e = wants.nodes[at], wants.entries[at]
        if overlay.alive[p]:
            i = room.counts[NODES]
            room.local[p], room.nodes[i], room.target[i], room.hops[i] = i, p, labels.rank[e], labels.hops[e]
            room.counts[NODES] += 1
    room.counts[MEMBERS] = room.counts[NODES]


@njit
def _number(p: int, room: Room) -> int:
    """The local number of the node, which is a relay if it had none."""
    if room.local[p] == NOBODY:
        i = room.counts[NODES]
        room.local[p], room.nodes[i], room.target[i] = i, p, _NOWHERE
        room.counts[NODES] += 1
    return int(room.local[p])


@njit
def _join(p: int, q: int, room: Room) -> None:
    """Add the edge between the two nodes."""
    a, b = _number(p, room), _number(q, room)
    room.edges[room.counts[EDGES]] = min(a, b) << 32 | max(a, b)
    room.counts[EDGES] += 1


@njit
def _is_member(p: int, room: Room) -> bool:
    return NOBODY < room.local[p] < room.counts[MEMBERS]


@njit
def _is_relay(p: int, room: Room) -> bool:
    return bool(room.local[p] >= room.counts[MEMBERS])


@njit
def _lowest_beside(b: int, overlay: Overlay, room: Room) -> tuple[int, np.uint64]:
    """The member beside b to which a way leads, and its rank: of the lowest cluster the nearest to the root; NOBODY if
    there is none."""
    best, rank, hops, tie = NOBODY, _NOWHERE, np.int32(0), _NOWHERE
    for s in range(overlay.links.shape[1]):
        m = int(overlay.links[b, s])
        if m == NOBODY or not overlay.alive[m] or not _is_member(m, room):
            continue
        i = room.local[m]
        if room.target[i] > rank:
            continue
        mine = link_tie(b, m)
        if best == NOBODY or room.target[i] < rank or (room.hops[i], mine) < (hops, tie):
            best, rank, hops, tie = m, room.target[i], room.hops[i], mine
    return best, rank


@njit
def bridge_of(p: int, e: int, now: int, labels: Labels, memory: Memory) -> int:
    """The bridge that the member p uses: by the choice of its cluster, or one given up lately; NOBODY: none."""
    if labels.choice_member[e] == p and labels.choice_bridge[e] != NOBODY:
        return int(labels.choice_bridge[e])
    if memory.linger_bridge[e] != NOBODY and memory.linger_until[e] >= now:
        return int(memory.linger_bridge[e])
    return NOBODY


@njit
def _is_there(p: int, q: int, overlay: Overlay) -> bool:
    return bool(overlay.alive[q]) and slot_of(overlay.links, p, q) >= 0


@njit
def _take_bridge(p: int, e: int, overlay: Overlay, labels: Labels, memory: Memory, room: Room) -> None:
    """Join the member with a lower cluster by its bridge, if it has one that is there."""
    b = bridge_of(p, e, overlay.now, labels, memory)
    if b == NOBODY or not _is_there(p, b, overlay):
        return
    target, rank = _lowest_beside(b, overlay, room)
    if target != NOBODY and rank < labels.rank[e]:
        _join(p, b, room)
        _join(b, target, room)
        room.target[room.local[b]] = rank


@njit
def _needs_way(p: int, e: int, overlay: Overlay, labels: Labels, memory: Memory, sought: Sought) -> bool:
    """Whether the member has to look for a way itself (`rules.looks_for_way`)."""
    bridge, parent, is_end = labels.choice_bridge[e], labels.parent[e], labels.choice_member[e] == p
    has_lost_bridge = sought.bridges and is_end and bridge != NOBODY and not _is_there(p, bridge, overlay)
    has_lost_parent = parent != NOBODY and not _is_there(p, parent, overlay)
    arrived = overlay.now - memory.chosen[e] > labels.offer_hops[e] + 1
    has_choice = sought.bridges and bridge != NOBODY
    return looks_for_way(labels.root[e] == p, has_choice, arrived, has_lost_bridge, has_lost_parent)


@njit
def _find_way(
    topic: int, p: int, e: int, key: np.uint64, overlay: Overlay, labels: Labels, how: tuple[Sought, Room]
) -> None:
    """Join the member with a lower rank by a way of its own. Who has lost its parent counts as a root by itself."""
    sought, room = how
    rank = labels.rank[e]
    if labels.parent[e] != NOBODY and not _is_there(p, int(labels.parent[e]), overlay):
        rank = rank_of(topic, p)
    if not (sought.probes and _probe(topic, p, rank, overlay, room)):
        _look_up(p, rank, key, overlay, room)


@njit
def _probe(topic: int, p: int, rank: np.uint64, overlay: Overlay, room: Room) -> bool:
    """A way by one neighbour, or by one and a neighbour of it, to a lower rank: that of the fewest new relays. Neither
    of the two wants the topic. Returns whether there is one."""
    links, alive = overlay.links, overlay.alive
    way, best = (NOBODY, NOBODY), (9, _NOWHERE)
    for s in range(links.shape[1]):
        b = int(links[p, s])
        if b == NOBODY or not alive[b] or _is_member(b, room):
            continue
        new = 0 if _is_relay(b, room) else 1
        if _leads_lower(b, rank, overlay, room):
            order = probe_order(new, topic, b, b)
            if order < best:
                way, best = (b, NOBODY), order
        if new > best[0]:
            continue
        for z in range(links.shape[1]):
            c = int(links[b, z])
            if c in (NOBODY, p) or not alive[c] or _is_member(c, room):
                continue
            relays = new + (0 if _is_relay(c, room) else 1)
            if relays <= best[0] and _leads_lower(c, rank, overlay, room):
                order = probe_order(relays, topic, b, c)
                if order < best:
                    way, best = (b, c), order
    if way[0] == NOBODY:
        return False
    last = way[0] if way[1] == NOBODY else way[1]
    _join(p, way[0], room)
    if way[1] != NOBODY:
        _join(way[0], last, room)
    if not (_is_relay(last, room) and room.target[room.local[last]] < rank):
        target, lowest = _lowest_beside(last, overlay, room)
        _join(last, target, room)
        room.target[room.local[last]] = lowest
    leads_to = room.target[room.local[last]]
    room.target[room.local[way[0]]] = min(room.target[room.local[way[0]]], leads_to)
    return True


@njit
def _leads_lower(b: int, rank: np.uint64, overlay: Overlay, room: Room) -> bool:
    """Whether b, which does not want the topic, is a relay on a way to a lower rank, or beside a member of one."""
    if _is_relay(b, room) and room.target[room.local[b]] < rank:
        return True
    target, lowest = _lowest_beside(b, overlay, room)
    return target != NOBODY and bool(lowest < rank)


@njit
def _look_up(p: int, rank: np.uint64, key: np.uint64, overlay: Overlay, room: Room) -> None:
    """Walk towards the topic's id until something of a lower rank is there, or the rendezvous is reached. The part of
    the walk inside the own cluster is left out."""
    way, steps = np.empty(MOST_STEPS + 1, np.int64), 1
    way[0], at, second, reached = p, p, NOBODY, _RENDEZVOUS
    while steps <= MOST_STEPS:
        if second != NOBODY and _is_there(at, second, overlay):
            q, second = second, NOBODY
        else:
            q, second = next_hops(at, key, overlay)
        if q == NOBODY:
            break
        at = q
        way[steps] = at
        steps += 1
        if _is_member(at, room):
            leads_to = room.target[room.local[at]]
            if leads_to == rank:
                way[0], steps = at, 1
            elif leads_to < rank:
                reached = leads_to
                break
        elif _is_relay(at, room) and room.target[room.local[at]] < rank:
            reached = room.target[room.local[at]]
            break
        else:
            target, lowest = _lowest_beside(at, overlay, room)
            if target != NOBODY and lowest < rank:
                way[steps], reached = target, lowest
                steps += 1
                break
    for i in range(1, steps):
        _join(way[i - 1], way[i], room)
        if _is_relay(way[i], room):
            here = room.local[way[i]]
            room.target[here] = min(room.target[here], reached)


@njit
def next_hops(p: int, key: np.uint64, overlay: Overlay) -> tuple[int, int]:
    """The neighbour of p that is nearest to the key, or has a neighbour that is, and this one, NOBODY if it is the
    neighbour itself; two NOBODY if none is nearer than p. Heartbeats tell the neighbours of neighbours."""
    ids, links = overlay.profiles.ids, overlay.links
    first, second, least = NOBODY, NOBODY, ring_distance(ids[p], key)
    for s in range(links.shape[1]):
        q = int(links[p, s])
        if q == NOBODY or not overlay.alive[q]:
            continue
        away = ring_distance(ids[q], key)
        if away < least:
            first, second, least = q, NOBODY, away
        for z in range(links.shape[1]):
            x = int(links[q, z])
            if x != NOBODY and overlay.alive[x]:
                away = ring_distance(ids[x], key)
                if away < least:
                    first, second, least = q, x, away
    return first, second
