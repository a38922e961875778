"""Newscast peer sampling (Jelasity & Montresor, ICDCS 2004; Vitis §IV uses it for all systems).

Every round a node exchanges its cache with a random member of it; both keep the freshest descriptors of the union,
among them a new one of each other. A round answers from its start: all exchanges of a node happen at once.

Caches are sorted by freshness, so the merge goes age by age over all of them and stops at the age that fills the new
one; in that age a hash decides, drawn anew every round. Half of all entries are never looked at.

While it is merged, a descriptor is one word: the round in which its node was heard, above the node. Ages are taken, in
sixteen lanes, until there would be enough if no node came twice, and only then duplicates are removed, by stamps: one
long loop instead of several short ones, whose ends a processor cannot foresee. Where that leaves too few, it goes on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import NOBODY, SAMPLE_PARTNER, SAMPLE_TIES, Views, one_sample
from grapevine.kernels.bits import ask_for
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import borrowing, inlined, njit
from grapevine.kernels.lanes import LANES, WIDE, Words, count_above, draw_keys, join_alike, put_in_order, take_apart
from grapevine.kernels.rng import absorb, draw, stream

_ONE, _32, _LOWER = np.uint64(1), np.uint64(32), np.uint64(2**32 - 1)
_STAMPS = 4096  # a power of two; 32 kB, so that they stay in the nearest cache
_LAST = np.uint64(_STAMPS - 1)


class _Merge(NamedTuple):
    """Room for the merge of one node."""

    sources: Columns  # the rows of those whose caches are merged
    ends: NDArray[np.int64]  # by source: its first entry that has not been looked at
    heard_of: Words  # descriptors by descending freshness, in which a node may stand several times
    kept: Words  # the same, every node once
    keys: Words  # of those of the last age
    winners: Words  # these, by descending keys
    stamps: NDArray[np.uint64]  # by the last bits of a node: who was found, for whom


@borrowing
def choose_partners(seed: int, now: int, first: int, last: int, views: Views, partner: Columns) -> None:
    """Whom each of the rows first … last-1 contacts in this round, into `partner`: a random member of its cache.

    A member that is gone does not answer: then the node has no partner (NOBODY) in this round.
    """
    for p in range(first, last):
        partner[p] = NOBODY
        if views.alive[views.nodes[p]]:
            q = one_sample(views.cache, p, draw(seed, now, views.nodes[p], SAMPLE_PARTNER))
            if q != NOBODY and views.alive[q]:
                partner[p] = q


def sample_round(
    seed: int,
    now: int,
    rows: tuple[int, int],
    views: Views,
    partner: Columns,
    callers: tuple[Starts, Columns],
    out: tuple[NDArray[np.int32], NDArray[np.int32]],
) -> None:
    """New caches of the rows first … last-1 from the caches at the start of the round, into `out` (nodes, heard).

    `partner` has the row of each row's partner, or NOBODY, `callers` the rows of those that chose it
    (`group_contacts`). A node that is not alive gets an empty cache.
    """
    most, size = int(np.diff(callers[0][rows[0] : rows[1] + 1]).max(initial=0)), views.cache.shape[1]
    room = (most + 2) * (size + 1) + WIDE
    scratch = _Merge(
        np.empty(most + 2, np.int32),
        np.empty(most + 2, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(_STAMPS, np.uint64),
    )
    _sample_rows((seed, now), rows, views, partner, callers, scratch, out)


@borrowing
def _sample_rows(
    draws: tuple[int, int],
    rows: tuple[int, int],
    views: Views,
    partner: Columns,
    callers: tuple[Starts, Columns],
    scratch: _Merge,
    out: tuple[NDArray[np.int32], NDArray[np.int32]],
) -> None:
    (seed, now), (starts, who), size = draws, callers, views.cache.shape[1]
    old, new = (views.cache.reshape(-1), views.cache_heard.reshape(-1)), (out[0].reshape(-1), out[1].reshape(-1))
    for p in range(rows[0], rows[1]):
        kept, node = 0, views.nodes[p]
        if p + 1 < rows[1]:
            _ask_for_caches(p + 1, views, partner, starts, who)
        if views.alive[node]:
            count = 1
            scratch.sources[0] = p
            if partner[p] != NOBODY:
                scratch.sources[1] = partner[p]
                count = 2
            for at in range(starts[p], starts[p + 1]):
                scratch.sources[count] = who[at]
                count += 1
            ties = absorb(stream(seed, now, node), SAMPLE_TIES)
            kept = _merge((node, p - rows[0] + 1), now, ties, views.nodes, old, (count, size), scratch)
        at = p * size
        for i in range(0, kept, LANES):
            take_apart(scratch.kept, i, kept - i, new[0], new[1], at + i)
        for i in range(np.uint64(at + kept), np.uint64(at + size)):
            new[0][i] = NOBODY


@inlined
def _merge(
    me: tuple[np.int32, int],
    now: int,
    ties: np.uint64,
    whose: Columns,
    caches: tuple[Columns, Columns],
    sizes: tuple[int, int],
    scratch: _Merge,
) -> int:
    """The freshest descriptors of all sources' caches, after new ones of the sources but the first, into `kept` of the
    scratch in descending freshness; returns how many. The node itself is left out.

    `me` are the node and a number above 0 that no other has. Sources are rows, of the nodes `whose`; `sizes` are their
    number and the size of a cache.
    """
    sources, ends, heard_of, stamps = scratch.sources, scratch.ends, scratch.heard_of, scratch.stamps
    (old, old_heard), count, size = caches, np.uint64(sizes[0]), sizes[1]
    stamps[np.uint64(me[0]) & _LAST] = np.uint64(me[1]) << _32 | np.uint64(me[0])
    last, next_age = 0, -1
    for i in range(count):
        ends[i] = int(sources[i]) * size
        next_age = max(next_age, _age_at(ends[i], ends[i] + size, caches))
        heard_of[np.uint64(last)] = now << 32 | int(whose[sources[i]])
        last += 1
    age, found, first = now, 0, 1  # the first source is the node itself
    while True:
        while found + last - first < size and next_age >= 0:
            age, next_age = next_age, -1
            for i in range(count):
                at, end, more = ends[i], (int(sources[i]) + 1) * size, WIDE
                while more == WIDE:
                    more = join_alike(old, old_heard, at, end - at, age, heard_of, last)
                    at, last = at + more, last + more
                ends[i] = at
                next_age = max(next_age, _age_at(at, end, caches))
        found = _add_new(me, (first, last), found, scratch)
        first = last
        if found >= size or next_age < 0:
            break
    if found > size:
        _draw_lots(ties, age, found, size, scratch)
    return min(found, size)


@inlined
def _age_at(at: int, end: int, caches: tuple[Columns, Columns]) -> int:
    """When the entry `at` of a cache that ends there was heard; -1 if it has no such entry."""
    nodes, heard = caches
    if at >= end or nodes[np.uint64(at)] == NOBODY:
        return -1
    return int(heard[np.uint64(at)])


@inlined
def _add_new(me: tuple[np.int32, int], some: tuple[int, int], found: int, scratch: _Merge) -> int:
    """Append those of the descriptors first … last-1 to the `found` kept ones whose nodes are not there, nor are the
    node itself; returns how many there are then.

    Nothing is decided by a jump, since half of them would be guessed wrong: one that is refused stands behind the last
    until the next comes. Only where another node of this merge had the same stamp, which is rare, all are looked at.
    """
    heard_of, kept, stamps = scratch.heard_of, scratch.kept, scratch.stamps
    end, mine = np.uint64(found), np.uint64(me[1]) << _32
    for i in range(np.uint64(some[0]), np.uint64(some[1])):
        node = np.uint64(heard_of[i]) & _LOWER
        differs = stamps[node & _LAST] ^ (mine | node)
        stamps[node & _LAST] = mine | node
        kept[end] = heard_of[i]
        new = differs != np.uint64(0)
        if differs - _ONE < _LOWER:
            new = node != np.uint64(me[0])
            for k in range(end):
                new &= np.uint64(kept[k]) & _LOWER != node
        end += np.uint64(new)
    return int(np.int64(end))


@inlined
def _draw_lots(ties: np.uint64, age: int, found: int, size: int, scratch: _Merge) -> None:
    """Of the `found` kept descriptors those of this age, the last, make room until there are `size`: those of the
    largest hashes stay, in descending order."""
    kept, keys, winners, before = scratch.kept, scratch.keys, scratch.winners, 0
    for i in range(np.uint64(found), np.uint64(found + LANES)):
        kept[i] = 0
    for at in range(0, size, LANES):
        before += count_above(kept, at, (age + 1 << 32) - 1)
    for at in range(before, found, LANES):
        draw_keys(ties, kept, at, found, keys, at - before)
    for at in range(0, found - before, LANES):
        put_in_order(keys, at, found - before, kept, before, size - before, winners)
    for i in range(np.uint64(size - before)):
        kept[np.uint64(before) + i] = winners[i]


@inlined
def _ask_for_caches(p: int, views: Views, partner: Columns, starts: Starts, who: Columns) -> None:
    """Begin to load what will be read of other rows for p."""
    size = views.cache.shape[1]
    if partner[p] != NOBODY:
        ask_for(views.cache, np.int64(partner[p]) * size)
        ask_for(views.cache, np.int64(partner[p]) * size + size - 1)
        ask_for(views.cache_heard, np.int64(partner[p]) * size)
        ask_for(views.cache_heard, np.int64(partner[p]) * size + size - 1)
    for at in range(starts[p], starts[p + 1]):
        ask_for(views.cache, np.int64(who[at]) * size)
        ask_for(views.cache, np.int64(who[at]) * size + size - 1)
        ask_for(views.cache_heard, np.int64(who[at]) * size)
        ask_for(views.cache_heard, np.int64(who[at]) * size + size - 1)


@njit
def meet_at_random(seed: int, salt: int, node_count: int, cache: NDArray[np.int32]) -> None:
    """Fill every cache with random other nodes below `node_count`, no one twice: a network that starts all at once."""
    for p in range(node_count):
        taken, draws = 0, 0
        while taken < min(cache.shape[1], node_count - 1):
            q = np.int32(draw(seed, draws, p, salt) % np.uint64(node_count))
            draws += 1
            known = q == p
            for i in range(taken):
                known = known or cache[p, i] == q
            if not known:
                cache[p, taken] = q
                taken += 1
