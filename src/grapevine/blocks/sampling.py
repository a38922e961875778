"""Newscast peer sampling (Jelasity & Montresor, ICDCS 2004; Vitis §IV uses it for all systems).

Every round a node exchanges its cache with a random member of it; both keep the freshest descriptors of the union,
among them a new one of each other. A round answers from its start: all exchanges of a node happen at once.

Caches are sorted by freshness, so the merge goes age by age over all of them and stops at the age that fills the new
one; in that age a hash decides, drawn anew every round. Half of all entries are never looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import NOBODY, SAMPLE_PARTNER, SAMPLE_TIES, Views, one_sample
from grapevine.kernels.bits import ask_for
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import borrowing, inlined, njit
from grapevine.kernels.lanes import LANES, count_above, keep_fresh
from grapevine.kernels.rng import absorb, draw, stream

_33, _7, _ONE = np.uint64(33), np.uint64(7), np.uint64(1)
_STAMPS = 2048  # a power of two; 16 kB, so that they stay in the nearest cache
_32, _LAST, _UPPER = np.uint64(32), np.uint64(_STAMPS - 1), np.uint64(0xFFFFFFFF00000000)


class _Merge(NamedTuple):
    """Room for the merge of one node."""

    sources: Columns  # the rows of those whose caches are merged
    ends: NDArray[np.uint64]  # by source: its first entry that has not been looked at
    nodes: Columns  # what was found, the freshest first
    heard: Columns
    keys: NDArray[np.int64]  # of those of the last age
    winners: Columns  # these, by descending keys
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
    room = (most + 2) * (size + 1) + 16
    scratch = _Merge(
        np.empty(most + 2, np.int32),
        np.empty(most + 2, np.uint64),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.empty(room, np.int32),
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
        at = np.uint64(p) * np.uint64(size)
        for i in range(np.uint64(kept)):
            new[0][at + i], new[1][at + i] = scratch.nodes[i], scratch.heard[i]
        for i in range(np.uint64(kept), np.uint64(size)):
            new[0][at + i] = NOBODY


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
    """The freshest descriptors of all sources' caches, after new ones of the sources but the first, into `nodes` and
    `heard` of the scratch in descending freshness; returns how many. The node itself is left out.

    `me` are the node and a number above 0 that no other has. Sources are rows, of the nodes `whose`; `sizes` are their
    number and the size of a cache.
    """
    sources, ends, nodes, heard, _, _, stamps = scratch
    (old, old_heard), count, size = caches, np.uint64(sizes[0]), np.uint64(sizes[1])
    mine = np.uint64(me[1]) << _32
    stamps[np.uint64(me[0]) & _LAST] = mine | np.uint64(me[0])
    found = np.uint64(0)
    for i in range(count):
        ends[i] = np.uint64(sources[i]) * size
        if i > 0:
            heard[found] = now
            found = _add(whose[sources[i]], me[0], mine, stamps, nodes, found)
    before = np.uint64(0)  # where the last age begins; so many may have called that there is no room for others
    while found < size:
        level = np.int32(-1)
        for i in range(count):
            end = (np.uint64(sources[i]) + _ONE) * size
            at = min(ends[i], end - _ONE)
            there = (ends[i] < end) & (old[at] != NOBODY)
            level = max(level, old_heard[at] if there else np.int32(-1))
        if level < 0:
            return int(np.int64(found))
        before, last = found, np.int64(found)
        for i in range(count):  # all of this age, one source after the other
            at, end = np.int64(ends[i]), np.int64(np.uint64(sources[i]) + _ONE) * np.int64(size)
            more = LANES
            while more == LANES and at < end:
                more = keep_fresh(old, old_heard, at, end - at, level, NOBODY, nodes, last) - last
                at, last = at + more, last + more
            ends[i] = np.uint64(at)
        for i in range(before, np.uint64(last)):
            heard[i] = level
            found = _add(nodes[i], me[0], mine, stamps, nodes, found)
    if found > size:
        _draw_lots(ties, before, found, size, scratch)
    return int(np.int64(size))


@inlined
def _add(
    node: np.int32, but: np.int32, mine: np.uint64, stamps: NDArray[np.uint64], nodes: Columns, found: np.uint64
) -> np.uint64:
    """Append a node unless it is there, or is `but`; returns how many there are then.

    Nothing is decided by a jump, since half of them would be guessed wrong: a node that is refused stands behind the
    last one until the next comes. Only where another one of this list has the same place among the stamps, which is
    rare, all are looked at.
    """
    place, stamp = np.uint64(node) & _LAST, mine | np.uint64(node)
    there = stamps[place]
    known = there == stamp
    if not known and there & _UPPER == mine:
        known = node == but
        for i in range(found):
            known |= nodes[i] == node
    else:
        stamps[place] = stamp
    nodes[found] = node
    return found + np.uint64(not known)


@inlined
def _draw_lots(ties: np.uint64, before: np.uint64, found: np.uint64, size: np.uint64, scratch: _Merge) -> None:
    """Of the nodes from `before` on, all of one age, those of the largest hashes stay, in descending order.

    A node's place is the number of larger keys: comparing all with all takes no jumps, and there are about fifteen.
    """
    nodes, keys, winners, count = scratch.nodes, scratch.keys, scratch.winners, found - before
    for i in range(count):
        keys[i] = np.int64(absorb(ties, nodes[before + i]) >> _33) << 32 | np.int64(count - i)
    for i in range(count, count + _7):
        keys[i] = 0
    for i in range(count):
        place = 0
        for at in range(0, np.int64(count), LANES):
            place += count_above(keys, at, keys[i])
        winners[np.uint64(place)] = nodes[before + i]
    for i in range(size - before):
        nodes[before + i] = winners[i]


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
