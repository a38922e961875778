"""Vitis' exchange of views over arrays (Algorithms 2, 3 and 4), a round of many nodes at a time.

Theory. What a node keeps hardly changes from round to round, so its own links are the bar that others have to clear.
The keys of its friends are remembered beside its table. Whatever it hears of is compared with the worst of them by one
cache line (`signatures`); what may clear that, about one entry in a hundred where subscriptions are correlated,
is scored exactly. The ring is treated alike: backups first, then only what is nearer than the farthest of them.

Invariants:
1. The new table is that of Algorithm 4 on all candidates. Bounds and remembered keys spare work and decide nothing.
2. A remembered key is that of the link in the same slot with the profiles of now, or negative: unknown. Whoever changes
   profiles or moves slots forgets all keys (`Network.set_room`). Keys of free slots are never read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import exchange, small_world
from grapevine.blocks.exchange import Entries, Exchange, NewRows
from grapevine.blocks.profiles import Marks, Profiles, new_marks
from grapevine.blocks.small_world import Nearest
from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import borrowing, inlined
from grapevine.systems.vitis.rules import Best, choose_friends, is_among, leave_out, new_best, tie_state
from grapevine.systems.vitis.signatures import Signatures, bar_of, read_ids, survivors

UNKNOWN = -1  # the key of a link that has to be scored again


class Friendships(NamedTuple):
    """What the choice of friends reads, and the keys that it remembers."""

    profiles: Profiles
    signatures: Signatures
    keys: NDArray[np.int64]  # of links, by slot; nobody but their owner reads them, so they are renewed in place
    common_ties: bool  # whether all nodes have the same order among candidates that are equally similar to them


class Scratch(NamedTuple):
    """Room for one node's choice."""

    heard_of: Entries
    candidates: Columns  # those of the entries that may be friends
    near: Nearest
    best: Best
    marks: Marks  # none between two nodes


def exchange_round(this: Exchange, rows: tuple[int, int], structured: int, friends: Friendships, out: NewRows) -> None:
    """Algorithms 2 and 3 for the rows first … last-1, whose tables are of one size: gather, select, hear.

    The first `structured` slots of a table are for ring and long links, the others for friends. Plain Python: numba
    would compile all of `_exchange_rows` once more for a function around it.
    """
    starts = this.views.starts
    heard_of = exchange.new_entries(rows, this)
    scratch = Scratch(
        heard_of,
        np.empty(len(heard_of.nodes), np.int32),
        small_world.new_nearest(this.views.backups.shape[1]),
        new_best(starts[rows[0] + 1] - starts[rows[0]] - structured),
        new_marks(friends.profiles),
    )
    _exchange_rows(this, rows, structured, friends, scratch, out)


@borrowing
def _exchange_rows(
    this: Exchange, rows: tuple[int, int], structured: int, friends: Friendships, scratch: Scratch, out: NewRows
) -> None:
    views, profiles, (first, last) = this.views, friends.profiles, rows
    heard_of, candidates, near, best, marks = scratch
    for p in range(first, last):
        node = views.nodes[p]
        if not (this.everyone or views.alive[node]):
            exchange.stay_away(p, this, out)
            continue
        if p + 1 < last:
            exchange.ask_for_views(p + 1, this)
        # Backups serve the ring alone, own links are friends already: what comes after them may become one.
        links = exchange.gather_backups(p, this, heard_of.nodes, 0)
        others = exchange.gather_links(p, this, heard_of.nodes, links)
        count = exchange.gather(p, this, heard_of.nodes, others)
        read_ids(heard_of, count, friends.signatures)
        small_world.link_ring(p, profiles.ids[node], this, heard_of, count, near, out)
        slots, table = (small_world.RING_SLOTS, structured), (out.links, views.starts[p])
        small_world.choose_long(
            (this.seed, node), profiles.ids, heard_of, (links, others, count), this.full, slots, table
        )
        kept, own = _recall(p, this, structured, friends, best, candidates, out)
        bar = bar_of(best.keys[len(best.keys) - 1]) if kept == len(best.keys) > 0 else 0.0
        found = survivors(
            node, (others, count), heard_of.nodes, bar, friends.signatures, profiles.starts, (candidates, own)
        )
        found = exchange.with_room(node, candidates, own, found, this.full)
        found = leave_out(candidates, found, best.nodes, 0, kept)
        found = leave_out(candidates, found, out.links, views.starts[p], views.starts[p] + structured)
        ties = tie_state(this.seed, node, friends.common_ties)
        kept = choose_friends(node, ties, (candidates, found), profiles, marks, best, kept)
        for i in range(len(best.nodes)):
            at = views.starts[p] + structured + i
            out.links[at], friends.keys[at] = (best.nodes[i], best.keys[i]) if i < kept else (NOBODY, UNKNOWN)
        exchange.hear(p, this, out)


@inlined
def _recall(
    p: int, this: Exchange, structured: int, friends: Friendships, best: Best, candidates: Columns, out: NewRows
) -> tuple[int, int]:
    """The own links of the row p that are still heard of: friends with a known key into `best`, those of other slots or
    without a key into `candidates`; returns how many of each.

    Friends stand in the table by descending keys. One that serves another purpose now is left out.
    """
    views, kept, found = this.views, 0, 0
    a = views.starts[p]
    for at in range(np.uint64(a), np.uint64(views.starts[p + 1])):
        node = views.links[at]
        if node == NOBODY or views.heard[at] < this.oldest:
            continue
        if at < np.uint64(a + structured) or friends.keys[at] < 0:
            candidates[found] = node
            found += 1
        elif not is_among(node, out.links, a, a + structured):
            best.nodes[kept], best.keys[kept] = node, friends.keys[at]
            kept += 1
    return kept, found
