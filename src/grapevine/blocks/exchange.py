"""T-Man exchange of views (Jelasity & Babaoglu 2006; Vitis Algorithms 2, 3, 6 and 7).

A node contacts one neighbour a round; both merge the other's links and samples into their own and select anew. In a
synchronous round a node merges what its partner and all its callers held at the start of the round.
Heartbeats: then it sends its profile to all its neighbours and hears from those that live; a link silent for too long
is dropped. When a descriptor travels, the round in which its subject was last heard travels with it, or the dead would
circulate forever.

A system's kernel does for each of its nodes: `start_over` the buffer for `bound` candidates, `gather` them, select by
its rule, store. Everything is read from the views at the start of the round, and written elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grapevine.blocks.candidates import Candidates, offer_all
from grapevine.blocks.views import EXCHANGE_PARTNER, NOBODY, Views, one_of
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit

# Who exchanges views with whom in a round: the partner that each node chose (NOBODY: none), and its callers, the nodes
# that chose it, as rows. Nothing to do with the contacts of live nodes (`net/contacts`).
Contacts = tuple[Columns, Starts, Columns]


class Exchange(NamedTuple):
    """One round of view exchange, as a system's kernel reads it."""

    seed: int
    now: int  # the round
    oldest: int  # candidates last heard before this round are not considered
    views: Views  # at the start of the round
    contacts: Contacts


@njit
def choose_partners(
    seed: int, now: int, first: int, last: int, views: Views, ring_slots: int, partner: Columns
) -> None:
    """Whom each of the nodes first … last-1 contacts in this round, into `partner`; NOBODY for nodes that are not
    there.

    A random neighbour; every other round one of the first `ring_slots` links: the ring is exact in half the time. A
    node without links asks one of its samples. Who chooses a node that is gone has no partner in this round.
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
def most_candidates(nodes: tuple[int, int], this: Exchange) -> int:
    """The largest `bound` of the nodes first … last-1: how large a buffer must be that serves them all."""
    most = 1
    for p in range(nodes[0], nodes[1]):
        most = max(most, bound(p, this))
    return most


@njit
def bound(p: int, this: Exchange) -> int:
    """At most so many candidates can come together at p in this round, ring backups included."""
    views = this.views
    partner, starts, who = this.contacts
    known = views.cache.shape[1] + views.backups.shape[1]
    total: int = views.starts[p + 1] - views.starts[p] + known
    if partner[p] != NOBODY:
        total += views.starts[partner[p] + 1] - views.starts[partner[p]] + known + 1
    for q in who[starts[p] : starts[p + 1]]:
        total += views.starts[q + 1] - views.starts[q] + known + 1
    return total


@njit
def heartbeat(now: int, first: int, last: int, views: Views) -> None:
    """Algorithms 6 and 7 for the nodes first … last-1: their links to nodes that live have `heard` = now.

    The others stay as old as they were; `gather` no longer takes them when they are older than the system's `max_age`.
    """
    for at in range(views.starts[first], views.starts[last]):
        if views.links[at] != NOBODY and views.alive[views.links[at]]:
            views.heard[at] = now


@njit
def gather(p: int, this: Exchange, into: Candidates) -> None:
    """The merged buffer of p: its links and samples, those of its partner and callers, and these themselves.

    Nothing that was last heard before `oldest` enters; p itself does not either. The order is that of arrival: p's own,
    the partner's, then the callers' by their numbers. `into` is empty and has room for `bound` candidates.
    """
    now, oldest, views = this.now, this.oldest, this.views
    partner, starts, who = this.contacts
    _offer_view(p, p, oldest, views, into)
    if partner[p] != NOBODY:
        _offer_sender(p, partner[p : p + 1], now, into)
        _offer_view(p, partner[p], oldest, views, into)
    _offer_sender(p, who[starts[p] : starts[p + 1]], now, into)
    for at in range(starts[p], starts[p + 1]):
        _offer_view(p, who[at], oldest, views, into)


@njit
def _offer_sender(p: int, senders: Columns, now: int, into: Candidates) -> None:
    """Whoever takes part in the exchange has just been heard."""
    if len(senders) > 0:
        offer_all(into, senders, np.full(len(senders), now, np.int32), now, p)


@njit
def _offer_view(p: int, q: int, oldest: int, views: Views, into: Candidates) -> None:
    """The links and samples of q, as old as q says they are."""
    a, b = views.starts[q], views.starts[q + 1]
    offer_all(into, views.links[a:b], views.heard[a:b], oldest, p)
    offer_all(into, views.cache[q], views.cache_heard[q], oldest, p)
