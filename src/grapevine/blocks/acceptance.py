"""Links that both ends accept: a bound on connections, as part of an exchange.

A *connection* joins two nodes of which one at least links to the other. Without a bound whoever is linked to accepts,
and a node that many prefer has hundreds of connections. With one (`most_links`), a link that a node wants is a request,
and only what is granted stands in its table; so tables, exports, elections and floods speak of the same overlay.

Theory. Everybody decides alone, from its own table, the links that it wants now and the requests that reach it; so the
same rules can be played by messages, a request and an answer a round.

- A node splits its free room in two halves: for what it asks, and for what it grants; a coin decides about an odd one.
  What it does not ask for, it can grant. So nobody exceeds the bound, whatever is granted at the same time.
- A node that gives up a link for another asks before it lets go: such a swap takes no room of its own. What is refused
  is not linked, and what was given up for it stays.
- Nodes ask for what they want most, in the order of their slots. Who is asked by too many grants in random order.
- Ring links are granted to the nearest: of all that want a node as their successor, the one closest before it, and
  likewise as predecessor; newcomers that have not settled come last. Whoever is refused is told who is nearer, and
  remembers it as a backup. So a node has four ring connections at most (two in a ring that is exact), and the bound
  leaves as much for them.
- Everybody tells with its descriptor whether it has room, as it tells its topics. Who has room itself looks for others
  that have, so a refusal is learnt before it is met; who has none may want anybody, since two that want each other can
  swap. Without that the first links would be the last: everybody is full soon.

Invariants: after a round no node has more than `most_links` connections; a link that was granted stays until its owner
drops it; a node is refused only by who is gone or had no room left for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import ACCEPTANCE, NOBODY
from grapevine.kernels.csr import Columns, Starts, count_rows, fill_rows
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import clockwise
from grapevine.kernels.rng import absorb, draw, stream

_KEPT, _NO_ROOM_NEEDED, _ASKED, _GRANTED, _REFUSED = range(1, 6)  # what becomes of a link that a node wants
_FARTHEST = np.uint64(2**64 - 1)


class Tables(NamedTuple):
    """What an exchange chose, beside the tables of before. Row p has the slots starts[p] … starts[p + 1]-1."""

    alive: NDArray[np.bool_]  # by node
    settled: NDArray[np.bool_]  # by node: here long enough to be a ring link of others
    starts: Starts
    first: int  # the slots of a table before this one are ring links
    before: Columns
    wanted: Columns  # becomes the links that are granted


@njit
def grant_ring(ids: NDArray[np.uint64], tables: Tables, backups: NDArray[np.int32]) -> None:
    """Take the ring links out of `wanted` that are not granted, and tell whoever is refused who is nearer.

    The first slot of a table is the successor, the second the predecessor.
    """
    starts, wanted, settled = tables.starts, tables.wanted, tables.settled
    nodes = len(starts) - 1
    half = backups.shape[1] // 2
    for slot in range(tables.first):
        nearest, least = np.full(nodes, NOBODY, np.int32), np.full(nodes, _FARTHEST)
        for p in range(nodes):
            q = wanted[starts[p] + slot]
            if q != NOBODY:
                steps = clockwise(ids[p], ids[q]) if slot == 0 else clockwise(ids[q], ids[p])
                rival = nearest[q]
                if rival == NOBODY or (settled[p], least[q]) > (settled[rival], steps):
                    nearest[q], least[q] = p, steps
        for p in range(nodes):
            q = wanted[starts[p] + slot]
            if q != NOBODY and nearest[q] != p:
                wanted[starts[p] + slot] = NOBODY
                if half > 0:  # the farthest makes room; the order is mended in the next exchange
                    backups[p, (slot + 1) * half - 1] = nearest[q]


@njit
def grant_others(seed: int, now: int, room: int, tables: Tables) -> None:
    """Replace the links that nodes want, but for the ring's, by those that they get.

    `room` is how many connections a node may have beside those of the ring.
    """
    starts, first = tables.starts, tables.first
    nodes = len(starts) - 1
    _let_go_of_the_dead(tables)
    free = np.full(nodes, room, np.int64) - connections(starts, first, tables.before)
    state, gains = _what_is_wanted(tables)
    capacity = free.copy()
    for p in range(nodes):
        coin = draw(seed, now, p, ACCEPTANCE) & np.uint64(1)
        budget = gains[p] + max(0, free[p]) // 2 + (max(0, free[p]) & 1) * np.int64(coin)
        asked = 0
        for at in range(starts[p] + first, starts[p + 1]):
            if state[at] == _ASKED:
                asked += 1
                if asked > budget:
                    state[at] = _REFUSED
        capacity[p] -= max(0, min(asked, budget) - gains[p])
    _answer(seed, now, capacity, state, tables)
    _take_what_is_granted(state, tables)


@njit
def _let_go_of_the_dead(tables: Tables) -> None:
    """A link that is not wanted any more and whose other end is gone is no connection."""
    alive, _, starts, first, before, wanted = tables
    for p in range(len(starts) - 1):
        for at in range(starts[p] + first, starts[p + 1]):
            q = before[at]
            if q != NOBODY and not alive[q] and not _holds(starts, first, wanted, p, q):
                before[at] = NOBODY


@njit
def connections(starts: Starts, first: int, links: Columns) -> NDArray[np.int64]:
    """How many connections every node has by these links, but for the ring's, which are in the slots before `first`;
    two links between the same nodes are one."""
    count = np.zeros(len(starts) - 1, np.int64)
    for p in range(len(starts) - 1):
        for at in range(starts[p] + first, starts[p + 1]):
            q = links[at]
            if q != NOBODY and (p < q or not _holds(starts, first, links, q, p)):
                count[p] += 1
                count[q] += 1
    return count


@njit
def _holds(starts: Starts, first: int, links: Columns, p: int, q: int) -> bool:
    """Whether the node q stands in the row p of these links, but for the ring's slots."""
    found = False
    for at in range(starts[p] + first, starts[p + 1]):
        found = found or links[at] == q
    return found


@njit
def _what_is_wanted(tables: Tables) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """By slot what the wanted link needs; by node how many connections end if it gets others for what it gives up.

    A connection whose other end links here as well, or asks to, goes on: giving it up gains nothing.
    """
    alive, _, starts, first, before, wanted = tables
    state, gains = np.zeros(len(wanted), np.int8), np.zeros(len(starts) - 1, np.int64)
    for p in range(len(starts) - 1):
        for at in range(starts[p] + first, starts[p + 1]):
            q, r = wanted[at], before[at]
            if q != NOBODY:
                if _holds(starts, first, before, p, q):
                    state[at] = _KEPT
                elif _holds(starts, first, before, q, p):
                    state[at] = _NO_ROOM_NEEDED
                else:
                    state[at] = _ASKED if alive[q] else _REFUSED
            if r != NOBODY and _is_given_up(p, r, tables):
                gains[p] += 1
    return state, gains


@njit
def _is_given_up(p: int, r: int, tables: Tables) -> bool:
    """Whether p's link to r, which was there before, ends a connection when p drops it."""
    _, _, starts, first, before, wanted = tables
    kept = _holds(starts, first, wanted, p, r)
    return not (kept or _holds(starts, first, before, r, p) or _holds(starts, first, wanted, r, p))


@njit
def _answer(seed: int, now: int, capacity: NDArray[np.int64], state: NDArray[np.int8], tables: Tables) -> None:
    """Grant what is asked: what two nodes ask of each other, since both have room for it; and of the other requests to
    a node as many as it has the capacity for, in random order."""
    starts, first, wanted = tables.starts, tables.first, tables.wanted
    slots, sources, targets = np.empty(len(wanted), np.int64), np.empty(len(wanted), np.int32), wanted.copy()
    count = 0
    for p in range(len(starts) - 1):
        for at in range(starts[p] + first, starts[p + 1]):
            if state[at] == _ASKED:
                slots[count], sources[count], targets[count] = at, p, wanted[at]
                count += 1
    mutual = np.zeros(count, np.bool_)
    for i in range(count):
        q = targets[i]
        for at in range(starts[q] + first, starts[q + 1]):
            mutual[i] = mutual[i] or (wanted[at] == sources[i] and state[at] == _ASKED)
    rows = count_rows(targets[:count], len(starts) - 1)
    requests = fill_rows(targets[:count], np.arange(count).astype(np.int32), rows)
    for q in range(len(starts) - 1):
        mine = requests[rows[q] : rows[q + 1]]
        ties = absorb(stream(seed, ACCEPTANCE, q), now)
        keys = np.empty(len(mine), np.uint64)
        for i in range(len(mine)):
            keys[i] = absorb(ties, sources[mine[i]])
        left = capacity[q]
        for i in mine[np.argsort(keys)]:
            if mutual[i] or left > 0:
                left -= not mutual[i]
                state[slots[i]] = _GRANTED
    for i in range(count):
        if state[slots[i]] == _ASKED:
            state[slots[i]] = _REFUSED


@njit
def _take_what_is_granted(state: NDArray[np.int8], tables: Tables) -> None:
    """Clear what is refused, and put what was given up for it back: the last of a table is dropped first."""
    starts, first, before, wanted = tables.starts, tables.first, tables.before, tables.wanted
    returned = wanted.copy()
    for p in range(len(starts) - 1):
        granted, refused, given_up = 0, 0, 0
        for at in range(starts[p] + first, starts[p + 1]):
            granted += state[at] == _GRANTED
            given_up += before[at] != NOBODY and _is_given_up(p, before[at], tables)
            if state[at] == _REFUSED:
                refused += 1
                returned[at] = NOBODY
        stay, slot = min(refused, max(0, given_up - granted)), starts[p] + first
        for at in range(starts[p] + first, starts[p + 1]):
            if stay > 0 and before[at] != NOBODY and _is_given_up(p, before[at], tables):
                while returned[slot] != NOBODY:
                    slot += 1
                returned[slot] = before[at]
                stay -= 1
    wanted[:] = returned
