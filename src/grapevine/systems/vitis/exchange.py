"""Vitis' exchange of views over arrays (Algorithms 2, 3 and 4), a round of many nodes at a time.

Theory. What a node keeps hardly changes from round to round, so its own links are the bar that others have to clear.
The keys of its friends are remembered beside its table. Whatever it hears of is compared with the worst of them by one
cache line (`signatures`); what may clear that, about one entry in a hundred where subscriptions are correlated,
is scored exactly. The ring is treated alike: backups first, then only what is nearer than the farthest of them.

While everyone is there, most rounds change nothing. Then a row looks at what it has not refused before (`meetings`),
and at that eight nodes at a time: at who may clear the bar, and at who would change its ring or long links (`sights`).
If nobody would, the links of the ring stay, and only friends are chosen (`_keep_ring`); otherwise the whole choice is
made.

Invariants:
1. The new table is that of Algorithm 4 on all candidates. Bounds and remembered keys spare work and decide nothing.
2. A remembered key is that of the link in the same slot with the profiles of now, or negative: unknown. Whoever changes
   profiles or moves slots forgets all keys (`Network.set_room`). Keys of free slots are never read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import exchange, ring_rows, small_world
from grapevine.blocks.entries import Entries
from grapevine.blocks.exchange import Exchange, NewRows
from grapevine.blocks.profiles import Marks, Profiles, new_marks
from grapevine.blocks.sights import Points, Sights, is_news, new_sights, see
from grapevine.blocks.small_world import Nearest
from grapevine.blocks.views import NOBODY, is_among, leave_out
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import borrowing, inlined
from grapevine.systems.vitis.rules import Best, choose_friends, new_best, tie_state
from grapevine.systems.vitis.signatures import Eight, Signatures, ask_for_lines, bar_of, new_eight, read_ids, sift

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
    marks: Marks
    aims: Points
    sights: Sights
    seen: Columns  # who is in sight
    eight: Eight


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
        np.empty(structured, np.uint64),
        new_sights(structured),
        np.empty(len(heard_of.nodes), np.int32),
        new_eight(),
    )
    _exchange_rows(this, rows, structured, friends, scratch, out)


@borrowing
def _exchange_rows(
    this: Exchange, rows: tuple[int, int], structured: int, friends: Friendships, scratch: Scratch, out: NewRows
) -> None:
    views, profiles, (first, last) = this.views, friends.profiles, rows
    heard_of, candidates, near, best, _, aims, sights, _, eight = scratch
    signatures = friends.signatures
    for p in range(first, last):
        node = views.nodes[p]
        if not (this.everyone or views.alive[node]):
            exchange.stay_away(p, this, out)
            continue
        if p + 1 < last:
            exchange.ask_for_views(p + 1, this)
        seen = ring_rows.look_out(p, this, profiles.ids, structured, aims, sights)
        if seen > 0 and _keep_ring(p, this, structured, friends, scratch, seen, out):
            continue
        # Backups serve the ring alone, own links are friends already: what comes after them may become one.
        links = exchange.gather_backups(p, this, heard_of.nodes, 0)
        others = exchange.gather_links(p, this, heard_of.nodes, links)
        count = exchange.gather(p, this, heard_of.nodes, others)
        ask_for_lines(heard_of.nodes, count, signatures)
        read_ids(heard_of, count, signatures)
        some = links, others, count
        ring_rows.link_structured(p, this, profiles.ids, heard_of, some, structured, aims, near, out)
        kept, own = _recall(p, this, structured, friends, best, candidates, out)
        bar = bar_of(best.keys[len(best.keys) - 1]) if kept == len(best.keys) > 0 else 0.0
        new = (others, count), heard_of.nodes, bar, signatures
        found = sift(node, *new, profiles.starts, eight, (candidates, own), (sights, 0, candidates))[0]
        found = exchange.with_room(node, candidates, own, found, this.full)
        found = leave_out(candidates, found, best.nodes, 0, kept)
        found = leave_out(candidates, found, out.links, views.starts[p], views.starts[p] + structured)
        _choose_friends(p, this, structured, friends, scratch, (kept, found), out)
        exchange.hear(p, this, out)
        exchange.remember(p, this, structured, out)


@inlined
def _keep_ring(
    p: int, this: Exchange, structured: int, friends: Friendships, scratch: Scratch, seen: int, out: NewRows
) -> bool:
    """The new row of p, if nobody that it hears of and has not refused before changes its ring and long links;
    otherwise False, and nothing is written. So many `sights` tell who would change them; mostly friends stay, too."""
    views, node, nodes, best = this.views, this.views.nodes[p], scratch.heard_of.nodes, scratch.best
    a, b = views.starts[p], views.starts[p + 1]
    count, backups = exchange.gather_news(p, this, nodes, scratch.candidates)
    ask_for_lines(nodes, count, friends.signatures)
    bar = bar_of(friends.keys[b - 1]) if len(best.keys) > 0 else 2.0
    new = (0, count), nodes, bar, friends.signatures, friends.profiles.starts
    found, near = sift(node, *new, scratch.eight, (nodes, 0), (scratch.sights, seen, scratch.seen))
    others = Entries(scratch.candidates, scratch.heard_of.points)
    small_world.read_ids(others, backups, friends.profiles.ids)
    near = see(others, backups, scratch.sights, seen, (scratch.seen, near))
    if is_news(p, (scratch.seen, near), views, friends.profiles.ids, scratch.sights, seen):
        return False
    exchange.keep_row(p, this, out)
    found = leave_out(nodes, found, views.links, a, b)
    if found > 0:
        kept = 0
        for at in range(a + structured, b):
            if views.links[at] != NOBODY:
                best.nodes[kept], best.keys[kept] = views.links[at], friends.keys[at]
                kept += 1
        for i in range(np.uint64(found)):
            scratch.candidates[i] = nodes[i]
        _choose_friends(p, this, structured, friends, scratch, (kept, found), out)
        exchange.remember(p, this, structured, out)
    else:
        exchange.note_meetings(p, this, out)
    return True


@inlined
def _choose_friends(
    p: int,
    this: Exchange,
    structured: int,
    friends: Friendships,
    scratch: Scratch,
    so_far: tuple[int, int],
    out: NewRows,
) -> None:
    """Fill the slots of friends of the row p, from so many friends in `best` and so many candidates."""
    node, best, (kept, found) = this.views.nodes[p], scratch.best, so_far
    ties = tie_state(this.seed, node, friends.common_ties)
    kept = choose_friends(node, ties, (scratch.candidates, found), friends.profiles, scratch.marks, best, kept)
    for i in range(len(best.nodes)):
        at = this.views.starts[p] + structured + i
        out.links[at], friends.keys[at] = (best.nodes[i], best.keys[i]) if i < kept else (NOBODY, UNKNOWN)


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
