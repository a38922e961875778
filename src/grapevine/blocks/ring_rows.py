"""The navigable ring in rounds: ring and long links (`small_world`) of a row, from what it hears of in an exchange."""

from __future__ import annotations

import numpy as np

from grapevine.blocks.entries import Entries, Points
from grapevine.blocks.exchange import Exchange, NewRows, gather, gather_backups, gather_links
from grapevine.blocks.meetings import is_remembered
from grapevine.blocks.sights import Sights
from grapevine.blocks.small_world import (
    PREDECESSOR,
    RING_SLOTS,
    SUCCESSOR,
    Ids,
    Nearest,
    Some,
    aim,
    choose_long,
    choose_ring,
    find_nearest,
    read_ids,
)
from grapevine.blocks.views import NOBODY
from grapevine.kernels.jit import inlined
from grapevine.kernels.ring import clockwise, ring_distance


@inlined
def fill_ring(p: int, this: Exchange, ids: Ids, heard_of: Entries, near: Nearest, out: NewRows) -> Some:
    """Gather what the row p hears of, and choose its ring links and backups; returns the entries that may serve other
    purposes too. Those before them are backups of others, which serve the ring alone."""
    some = gather_all(p, this, ids, heard_of)
    link_ring(p, ids[this.views.nodes[p]], this, heard_of, some[2], near, out)
    return some


@inlined
def gather_all(p: int, this: Exchange, ids: Ids, heard_of: Entries) -> Some:
    """Gather all that the row p hears of, with ring ids; returns the entries that may serve other purposes than the
    ring."""
    own = gather_backups(p, this, heard_of.nodes, 0)
    others = gather_links(p, this, heard_of.nodes, own)
    count = gather(p, this, heard_of.nodes, others)
    read_ids(heard_of, count, ids)
    return own, others, count


@inlined
def link_ring(
    p: int, me: np.uint64, this: Exchange, heard_of: Entries, count: int, near: Nearest, out: NewRows
) -> None:
    """The ring links and backups of the row p, whose node has the id `me`, from the first `count` entries."""
    views = this.views
    alive, settled = (views.alive[:0], views.settled[:0]) if this.everyone else (views.alive, views.settled)
    find_nearest(me, heard_of, count, alive, near)
    choose_ring(me, heard_of, count, (alive, settled), near, (out.links, views.starts[p]))
    for i in range(len(near.nodes)):
        out.backups[p, i] = near.nodes[i]


@inlined
def link_structured(
    p: int,
    this: Exchange,
    ids: Ids,
    heard_of: Entries,
    some: Some,
    structured: int,
    aims: Points,
    near: Nearest,
    out: NewRows,
) -> None:
    """Ring links, backups and long links of the row p, in the first `structured` slots of its table. `aims` has room
    for the points of long links."""
    node, a = this.views.nodes[p], this.views.starts[p]
    link_ring(p, ids[node], this, heard_of, some[2], near, out)
    after, before, slots = out.links[a + SUCCESSOR], out.links[a + PREDECESSOR], (RING_SLOTS, structured)
    if after == NOBODY or before == NOBODY:
        for slot in range(RING_SLOTS, structured):
            out.links[a + slot] = NOBODY
        return
    aim((this.seed, node), ids[node], clockwise(ids[before], ids[after]), slots, aims)
    choose_long(node, aims, heard_of, some, this.full, slots, (out.links, a))


@inlined
def look_out(p: int, this: Exchange, ids: Ids, structured: int, aims: Points, sights: Sights) -> int:
    """The sights of the row p, whose first `structured` slots are for ring and long links; returns how many there
    are. 0: everybody is to be looked at, since nothing is remembered of the last round, or a slot is free.

    `aims` gets the points of the long links. The ring is the first sight.
    """
    views, a, node = this.views, this.views.starts[p], this.views.nodes[p]
    half, free = views.backups.shape[1] // 2, not is_remembered(this.meetings)
    for at in range(a, a + structured):
        free |= views.links[at] == NOBODY
    for i in range(2 * half):
        free |= views.backups[p, i] == NOBODY
    if free:
        return 0
    me, after, before = ids[node], ids[views.links[a + SUCCESSOR]], ids[views.links[a + PREDECESSOR]]
    aim((this.seed, node), me, clockwise(before, after), (RING_SLOTS, structured), aims)
    if half > 0:
        after, before = ids[views.backups[p, half - 1]], ids[views.backups[p, 2 * half - 1]]
    sights.points[0], sights.after[0], sights.before[0] = me, after - me, me - before
    count = 1
    for slot in range(RING_SLOTS, structured):
        away = ring_distance(ids[views.links[a + slot]], aims[slot])
        sights.points[count], sights.after[count], sights.before[count] = aims[slot], away, away
        count += 1
    return count
