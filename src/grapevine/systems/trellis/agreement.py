"""How two nodes come to a link: requests one by one, each agreed on by both ends or by none.

Theory. A link stands in the rows of both its ends, and a row has as many slots as a node may have connections. Whoever
takes a link puts it into a free slot, or into that of its least valuable link, which both ends then drop. So after
every request, however many there are and in whatever order they come,
1. nobody has more than `most_links` connections;
2. a link is in both rows, or in the one of a node whose other end has crashed, until silence tells;
3. a ring link is not given up for a friend.

Requests of a round are handled in random order, each with the state as it is then: a request and its answer are one
step, as if both ends were locked meanwhile. Ring links come first, then everybody's best friend, then the second.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import clockwise
from grapevine.systems.trellis.rules import accepts_friend, link_tie
from grapevine.systems.trellis.state import Overlay, Standing, slot_of
from grapevine.systems.trellis.wishes import Taste, Wishes, enter, gain_of, leave, ring_neighbours

PROTECTED = 1e9  # the value of a ring link
_FARTHEST = np.uint64(2**64 - 1)
# Kinds of messages, as the `messages` table calls them.
KINDS = "connect", "accept", "refuse", "disconnect"
CONNECT, ACCEPT, REFUSE, DISCONNECT = range(4)


class Links(NamedTuple):
    """The rows of all nodes: [node, slot]."""

    links: NDArray[np.int32]
    heard: NDArray[np.int32]
    values: NDArray[np.float64]  # what a link is worth to the owner of the row; nothing for free slots
    made: NDArray[np.int32]  # the round in which it was agreed on


@njit
def drop_silent(
    nodes: tuple[int, int], times: tuple[int, int], rows: Links, alive: NDArray[np.bool_], lost: Columns
) -> None:
    """Heartbeats on the links of the nodes first … last-1. A link is dropped when the other end has been silent for
    more than so many rounds (`times` are now and these), or, being there again, does not know of it; `lost` then is
    this round."""
    now, max_age = times
    for p in range(nodes[0], nodes[1]):
        if not alive[p]:
            continue
        for s in range(rows.links.shape[1]):
            q = rows.links[p, s]
            if q == NOBODY:
                continue
            if alive[q] and slot_of(rows.links, q, p) >= 0:
                rows.heard[p, s] = now
            elif alive[q] or rows.heard[p, s] < now - max_age:
                rows.links[p, s] = NOBODY
                lost[p] = now


@njit
def add_roles(
    nodes: tuple[int, int], overlay: Overlay, bridge: float, in_use: NDArray[np.int16], values: NDArray[np.float64]
) -> None:
    """Add to the values of links, in topics that both ends want, what they are worth as edges of bridges; those to the
    ring neighbours are protected, unless these were silent in this round."""
    for p in range(nodes[0], nodes[1]):
        if overlay.alive[p]:
            after, before = ring_neighbours(p, overlay)
            for s in range(overlay.links.shape[1]):
                q = overlay.links[p, s]
                if q != NOBODY:
                    values[p, s] += bridge * in_use[p, s]
                    if q in (after, before) and overlay.alive[q]:
                        values[p, s] = PROTECTED


@njit
def agree(
    order: Columns,
    overlay: Overlay,
    rows: Links,
    wishes: Wishes,
    taste: Taste,
    margins: NDArray[np.float64],
    count: tuple[Standing, NDArray[np.int64]],
) -> None:
    """Handle all requests, of the nodes in this order. `margins` are everybody's; of the standing, `freed` is renewed;
    messages are counted by kind."""
    standing, sent = count
    for side in range(2):
        for p in order:
            if wishes.ring[p, side] != NOBODY:
                _ask_for_ring(p, side, overlay, rows, wishes, (standing, sent))
    position = np.full(len(overlay.profiles.weights), NOBODY, np.int32)
    for i in range(wishes.friends.shape[1]):
        for p in order:
            if wishes.friends[p, i] != NOBODY:
                _ask_friend(p, i, overlay, rows, wishes, (taste, margins, position), (standing, sent))


@njit
def _ask_for_ring(
    p: int, side: int, overlay: Overlay, rows: Links, wishes: Wishes, count: tuple[Standing, NDArray[np.int64]]
) -> None:
    """p asks the node that it takes for its successor (side 0) or predecessor. It refuses, and names the one that is
    nearer on the side where p stands, if it is linked to one."""
    (standing, sent), ids, q = count, overlay.profiles.ids, int(wishes.ring[p, side])
    sent[CONNECT] += 1
    if not overlay.alive[q] or slot_of(rows.links, p, q) >= 0:
        return
    nearest, least = NOBODY, _FARTHEST
    for s in range(rows.links.shape[1]):
        x = int(rows.links[q, s])
        if x != NOBODY and overlay.alive[x]:
            steps = clockwise(ids[x], ids[q]) if side == 0 else clockwise(ids[q], ids[x])
            if steps < least:
                nearest, least = x, steps
    if nearest != NOBODY and least < (clockwise(ids[p], ids[q]) if side == 0 else clockwise(ids[q], ids[p])):
        sent[REFUSE] += 1
        half = wishes.lists.backups.shape[1] // 2
        wishes.lists.backups[p, (side + 1) * half - 1] = nearest  # the next look puts it in its place
    else:
        _connect(p, q, (PROTECTED, PROTECTED), overlay.now, rows, standing, sent)


@njit
def _ask_friend(
    p: int,
    i: int,
    overlay: Overlay,
    rows: Links,
    wishes: Wishes,
    how: tuple[Taste, NDArray[np.float64], Columns],
    count: tuple[Standing, NDArray[np.int64]],
) -> None:
    """p asks its i-th wish, if it would win itself. A request to a node that is gone has no answer, and it is no
    prospect any more."""
    (taste, margins, position), (standing, sent) = how, count
    q, gain = int(wishes.friends[p, i]), wishes.gains[p, i]
    value = weakest(p, rows)[1]
    if slot_of(rows.links, p, q) >= 0 or (value > 0.0 and gain <= value + margins[p]):
        return
    sent[CONNECT] += 1
    if not overlay.alive[q]:
        for at in range(wishes.lists.prospects.shape[1]):
            if wishes.lists.prospects[p, at] == q:
                wishes.lists.prospects[p, at] = NOBODY
        return
    enter(q, overlay, position)
    others = gain_of(p, q, overlay, taste, position)
    leave(q, overlay, position)
    if accepts_friend((gain, others), (value, weakest(q, rows)[1]), max(margins[p], margins[q])):
        _connect(p, q, (gain, others), overlay.now, rows, standing, sent)
    else:
        sent[REFUSE] += 1


@njit
def weakest(p: int, rows: Links) -> tuple[int, float]:
    """The slot that p would give for a new link, and what it costs: a free one nothing; -1 and PROTECTED if it has none
    to give. Of equally good links the one of the lowest tie goes."""
    slot, value = -1, PROTECTED
    for s in range(rows.links.shape[1]):
        q, worth = rows.links[p, s], rows.values[p, s]
        if q == NOBODY:
            return s, 0.0
        if worth < value or (slot >= 0 and worth == value and link_tie(p, q) < link_tie(p, rows.links[p, slot])):
            slot, value = s, worth
    return slot, value


@njit
def _connect(
    p: int, q: int, values: tuple[float, float], now: int, rows: Links, standing: Standing, sent: NDArray[np.int64]
) -> None:
    """Link the two, each in the slot that it gives for it. Where one has none to give, nothing happens."""
    if weakest(p, rows)[0] < 0 or weakest(q, rows)[0] < 0:
        sent[REFUSE] += 1
        return
    sent[ACCEPT] += 1
    _put(p, q, values[0], now, rows, standing, sent)
    _put(q, p, values[1], now, rows, standing, sent)


@njit
def _put(p: int, q: int, value: float, now: int, rows: Links, standing: Standing, sent: NDArray[np.int64]) -> None:
    slot = weakest(p, rows)[0]
    other = int(rows.links[p, slot])
    if other != NOBODY:
        sent[DISCONNECT] += 1
        back = slot_of(rows.links, other, p)
        if back >= 0:
            rows.links[other, back] = NOBODY
            standing.freed[other] = now
    rows.links[p, slot], rows.heard[p, slot], rows.values[p, slot], rows.made[p, slot] = q, now, value, now
