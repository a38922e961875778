"""Whom nodes want: their nearest nodes on the ring, and the friends that would win most (`rules`, 4).

A node that looks for friends in a round (`Look.is_due`) reads what it holds itself, and what its partner and some of
its callers hold: links, samples and prospects, and for the ring alone their backups. All of it is of the round's start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import NOBODY, one_of, one_sample
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import borrowing, inlined, njit
from grapevine.kernels.ring import clockwise
from grapevine.kernels.rng import below, draw
from grapevine.systems.trellis.rules import gain_in_topic, is_calm, link_tie
from grapevine.systems.trellis.state import Flags, Labels, Memory, Overlay, slot_of

# Salts of draws; blocks/views has those of the others.
PHASE, RING_SIDE, LINK, SAMPLE, CALLER, TURN = range(50, 56)
_FARTHEST = np.uint64(2**64 - 1)
_ONE = np.uint64(1)


class Lists(NamedTuple):
    """What nodes hold beside links, each a row; NOBODY: a free entry."""

    cache: NDArray[np.int32]
    backups: NDArray[np.int32]  # the nearest after it, then the nearest before it
    prospects: NDArray[np.int32]  # by descending gain


class Look(NamedTuple):
    """Who looks for friends in this round, and at whose lists."""

    seed: int
    is_due: Flags
    partner: Columns
    starts: Starts  # callers of every node, as rows
    callers: Columns
    most_callers: int


class Taste(NamedTuple):
    """What makes a friend: labels as they were told, and the parameters of the gain."""

    labels: Labels
    memory: Memory
    enough: int
    spare: float
    surplus: float
    patience_rounds: int
    calm_rounds: int


class Wishes(NamedTuple):
    """What comes of it, by node."""

    ring: NDArray[np.int32]  # [node, side]: whom it wants as successor and predecessor; NOBODY: it has them
    friends: NDArray[np.int32]  # [node, i]: whom it asks, the best first
    gains: NDArray[np.float64]  # what they are worth to it
    lists: Lists  # the new backups and prospects; the cache is that of sampling


class Room(NamedTuple):
    """What is worked with for one node at a time."""

    mark: Columns  # by node: for whom it was put into the pool last
    pool: Columns
    position: Columns  # by topic: the node's entry; NOBODY between two nodes
    best: NDArray[np.float64]  # gains of the prospects
    ties: NDArray[np.uint64]
    steps: NDArray[np.uint64]  # to the backups of one side


@njit
def choose_partners(nodes: tuple[int, int], overlay: Overlay, look: Look, cache: NDArray[np.int32]) -> None:
    """Whom the nodes first … last-1 exchange lists with, into `look.partner`: in turns a ring neighbour, any neighbour
    and a sample. Whoever is gone does not answer (NOBODY)."""
    for p in range(nodes[0], nodes[1]):
        look.partner[p] = NOBODY
        if not overlay.alive[p] or not look.is_due[p]:
            continue
        turn, q = overlay.now % 3, np.int64(NOBODY)
        if turn == 0:
            after, before = ring_neighbours(p, overlay)
            q = after if before == NOBODY or draw(look.seed, overlay.now, p, RING_SIDE) & _ONE else before
        elif turn == 1:
            q = one_of(overlay.links[p], 0, overlay.links.shape[1], draw(look.seed, overlay.now, p, LINK))
        if q == NOBODY:
            q = one_sample(cache, p, draw(look.seed, overlay.now, p, SAMPLE))
        if q != NOBODY and overlay.alive[q]:
            look.partner[p] = q


@njit
def ring_neighbours(p: int, overlay: Overlay) -> tuple[int, int]:
    """Of p's links the nearest clockwise and the nearest counter-clockwise; one link alone is only the first."""
    ids = overlay.profiles.ids
    after, before, least, back = NOBODY, NOBODY, _FARTHEST, _FARTHEST
    for s in range(overlay.links.shape[1]):
        q = int(overlay.links[p, s])
        if q != NOBODY:
            if clockwise(ids[p], ids[q]) < least:
                after, least = q, clockwise(ids[p], ids[q])
            if clockwise(ids[q], ids[p]) < back:
                before, back = q, clockwise(ids[q], ids[p])
    return after, before if before != after else NOBODY


@njit
def wish(nodes: tuple[int, int], overlay: Overlay, look: Look, taste: Taste, lists: Lists, out: Wishes) -> None:
    """What the nodes first … last-1 want. Who does not look keeps its lists and asks nobody."""
    out.ring[nodes[0] : nodes[1]], out.friends[nodes[0] : nodes[1]] = NOBODY, NOBODY
    out.lists.backups[nodes[0] : nodes[1]] = lists.backups[nodes[0] : nodes[1]]
    out.lists.prospects[nodes[0] : nodes[1]] = lists.prospects[nodes[0] : nodes[1]]
    _wish_all(nodes, overlay, look, taste, lists, _new_room(overlay, look, lists), out)


@njit
def _new_room(overlay: Overlay, look: Look, lists: Lists) -> Room:
    most = overlay.links.shape[1] + lists.cache.shape[1] + lists.prospects.shape[1] + lists.backups.shape[1] + 1
    half = lists.backups.shape[1] // 2
    prospects = lists.prospects.shape[1]
    return Room(
        np.full(len(overlay.alive), NOBODY, np.int32),
        np.empty((2 + look.most_callers) * most, np.int32),
        np.full(len(overlay.profiles.weights), NOBODY, np.int32),
        np.empty(prospects, np.float64),
        np.empty(prospects, np.uint64),
        np.empty(half, np.uint64),
    )


@borrowing
def _wish_all(
    nodes: tuple[int, int], overlay: Overlay, look: Look, taste: Taste, lists: Lists, room: Room, out: Wishes
) -> None:
    for p in range(nodes[0], nodes[1]):
        if look.is_due[p] and overlay.alive[p]:
            friends, everybody = _gather(p, overlay, look, lists, room)
            _choose_backups(p, overlay, everybody, room, out)
            count = _choose_friends(p, overlay, taste, friends, room, out.lists.prospects)
            for i in range(min(out.friends.shape[1], count)):
                out.friends[p, i], out.gains[p, i] = out.lists.prospects[p, i], room.best[i]


@inlined
def _gather(p: int, overlay: Overlay, look: Look, lists: Lists, room: Room) -> tuple[int, int]:
    """All nodes that p hears of into the pool, each once and without itself: how many may be friends, and how many
    there are with those for the ring alone."""
    room.mark[p] = p
    first, callers = look.starts[p], look.starts[p + 1] - look.starts[p]
    taken = min(callers, look.most_callers)
    turn = below(draw(look.seed, overlay.now, p, CALLER), max(callers, 1))
    count, friends = 0, 0
    for ring in range(2):
        for j in range(-2, taken):
            q = int(p)
            if j == -1:
                q = int(look.partner[p])
            elif j >= 0:
                q = int(look.callers[first + (turn + j) % callers])
            if q == NOBODY:
                continue
            if ring == 0:
                count = _add(q, p, room, count)
                count = _add_all(overlay.links, q, p, room, count)
                count = _add_all(lists.cache, q, p, room, count)
                count = _add_all(lists.prospects, q, p, room, count)
            else:
                count = _add_all(lists.backups, q, p, room, count)
        if ring == 0:
            friends = count
    return friends, count


@inlined
def _add(q: int, p: int, room: Room, count: int) -> int:
    new = room.mark[q] != p
    if new:
        room.mark[q], room.pool[count] = p, q
    return count + 1 if new else count


@inlined
def _add_all(some: NDArray[np.int32], q: int, p: int, room: Room, count: int) -> int:
    """Add the row q of these."""
    for i in range(some.shape[1]):
        if some[q, i] != NOBODY:
            count = _add(some[q, i], p, room, count)
    return count


@inlined
def _choose_backups(p: int, overlay: Overlay, size: int, room: Room, out: Wishes) -> None:
    """The nearest nodes of the pool in both directions that answer; of those the first, unless it is linked, is
    wanted."""
    ids, backups, steps = overlay.profiles.ids, out.lists.backups, room.steps
    half = len(steps)
    for side in range(2):
        count = 0
        for i in range(size):
            x = room.pool[i]
            away = clockwise(ids[p], ids[x]) if side == 0 else clockwise(ids[x], ids[p])
            if (count == half and away >= steps[half - 1]) or not overlay.alive[x]:
                continue
            at = count if count < half else half - 1
            count = min(count + 1, half)
            while at > 0 and steps[at - 1] > away:
                steps[at], backups[p, side * half + at] = steps[at - 1], backups[p, side * half + at - 1]
                at -= 1
            steps[at], backups[p, side * half + at] = away, x
        for i in range(count, half):
            backups[p, side * half + i] = NOBODY
        nearest = backups[p, side * half]
        if nearest != NOBODY and slot_of(overlay.links, p, nearest) < 0:
            out.ring[p, side] = nearest


@inlined
def _choose_friends(p: int, overlay: Overlay, taste: Taste, size: int, room: Room, prospects: NDArray[np.int32]) -> int:
    """The best of the pool that are not linked, into p's row of prospects, and their gains; returns how many."""
    best, ties, most = room.best, room.ties, len(room.best)
    enter(p, overlay, room.position)
    count = 0
    for i in range(size):
        x = room.pool[i]
        gain = gain_of(x, p, overlay, taste, room.position)
        if gain <= 0.0 or (count == most and gain < best[most - 1]) or slot_of(overlay.links, p, x) >= 0:
            continue
        tie = link_tie(p, x)
        if count == most and gain == best[most - 1] and tie > ties[most - 1]:
            continue
        at = count if count < most else most - 1
        count = min(count + 1, most)
        while at > 0 and (best[at - 1] < gain or (best[at - 1] == gain and ties[at - 1] > tie)):
            best[at], ties[at], prospects[p, at] = best[at - 1], ties[at - 1], prospects[p, at - 1]
            at -= 1
        best[at], ties[at], prospects[p, at] = gain, tie, x
    for i in range(count, most):
        prospects[p, i] = NOBODY
    leave(p, overlay, room.position)
    return count


@inlined
def enter(p: int, overlay: Overlay, position: Columns) -> None:
    """Note by topic where p's entries are; `leave` forgets it."""
    for e in range(overlay.profiles.starts[p], overlay.profiles.starts[p + 1]):
        position[overlay.profiles.topics[e]] = e


@inlined
def leave(p: int, overlay: Overlay, position: Columns) -> None:
    """`position` is NOBODY everywhere again."""
    for e in range(overlay.profiles.starts[p], overlay.profiles.starts[p + 1]):
        position[overlay.profiles.topics[e]] = NOBODY


@inlined
def gain_of(x: int, p: int, overlay: Overlay, taste: Taste, position: Columns) -> float:
    """What a link to x would be worth to p, whose entries are noted in `position`."""
    profiles, labels, gain = overlay.profiles, taste.labels, 0.0
    for f in range(profiles.starts[x], profiles.starts[x + 1]):
        e = position[profiles.topics[f]]
        if e != NOBODY:
            joins = (
                labels.root[e] != labels.root[f]
                and is_calm(overlay.now, labels.changed[e], overlay.joined[p], taste.patience_rounds, taste.calm_rounds)
                and is_calm(overlay.now, labels.changed[f], overlay.joined[x], taste.patience_rounds, taste.calm_rounds)
            )
            gain += gain_in_topic(joins, int(taste.memory.neighbours[e]), taste.enough, taste.spare, taste.surplus)
    return gain
