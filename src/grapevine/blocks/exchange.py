"""T-Man exchange of views (Jelasity & Babaoglu 2006; Vitis Algorithms 2, 3, 6 and 7).

A node contacts one neighbour a round; both merge the other's links and samples into their own and select anew. In a
synchronous round a node merges what its partner and all its callers held at the start of the round.
Heartbeats: then it sends its profile to all its neighbours and hears from those that live; a link silent for too long
is dropped. When a descriptor travels, the round in which its subject was last heard travels with it, or the dead would
circulate forever.
"""

from __future__ import annotations

import numpy as np

from grapevine.blocks.candidates import Candidates, offer_all
from grapevine.blocks.views import EXCHANGE_PARTNER, NOBODY, Views, one_of
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit

Contacts = tuple[Columns, Starts, Columns]  # the partner of each node, and its callers as rows


@njit
def choose_partners(
    seed: int, now: int, first: int, last: int, views: Views, ring_slots: int, partner: Columns
) -> None:
    """A random neighbour; every other round one of the first `ring_slots` links: the ring is exact in half the time.

    A node without links asks one of its samples.
    """
    for p in range(first, last):
        partner[p] = NOBODY
        if not views.alive[p]:
            continue
        row = views.links[views.starts[p] : views.starts[p + 1]]
        q = one_of(row[:ring_slots] if now % 2 else row, seed, now, p, EXCHANGE_PARTNER)
        if q == NOBODY:
            q = one_of(row, seed, now, p, EXCHANGE_PARTNER)
        if q == NOBODY:
            q = one_of(views.cache[p], seed, now, p, EXCHANGE_PARTNER)
        if q != NOBODY and views.alive[q]:
            partner[p] = q


@njit
def most_candidates(first: int, last: int, views: Views, contacts: Contacts) -> int:
    """Room that the largest buffer among the nodes first … last-1 needs."""
    most = 1
    for p in range(first, last):
        most = max(most, bound(p, views, contacts))
    return most


@njit
def bound(p: int, views: Views, contacts: Contacts) -> int:
    """At most so many candidates can come together at p in this round."""
    partner, starts, who = contacts
    known = views.cache.shape[1] + views.backups.shape[1]
    total: int = views.starts[p + 1] - views.starts[p] + known
    if partner[p] != NOBODY:
        total += views.starts[partner[p] + 1] - views.starts[partner[p]] + known + 1
    for q in who[starts[p] : starts[p + 1]]:
        total += views.starts[q + 1] - views.starts[q] + known + 1
    return total


@njit
def heartbeat(now: int, first: int, last: int, views: Views) -> None:
    """Algorithms 6 and 7: everyone hears from each neighbour that lives; the others' silence grows by a round."""
    for at in range(views.starts[first], views.starts[last]):
        if views.links[at] != NOBODY and views.alive[views.links[at]]:
            views.heard[at] = now


@njit
def gather(p: int, now: int, oldest: int, views: Views, contacts: Contacts, into: Candidates) -> None:
    """The merged buffer of p: its links and samples, those of its partner and callers, and these themselves.

    Nothing that was last heard before `oldest` enters; p itself does not either.
    """
    partner, starts, who = contacts
    _offer_view(p, p, oldest, views, into)
    if partner[p] != NOBODY:
        _offer_sender(p, partner[p : p + 1], now, into)
        _offer_view(p, partner[p], oldest, views, into)
    _offer_sender(p, who[starts[p] : starts[p + 1]], now, into)
    for at in range(starts[p], starts[p + 1]):
        _offer_view(p, who[at], oldest, views, into)


@njit
def _offer_sender(p: int, senders: Columns, now: int, into: Candidates) -> None:
    if len(senders) > 0:
        offer_all(into, senders, np.full(len(senders), now, np.int32), now, p)


@njit
def _offer_view(p: int, q: int, oldest: int, views: Views, into: Candidates) -> None:
    a, b = views.starts[q], views.starts[q + 1]
    offer_all(into, views.links[a:b], views.heard[a:b], oldest, p)
    offer_all(into, views.cache[q], views.cache_heard[q], oldest, p)
