"""Backup sets (OMen §4.3): who keeps them, and how nodes find them by gossip.

The backup set of a node v' covers each of its topics λ times, and every member shares a topic with v' (`set_cover`).

Backup sets are kept by the successors of v' on the identifier ring, each its own (Algorithm 2). The view of a node is
what it keeps for its predecessors: their backup sets and their neighbours. Views are exchanged as in T-Man (Algorithms
3 and 4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.candidates import Candidates, new_candidates, offer_all, start_over
from grapevine.blocks.exchange import Contacts
from grapevine.blocks.views import BACKUP_TOPICS, EXCHANGE_PARTNER, NOBODY, Views, one_sample
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, below, draw, stream
from grapevine.systems.omen.set_cover import Search, build_backups


class Ring(NamedTuple):
    """The identifier circle as nodes believe it to be. Whoever left stays listed until that has been handled."""

    listed: Columns  # in the order of ids
    place: Columns  # node → its place in `listed`, or NOBODY
    present: NDArray[np.bool_]  # node → believed to be there


class Backups(NamedTuple):
    """Per rank and subject v': what its rank-th successor keeps."""

    starts: Starts  # subject → its row of nodes
    nodes: NDArray[np.int32]  # [rank, place in the rows]
    size: NDArray[np.int32]  # [rank, subject]: places of its row that are in use
    keeper: NDArray[np.int32]  # [rank, subject]: that successor, or NOBODY
    coverage: NDArray[np.int32]  # [rank, subject]: topics covered, each counted up to the number wanted
    complete: NDArray[np.bool_]  # [rank, subject]: every topic is covered as often as wanted
    gained: NDArray[np.int32]  # [rank, subject]: the round in which the coverage last grew


class Kept(NamedTuple):
    """What all nodes know at the start of a round: the ring, what they keep for their predecessors, and their links."""

    ring: Ring
    backups: Backups
    views: Views


def new_backups(room: NDArray[np.int64], ranks: int) -> Backups:
    """Nothing known yet; `room` is the most that the set of each subject can hold."""
    starts = np.concatenate([[0], np.cumsum(room)]).astype(np.int64)
    shape = ranks, len(room)
    return Backups(
        starts,
        np.empty((ranks, starts[-1]), np.int32),
        np.zeros(shape, np.int32),
        np.full(shape, NOBODY, np.int32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.bool_),
        np.zeros(shape, np.int32),
    )


@njit
def keepers(subject: int, ring: Ring, out: Columns) -> None:
    """The next successors that are present, as many as `out` holds; NOBODY where the ring is too small."""
    out[:] = NOBODY
    rank, size = 0, len(ring.listed)
    for step in range(1, size):
        node = ring.listed[(ring.place[subject] + step) % size]
        if rank == len(out):
            break
        if ring.present[node]:
            out[rank] = node
            rank += 1


@njit
def reassign(now: int, ring: Ring, old: Backups, new: Backups) -> None:
    """The ring has changed: who still is a successor keeps what it had, who has become one starts with nothing."""
    ranks = old.keeper.shape[0]
    for subject in range(old.keeper.shape[1]):
        first, before = new.starts[subject], old.starts[subject]
        new.keeper[:, subject] = NOBODY
        if ring.place[subject] != NOBODY:
            keepers(subject, ring, new.keeper[:, subject])
        for rank in range(ranks):
            keeper, source = new.keeper[rank, subject], NOBODY
            for i in range(ranks):
                if keeper != NOBODY and old.keeper[i, subject] == keeper:
                    source = i
            if source == NOBODY:
                new.size[rank, subject] = new.coverage[rank, subject] = 0
                new.complete[rank, subject] = False
                new.gained[rank, subject] = now
                continue
            fits = min(new.starts[subject + 1] - first, old.size[source, subject])
            new.nodes[rank, first : first + fits] = old.nodes[source, before : before + fits]
            new.size[rank, subject] = fits
            new.coverage[rank, subject] = old.coverage[source, subject]
            new.complete[rank, subject] = old.complete[source, subject]
            new.gained[rank, subject] = old.gained[source, subject]


@njit
def offer_view(node: int, kept: Kept, into: Candidates) -> None:
    """`getView` (Algorithm 4): the backup sets and neighbours that the node keeps for its predecessors.

    Nobody asks when they were last heard, so any number serves for that.
    """
    ring, backups, views = kept
    rank, size = 0, len(ring.listed)
    for step in range(1, size):
        if rank == backups.keeper.shape[0]:
            return
        subject = ring.listed[(ring.place[node] - step) % size]
        first = backups.starts[subject]
        row = backups.nodes[rank, first : first + backups.size[rank, subject]]
        offer_all(into, row, row, 0, NOBODY)
        row = views.links[views.starts[subject] : views.starts[subject + 1]]
        offer_all(into, row, row, 0, NOBODY)
        rank += ring.present[subject]


@njit
def view_room(node: int, kept: Kept) -> int:
    """At most so many nodes are in its view."""
    ring, backups, views = kept
    rank, size, room = 0, len(ring.listed), 0
    for step in range(1, size):
        if rank == backups.keeper.shape[0]:
            break
        subject = ring.listed[(ring.place[node] - step) % size]
        room += backups.size[rank, subject]
        room += views.starts[subject + 1] - views.starts[subject]
        rank += ring.present[subject]
    return room


@njit
def view_sizes(first: int, last: int, kept: Kept, out: NDArray[np.int64]) -> None:
    """Distinct nodes in the views of the nodes first … last-1 that are on the ring."""
    for node in range(first, last):
        out[node] = 0
        if kept.views.alive[node] and kept.ring.place[node] != NOBODY:
            into = new_candidates(view_room(node, kept))
            start_over(into, len(into.nodes))
            offer_view(node, kept, into)
            out[node] = into.size[0]


@njit
def choose_partners(seed: int, now: int, nodes: tuple[int, int], kept: Kept, partner: Columns) -> None:
    """For the nodes first … last-1: a random node of the view; a node with an empty view asks one of its samples
    (Algorithm 3, line 2)."""
    ring, views = kept.ring, kept.views
    for p in range(nodes[0], nodes[1]):
        partner[p] = NOBODY
        if not views.alive[p] or ring.place[p] == NOBODY:
            continue
        known = new_candidates(view_room(p, kept))
        start_over(known, len(known.nodes))
        offer_view(p, kept, known)
        q = NOBODY
        if known.size[0] > 0:
            q = known.nodes[below(draw(seed, now, p, EXCHANGE_PARTNER), known.size[0])]
        if q in (NOBODY, p):
            q = one_sample(views.cache, p, draw(seed, now, p, EXCHANGE_PARTNER))
        if q != NOBODY and q != p and views.alive[q] and ring.place[q] != NOBODY:
            partner[p] = q


@njit
def exchange_round(
    seed: int,
    now: int,
    nodes: tuple[int, int],
    search: Search,
    kept: Kept,
    contacts: Contacts,
    out: tuple[Backups, NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """`selectView` (Algorithm 4) of the nodes first … last-1, after one exchange of buffers with partner and callers.

    Whoever is chosen is asked for its topics, so those who do not answer (`usable`) are not chosen. `out` are the new
    sets, how many descriptors each node sends, and how many others it asks: those who were not in the set before.
    """
    partner, starts, who = contacts
    ring, backups, views = kept
    new, buffer_size, asked = out
    mark, size = np.zeros(len(search.profiles.weights), np.int32), len(ring.listed)
    was_in = np.zeros(len(ring.place), np.bool_)  # all False between two sets
    for v in range(nodes[0], nodes[1]):
        if not views.alive[v] or ring.place[v] == NOBODY:
            continue
        cache = views.cache.shape[1]
        room = view_room(v, kept) + cache + 1
        if partner[v] != NOBODY:
            room += view_room(partner[v], kept) + cache + 1
        for q in who[starts[v] : starts[v + 1]]:
            room += view_room(q, kept) + cache + 1
        known = new_candidates(room)
        start_over(known, room)
        _offer_buffer(v, kept, known)
        buffer_size[v] = known.size[0]
        if partner[v] != NOBODY:
            _offer_buffer(partner[v], kept, known)
        for q in who[starts[v] : starts[v + 1]]:
            _offer_buffer(q, kept, known)
        rank = 0
        for step in range(1, size):
            if rank == backups.keeper.shape[0]:
                break
            subject = ring.listed[(ring.place[v] - step) % size]
            row = new.nodes[rank, new.starts[subject] : new.starts[subject + 1]]
            state = absorb(absorb(stream(seed, now, v), BACKUP_TOPICS), subject)
            made = build_backups(subject, state, known.nodes[: known.size[0]], search, mark, row)
            new.size[rank, subject], new.coverage[rank, subject] = made.size, made.coverage
            new.complete[rank, subject] = made.complete
            before = backups.nodes[rank, backups.starts[subject] :][: backups.size[rank, subject]]
            asked[v] += _newcomers(before, row[: made.size], was_in)
            grew = made.coverage > backups.coverage[rank, subject]
            new.gained[rank, subject] = now if grew else backups.gained[rank, subject]
            rank += ring.present[subject]


@njit
def _newcomers(before: Columns, after: Columns, was_in: NDArray[np.bool_]) -> int:
    """How many of a set were not in the one before. `was_in` is False for every node, before and after."""
    count = 0
    for u in before:
        was_in[u] = True
    for u in after:
        count += not was_in[u]
    for u in before:
        was_in[u] = False
    return count


@njit
def count_sets(backups: Backups, alive: NDArray[np.bool_], out: Columns) -> None:
    """Adds to `out`, by node, the sets that it is in; what the dead keep does not count."""
    for rank in range(backups.keeper.shape[0]):
        for subject in range(backups.keeper.shape[1]):
            keeper = backups.keeper[rank, subject]
            if keeper != NOBODY and alive[keeper]:
                first = backups.starts[subject]
                for u in backups.nodes[rank, first : first + backups.size[rank, subject]]:
                    out[u] += 1


@njit
def _offer_buffer(node: int, kept: Kept, into: Candidates) -> None:
    """Algorithm 3, line 3: the node itself, its view and its samples."""
    itself = np.full(1, node, np.int32)
    offer_all(into, itself, itself, 0, NOBODY)
    offer_view(node, kept, into)
    cache = kept.views.cache[node]
    offer_all(into, cache, cache, 0, NOBODY)
