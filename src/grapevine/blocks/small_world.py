"""A navigable ring: successor, predecessor and Symphony's harmonic long links (Manku et al. 2003; Vitis §III-A1).

Links come from gossip: each slot takes the candidate that fits it best. A long link has a target point on the ring,
at a distance drawn with density 1/x between the estimated node spacing and half the ring, to either side with equal
chance (lookups go the shorter way round; with clockwise links only, half of them would crawl). The draw is made once
per node and slot, so a slot converges to the node nearest to its target instead of changing every round.

A node asks its ring neighbours every round whether they are there. It may also remember backups for them, the next few
in both directions (Chord's successor list). Backups are no links: they carry nothing, and cost a ping a round.

A newcomer may have to settle first: it is remembered as a backup and gathers its own links at once, but nobody takes it
as a ring link and no lookup passes it or ends at it. Its ring is right by the time that others depend on it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.entries import Entries, Points
from grapevine.blocks.views import LONG_LINKS, NOBODY, Views
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import inlined, njit
from grapevine.kernels.ring import clockwise, ring_distance
from grapevine.kernels.rng import draw, unit

HALF_RING = 2.0**63
_ONE, _EIGHT, _FARTHEST = np.uint64(1), np.uint64(8), np.uint64(2**64 - 1)
SUCCESSOR, PREDECESSOR = 0, 1
RING_SLOTS = 2

Ids = NDArray[np.uint64]
# By node: whether it answers, and whether it has been there long enough to be a ring link; both empty: all do and have.
Settled = tuple[NDArray[np.bool_], NDArray[np.bool_]]
Table = tuple[Columns, int]  # slots of links, and where those of one node begin
Some = tuple[int, int, int]  # entries first … last-1, of which those before the middle one are a node's own links


class Nearest(NamedTuple):
    """Room for the nearest nodes on the ring: the first half clockwise, the second half counter-clockwise, each by
    ascending distance, NOBODY where there are too few. One node may be in both."""

    nodes: Columns
    steps: NDArray[np.uint64]


@njit
def new_nearest(backups: int) -> Nearest:
    """Room for so many, both directions together."""
    return Nearest(np.empty(backups, np.int32), np.empty(backups, np.uint64))


@inlined
def read_ids(heard_of: Entries, count: int, ids: Ids) -> None:
    """Note the ring ids of the first `count` entries beside them."""
    for i in range(np.uint64(count)):
        heard_of.points[i] = ids[np.uint64(heard_of.nodes[i])]


@inlined
def find_nearest(me: np.uint64, heard_of: Entries, count: int, alive: NDArray[np.bool_], near: Nearest) -> None:
    """Of the first `count` entries, those that answer and are nearest to the id `me`, into `near`.

    `alive` has a flag per node; empty: all answer. With a node's own backups first, hardly anything that follows is
    nearer than the farthest that are kept. So the first entries are put where they most likely belong, each on its side
    of the ring; the others are compared eight at once, and looked at one by one where one of the eight is nearer.
    """
    nodes, points = heard_of
    half = len(near.nodes) // 2
    for i in range(2 * half):
        near.nodes[i], near.steps[i] = NOBODY, _FARTHEST
    if half == 0:
        return
    after, before = _FARTHEST, _FARTHEST  # the farthest that are kept
    hints = min(count, 2 * half)
    for i in range(np.uint64(hints)):
        steps, back = points[i] - me, me - points[i]
        if len(alive) == 0 or alive[nodes[i]]:
            if steps < back:
                if steps < after:
                    after = _insert(nodes[i], steps, 0, half, near)
            elif back < before:
                before = _insert(nodes[i], back, half, 2 * half, near)
    for i in range(np.uint64(hints)):  # the other side of each
        steps, back = points[i] - me, me - points[i]
        if (steps < after if steps >= back else back < before) and (len(alive) == 0 or alive[nodes[i]]):
            if steps >= back:
                after = _insert(nodes[i], steps, 0, half, near)
            else:
                before = _insert(nodes[i], back, half, 2 * half, near)
    for first in range(np.uint64(hints), np.uint64(count), _EIGHT):
        last, nearer = min(first + _EIGHT, np.uint64(count)), True
        if last - first == _EIGHT:
            nearer = False
            for i in range(_EIGHT):
                nearer |= (points[first + i] - me < after) | (me - points[first + i] < before)
        if nearer:
            for i in range(first, last):
                steps, back = points[i] - me, me - points[i]
                if (steps < after or back < before) and (len(alive) == 0 or alive[nodes[i]]):
                    if steps < after:
                        after = _insert(nodes[i], steps, 0, half, near)
                    if back < before:
                        before = _insert(nodes[i], back, half, 2 * half, near)


@inlined
def _insert(node: np.int32, steps: np.uint64, first: int, last: int, near: Nearest) -> np.uint64:
    """Put a node into one direction at its place, unless it is there; returns the largest distance that is kept."""
    known = False
    for i in range(np.uint64(first), np.uint64(last)):
        known |= near.nodes[i] == node
    if not known:
        at = last - 1
        while at > first and near.steps[at - 1] > steps:
            near.nodes[at], near.steps[at] = near.nodes[at - 1], near.steps[at - 1]
            at -= 1
        near.nodes[at], near.steps[at] = node, steps
    return near.steps[last - 1]


@inlined
def choose_ring(me: np.uint64, heard_of: Entries, count: int, settled: Settled, near: Nearest, table: Table) -> None:
    """Successor and predecessor into the first slots of the table: of the first `count` entries the nearest settled
    nodes that answer, clockwise and counter-clockwise (Algorithm 4, lines 2-7).

    A single candidate is the successor, and there is no predecessor; NOBODY where there is none. `near` holds the
    nearest of the same entries (`find_nearest`), so that these are looked at again only if none of them has settled.
    """
    half, (links, at) = len(near.nodes) // 2, table
    after, before = NOBODY, NOBODY
    for i in range(half):
        if after == NOBODY and near.nodes[i] != NOBODY and _may_serve(near.nodes[i], settled):
            after = near.nodes[i]
        if before == NOBODY and near.nodes[half + i] != NOBODY and _may_serve(near.nodes[half + i], settled):
            before = near.nodes[half + i]
    if after == NOBODY or before == NOBODY:
        after, before = _nearest_settled(me, heard_of, count, settled)
    links[at] = after
    links[at + 1] = before if before != after else NOBODY


@inlined
def _may_serve(node: int, settled: Settled) -> bool:
    alive, long_enough = settled
    return len(alive) == 0 or (alive[node] and long_enough[node])


@njit
def _nearest_settled(me: np.uint64, heard_of: Entries, count: int, settled: Settled) -> tuple[np.int32, np.int32]:
    nodes, points = heard_of
    after, before = np.int32(NOBODY), np.int32(NOBODY)
    least_after, least_before = _FARTHEST, _FARTHEST
    for i in range(count):
        if _may_serve(nodes[i], settled):
            steps, back = points[i] - me, me - points[i]
            if after == NOBODY or steps < least_after:
                after, least_after = nodes[i], steps
            if before == NOBODY or back < least_before:
                before, least_before = nodes[i], back
    return after, before


@inlined
def aim(draws: tuple[int, int], me: np.uint64, span: np.uint64, slots: tuple[int, int], aims: Points) -> None:
    """The points that the long links in the slots first … last-1 of a node with the id `me` should be near.

    The spacing of nodes is estimated from the span between the two ring links (Symphony §3.2: from segments near by),
    so no node needs to know the size of the network. `draws` are the seed and the node.
    """
    (seed, p), (first, last) = draws, slots
    shrink = math.log(max(np.float64(span) / 2.0, 1.0) / HALF_RING)
    for slot in range(first, last):
        bits = draw(seed, slot, p, LONG_LINKS)
        steps = np.uint64(min(math.exp(shrink * unit(bits)), 1.0 - 1e-9) * HALF_RING)
        aims[slot] = me + steps if bits & _ONE else me - steps


@inlined
def choose_long(
    p: int, aims: Points, heard_of: Entries, some: Some, full: NDArray[np.bool_], slots: tuple[int, int], table: Table
) -> None:
    """For each slot first … last-1 of the table of node p: of some entries the one nearest to the slot's aim that has
    room (`full` is that of `Exchange`) and that no earlier slot has taken; NOBODY where there are too few."""
    (first, last), (links, at), (nodes, points) = slots, table, heard_of
    for slot in range(first, last):
        target = aims[slot]
        best, least = np.int32(NOBODY), _FARTHEST
        for start in range(np.uint64(some[0]), np.uint64(some[2]), _EIGHT):
            end, nearer = min(start + _EIGHT, np.uint64(some[2])), True
            if end - start == _EIGHT:
                nearer = False
                for i in range(_EIGHT):
                    nearer |= (points[start + i] - target < least) | (target - points[start + i] < least)
            if not nearer:
                continue
            for i in range(start, end):
                away = ring_distance(points[i], target)
                if away < least:
                    taken = len(full) > 0 and not full[p] and i >= np.uint64(some[1]) and full[nodes[i]]
                    for other in range(at, at + slot):
                        taken = taken or links[other] == nodes[i]
                    if not taken:
                        best, least = nodes[i], away
        links[at + slot] = best


@njit
def next_hop(p: int, key: np.uint64, fresh: int, ids: Ids, views: Views) -> int:
    """Greedy lookup over p's own table: the link nearest to the key, if it is nearer than p; otherwise NOBODY.

    Links last heard before the round `fresh` are suspects and not used, nor are newcomers that have not settled; such a
    newcomer itself passes every lookup on. After that the distance falls at every step, so a lookup
    cannot loop and all lookups of one key form a tree.
    """
    best, least = NOBODY, ring_distance(ids[p], key) if views.settled[p] else _FARTHEST
    for at in range(np.uint64(views.starts[p]), np.uint64(views.starts[p + 1])):
        q = views.links[at]
        if q != NOBODY:
            away = ring_distance(ids[np.uint32(q)], key)  # first, since few links are nearer than all before
            if away < least and views.heard[at] >= fresh and views.settled[q]:
                best, least = int(q), away
    return best


@njit
def next_hops(p: int, keys: NDArray[np.uint64], fresh: int, ids: Ids, views: Views, out: Columns) -> None:
    """`next_hop` for each key, into `out`: a live gateway renews the paths of all its topics at once."""
    for i in range(len(keys)):
        out[i] = next_hop(p, keys[i], fresh, ids, views)


@njit
def lookup(p: int, key: np.uint64, fresh: int, ids: Ids, views: Views, path: Columns) -> int:
    """The nodes visited from p towards the key into `path` (p first, room for all nodes and one more); returns how
    many, negative when the last of them is dead and swallowed the request."""
    path[0] = p
    count = 1
    while True:
        q = next_hop(path[count - 1], key, fresh, ids, views)
        if q == NOBODY:
            return count
        path[count] = q
        count += 1
        if not views.alive[q]:
            return -count


@njit
def hop_below(p: int, target: int, fresh: int, ids: Ids, views: Views) -> int:
    """The next hop of a greedy route that goes clockwise and never passes its target (Magnet §3.3): of p's links the
    nearest to the target; NOBODY when there is none. Links last heard before the round `fresh` are not used."""
    best, most = NOBODY, np.uint64(0)
    limit = clockwise(ids[p], ids[target])
    for at in range(np.uint64(views.starts[p]), np.uint64(views.starts[p + 1])):
        q = views.links[at]
        if q != NOBODY and views.heard[at] >= fresh:
            steps = clockwise(ids[p], ids[np.uint32(q)])
            if most < steps <= limit:
                best, most = int(q), steps
    return best
