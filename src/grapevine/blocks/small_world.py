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

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.candidates import Candidates, offer_all
from grapevine.blocks.exchange import Exchange
from grapevine.blocks.views import LONG_LINKS, NOBODY, Views
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import clockwise, ring_distance
from grapevine.kernels.rng import draw, unit

HALF_RING = 2.0**63
_ONE, _FARTHEST = np.uint64(1), np.uint64(2**64 - 1)
SUCCESSOR, PREDECESSOR = 0, 1
RING_SLOTS = 2

Ids = NDArray[np.uint64]


@njit
def choose_ring(p: int, ids: Ids, views: Views, pool: Candidates, picks: Columns) -> None:
    """Successor and predecessor: the nearest settled nodes that answer, clockwise and counter-clockwise (Algorithm 4,
    lines 2-7).

    Picks are positions in the pool, NOBODY where there is none. A single candidate is the successor, and there is no
    predecessor.
    """
    after, before = NOBODY, NOBODY
    least_after, least_before = np.uint64(0), np.uint64(0)
    for at in range(pool.size[0]):
        if not (views.alive[pool.nodes[at]] and views.settled[pool.nodes[at]]):
            continue
        steps = clockwise(ids[p], ids[pool.nodes[at]])
        if after == NOBODY or steps < least_after:
            after, least_after = at, steps
        back = clockwise(ids[pool.nodes[at]], ids[p])
        if before == NOBODY or back < least_before:
            before, least_before = at, back
    picks[SUCCESSOR] = after
    picks[PREDECESSOR] = before if before != after else NOBODY


@njit
def gather_backups(p: int, this: Exchange, into: Candidates) -> None:
    """Add the backups of p, its partner and its callers to the buffer; each was alive in the last round."""
    views = this.views
    partner, starts, who = this.contacts
    heard = np.full(views.backups.shape[1], this.now - 1, np.int32)
    offer_all(into, views.backups[p], heard, 0, p)
    if partner[p] != NOBODY:
        offer_all(into, views.backups[partner[p]], heard, 0, p)
    for at in range(starts[p], starts[p + 1]):
        offer_all(into, views.backups[who[at]], heard, 0, p)


@njit
def keep_backups(p: int, ids: Ids, alive: NDArray[np.bool_], pool: Candidates, backups: Columns) -> None:
    """The nearest candidates that answer: the first half of `backups` clockwise from p, the second counter-clockwise.

    Each half by ascending distance, NOBODY where there are too few. One node may be in both.
    """
    half = len(backups) // 2
    steps, nearest = np.empty(pool.size[0], np.uint64), np.empty(half, np.int32)
    for at in range(len(steps)):
        q = pool.nodes[at]
        steps[at] = clockwise(ids[p], ids[q]) if alive[q] else _FARTHEST
    _smallest(steps, pool.nodes, nearest, backups[:half])
    for at in range(len(steps)):
        if steps[at] != _FARTHEST:
            steps[at] = clockwise(steps[at], np.uint64(0))
    _smallest(steps, pool.nodes, nearest, backups[half:])


@njit
def _smallest(steps: NDArray[np.uint64], nodes: Columns, nearest: Columns, out: Columns) -> None:
    """The nodes of the smallest steps in ascending order; `nearest` is room for their positions."""
    size, limit = 0, _FARTHEST
    for position in range(len(steps)):
        if steps[position] >= limit:
            continue
        at = size if size < len(out) else len(out) - 1
        while at > 0 and steps[nearest[at - 1]] > steps[position]:
            nearest[at] = nearest[at - 1]
            at -= 1
        nearest[at] = position
        if size < len(out):
            size += 1
        if size == len(out):
            limit = steps[nearest[size - 1]]
    for i in range(len(out)):
        out[i] = nodes[nearest[i]] if i < size else NOBODY


@njit
def fill_ring(p: int, this: Exchange, ids: Ids, pool: Candidates, picks: Columns, backups: Columns) -> None:
    """Ring links (positions in the pool, in the first two picks) and p's new backups, from the pool and from the
    backups of all who take part in the exchange.

    The pool's end stays where it was, so what came from backups serves the ring alone; a pick may point behind the end.
    """
    end, views = pool.size[0], this.views
    if views.backups.shape[1] > 0:
        gather_backups(p, this, pool)
        keep_backups(p, ids, views.alive, pool, backups)
    choose_ring(p, ids, views, pool, picks)
    pool.size[0] = end


@njit
def choose_long(seed: int, p: int, ids: Ids, pool: Candidates, slots: tuple[int, int], picks: Columns) -> None:
    """For each slot first … last-1 the candidate nearest to the slot's target that no earlier slot has taken.

    The spacing of nodes is estimated from the two ring links (Symphony §3.2: from segments near by), so no node needs
    to know the size of the network. Without both ring links there are no long links. Picks are positions in the pool,
    NOBODY where there are too few candidates.
    """
    first, last = slots
    if picks[SUCCESSOR] == NOBODY or picks[PREDECESSOR] == NOBODY:
        picks[first:last] = NOBODY
        return
    span = clockwise(ids[pool.nodes[picks[PREDECESSOR]]], ids[pool.nodes[picks[SUCCESSOR]]])
    points, free = np.empty(pool.size[0], np.uint64), np.ones(pool.size[0], np.bool_)
    for at in range(len(points)):
        points[at] = ids[pool.nodes[at]]
    for slot in range(first):
        if picks[slot] < len(points):  # a ring neighbour may come from the backups, behind the pool's end
            free[picks[slot]] = False
    shrink = np.log(max(np.float64(span) / 2.0, 1.0) / HALF_RING)
    for slot in range(first, last):
        bits = draw(seed, slot, p, LONG_LINKS)
        steps = np.uint64(min(np.exp(shrink * unit(bits)), 1.0 - 1e-9) * HALF_RING)
        target = ids[p] + steps if bits & _ONE else ids[p] - steps
        best, least = NOBODY, _FARTHEST
        for at in range(len(points)):
            away = ring_distance(points[at], target)
            if away < least and free[at]:
                best, least = at, away
        picks[slot] = best
        if best != NOBODY:
            free[best] = False


@njit
def next_hop(p: int, key: np.uint64, fresh: int, ids: Ids, views: Views) -> int:
    """Greedy lookup over p's own table: the link nearest to the key, if it is nearer than p; otherwise NOBODY.

    Links last heard before the round `fresh` are suspects and not used, nor are newcomers that have not settled; such a
    newcomer itself passes every lookup on. After that the distance falls at every step, so a lookup
    cannot loop and all lookups of one key form a tree.
    """
    best, least = NOBODY, ring_distance(ids[p], key) if views.settled[p] else _FARTHEST
    for at in range(views.starts[p], views.starts[p + 1]):
        q = views.links[at]
        if q != NOBODY and views.heard[at] >= fresh and views.settled[q]:
            away = ring_distance(ids[q], key)
            if away < least:
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
    for at in range(views.starts[p], views.starts[p + 1]):
        q = views.links[at]
        if q != NOBODY and views.heard[at] >= fresh:
            steps = clockwise(ids[p], ids[q])
            if most < steps <= limit:
                best, most = int(q), steps
    return best
