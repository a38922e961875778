"""Backup sets (OMen §4.2, §4.3): for every node a few others that together want all its topics, found by gossip.

The backup set of a node v' covers each of its topics λ times, and every member shares a topic with v'. Finding the
smallest is set cover, so it is approximated: greedily (always who covers most of what is missing), or by primal-dual (a
random missing topic, then whoever among its subscribers covers most of what is missing), which spreads the duty.

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
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import BACKUP_TIES, BACKUP_TOPICS, EXCHANGE_PARTNER, NOBODY, Views, one_of
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, below, draw, stream

PRIMAL_DUAL, GREEDY = range(2)
RULES = {"primal-dual": PRIMAL_DUAL, "greedy": GREEDY}
_33 = np.uint64(33)


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


class Cover(NamedTuple):
    """What came out of building one set."""

    size: int
    coverage: int
    complete: bool


@njit
def build_backups(
    subject: int,
    wanted: int,
    rule: int,
    state: np.uint64,
    nodes: Columns,
    usable: NDArray[np.bool_],
    profiles: Profiles,
    mark: Columns,
    out: Columns,
) -> Cover:
    """`buildBackupsByPD` or `buildBackupsGreedily` (§4.2): of distinct nodes, those who cover each topic of the subject
    `wanted` times, into `out`. `mark` is zero for every topic, before and after."""
    mine = profiles.topics[profiles.starts[subject] : profiles.starts[subject + 1]]
    for i in range(len(mine)):
        mark[mine[i]] = i + 1
    # The candidates that share a topic, and which; first by candidate, then by topic.
    most = 0
    for u in nodes:
        if usable[u] and u != subject:
            most += min(len(mine), profiles.starts[u + 1] - profiles.starts[u])
    shared, starts = np.empty(most, np.int32), np.empty(len(nodes) + 1, np.int64)
    who, ties = np.empty(len(nodes), np.int32), np.empty(len(nodes), np.int64)
    by_topic = np.zeros(len(mine) + 1, np.int64)
    count, at = 0, 0
    starts[0] = 0
    for u in nodes:
        if usable[u] and u != subject:
            for topic in profiles.topics[profiles.starts[u] : profiles.starts[u + 1]]:
                if mark[topic] > 0:
                    shared[at] = mark[topic] - 1
                    by_topic[mark[topic]] += 1
                    at += 1
            if at > starts[count]:
                who[count], ties[count] = u, np.int64(absorb(absorb(state, BACKUP_TIES), u) >> _33)
                count += 1
                starts[count] = at
    for topic in mine:
        mark[topic] = 0
    for i in range(len(mine)):
        by_topic[i + 1] += by_topic[i]
    cursor, able = by_topic[:-1].copy(), np.empty(at, np.int32)
    for i in range(count):
        for topic in shared[starts[i] : starts[i + 1]]:
            able[cursor[topic]] = i
            cursor[topic] += 1
    missing = np.full(len(mine), wanted, np.int32)
    gain = (starts[1 : count + 1] - starts[:count]).astype(np.int64)  # of each: topics it wants that are missing
    open_topics, left, size, draws = np.arange(len(mine)).astype(np.int32), len(mine) if wanted > 0 else 0, 0, 0
    where = np.arange(len(mine)).astype(np.int32)  # topic → its place in `open_topics`
    while left > 0:
        best, key = NOBODY, np.int64(0)
        topic = open_topics[0]
        if rule == PRIMAL_DUAL:
            topic = open_topics[below(absorb(state, draws), left)]
            draws += 1
            for i in able[by_topic[topic] : by_topic[topic + 1]]:
                if gain[i] > 0 and gain[i] << 31 | ties[i] > key:
                    best, key = i, gain[i] << 31 | ties[i]
        else:
            for i in range(count):
                if gain[i] > 0 and gain[i] << 31 | ties[i] > key:
                    best, key = i, gain[i] << 31 | ties[i]
            if best == NOBODY:
                break
        if best != NOBODY:
            out[size] = who[best]
            size += 1
            gain[best] = np.int64(-(2**40))  # taken
            for t in shared[starts[best] : starts[best + 1]]:
                missing[t] -= 1
                if missing[t] == 0:
                    left = _close(t, left, open_topics, where)
                    for i in able[by_topic[t] : by_topic[t + 1]]:
                        gain[i] -= 1
        else:
            left = _close(topic, left, open_topics, where)  # no more subscribers
    coverage = 0
    for t in range(len(mine)):
        coverage += wanted - max(missing[t], 0)
    return Cover(size, coverage, coverage == wanted * len(mine))


@njit
def _close(topic: int, left: int, open_topics: Columns, where: Columns) -> int:
    """Swap the topic out of the first `left` open ones; returns how many remain."""
    if where[topic] >= left:
        return left
    last = open_topics[left - 1]
    open_topics[where[topic]], open_topics[left - 1] = last, topic
    where[last], where[topic] = where[topic], left - 1
    return left - 1


@njit
def offer_view(node: int, ring: Ring, backups: Backups, views: Views, into: Candidates) -> None:
    """`getView` (Algorithm 4): the backup sets and neighbours that the node keeps for its predecessors.

    Nobody asks when they were last heard, so any number serves for that.
    """
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
def view_room(node: int, ring: Ring, backups: Backups, views: Views) -> int:
    """At most so many nodes are in its view."""
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
def view_sizes(first: int, last: int, ring: Ring, backups: Backups, views: Views, out: NDArray[np.int64]) -> None:
    """Distinct nodes in the views of the nodes first … last-1 that are on the ring."""
    for node in range(first, last):
        out[node] = 0
        if views.alive[node] and ring.place[node] != NOBODY:
            into = new_candidates(view_room(node, ring, backups, views))
            start_over(into, len(into.nodes))
            offer_view(node, ring, backups, views, into)
            out[node] = into.size[0]


@njit
def choose_partners(
    seed: int, now: int, first: int, last: int, ring: Ring, backups: Backups, views: Views, partner: Columns
) -> None:
    """A random node of the view; a node with an empty view asks one of its samples (Algorithm 3, line 2)."""
    for p in range(first, last):
        partner[p] = NOBODY
        if not views.alive[p] or ring.place[p] == NOBODY:
            continue
        known = new_candidates(view_room(p, ring, backups, views))
        start_over(known, len(known.nodes))
        offer_view(p, ring, backups, views, known)
        q = NOBODY
        if known.size[0] > 0:
            q = known.nodes[below(draw(seed, now, p, EXCHANGE_PARTNER), known.size[0])]
        if q in (NOBODY, p):
            q = one_of(views.cache[p], seed, now, p, EXCHANGE_PARTNER)
        if q != NOBODY and q != p and views.alive[q] and ring.place[q] != NOBODY:
            partner[p] = q


@njit
def exchange_round(
    seed: int,
    now: int,
    nodes: tuple[int, int],
    wanted: Columns,
    rule: int,
    usable: NDArray[np.bool_],
    ring: Ring,
    backups: Backups,
    views: Views,
    profiles: Profiles,
    contacts: Contacts,
    topic_count: int,
    out: Backups,
    buffer_size: NDArray[np.int64],
) -> None:
    """`selectView` (Algorithm 4) of the nodes first … last-1, after one exchange of buffers with partner and callers.

    Whoever is chosen is asked for its topics, so those who do not answer (`usable`) are not chosen. `buffer_size` is
    how many descriptors each node sends.
    """
    partner, starts, who = contacts
    mark, size = np.zeros(topic_count, np.int32), len(ring.listed)
    for v in range(nodes[0], nodes[1]):
        if not views.alive[v] or ring.place[v] == NOBODY:
            continue
        cache = views.cache.shape[1]
        room = view_room(v, ring, backups, views) + cache + 1
        if partner[v] != NOBODY:
            room += view_room(partner[v], ring, backups, views) + cache + 1
        for q in who[starts[v] : starts[v + 1]]:
            room += view_room(q, ring, backups, views) + cache + 1
        known = new_candidates(room)
        start_over(known, room)
        _offer_buffer(v, ring, backups, views, known)
        buffer_size[v] = known.size[0]
        if partner[v] != NOBODY:
            _offer_buffer(partner[v], ring, backups, views, known)
        for q in who[starts[v] : starts[v + 1]]:
            _offer_buffer(q, ring, backups, views, known)
        rank = 0
        for step in range(1, size):
            if rank == backups.keeper.shape[0]:
                break
            subject = ring.listed[(ring.place[v] - step) % size]
            row = out.nodes[rank, out.starts[subject] : out.starts[subject + 1]]
            state = absorb(absorb(stream(seed, now, v), BACKUP_TOPICS), subject)
            made = build_backups(
                subject, wanted[subject], rule, state, known.nodes[: known.size[0]], usable, profiles, mark, row
            )
            out.size[rank, subject], out.coverage[rank, subject] = made.size, made.coverage
            out.complete[rank, subject] = made.complete
            grew = made.coverage > backups.coverage[rank, subject]
            out.gained[rank, subject] = now if grew else backups.gained[rank, subject]
            rank += ring.present[subject]


@njit
def _offer_buffer(node: int, ring: Ring, backups: Backups, views: Views, into: Candidates) -> None:
    """Algorithm 3, line 3: the node itself, its view and its samples."""
    itself = np.full(1, node, np.int32)
    offer_all(into, itself, itself, 0, NOBODY)
    offer_view(node, ring, backups, views, into)
    offer_all(into, views.cache[node], views.cache[node], 0, NOBODY)
