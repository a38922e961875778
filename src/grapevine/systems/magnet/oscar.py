"""Oscar: fingers for a ring whose ids are skewed (Girdzijauskas et al.; Magnet §2.2, Fig. 1).

Long links that are drawn by distance between ids fail when ids crowd: they fall into the gaps. Oscar draws them by
distance in nodes. A node samples the others by random walks and takes the median, in clockwise order from itself; then
it samples the half before the median, and so on. The medians cut the ring into partitions, each half as large as the
one before. A finger is a random node of a random partition, which is the harmonic law over ranks, and makes a small
world. Of two nodes that a finger may take (the power of two choices) the one with the closer interests is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.profiles import Marks, Profiles, mark, new_marks, utility
from grapevine.blocks.small_world import RING_SLOTS, Ids, hop_below
from grapevine.blocks.views import FINGERS, NOBODY, Views
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import clockwise
from grapevine.kernels.rng import absorb, below, stream, unit

MOST_PARTITIONS = 64
TRIES = 4  # walks for a finger before its slot stays empty: the ring may be too small for so many
_ALL = np.uint64(2**64 - 1)


class Walks(NamedTuple):
    """How nodes sample others, and what walks go over."""

    per_median: int  # walks to estimate a median
    length: int  # steps of a walk
    choices: int  # nodes from which a finger takes the one with the closest interests
    ids: Ids
    starts: Starts  # links of all nodes, both ways, as rows
    links: Columns


class Partitions(NamedTuple):
    """The ring as one node sees it: partition i holds the nodes from borders[i] up to borders[i - 1] steps after it,
    the first up to the whole ring."""

    borders: NDArray[np.uint64]
    known: Columns  # one node of each partition


@njit
def walk(state: np.uint64, origin: np.uint64, span: tuple[np.uint64, np.uint64], start: int, walks: Walks) -> int:
    """Where a random walk from `start` ends that never leaves the ids at `span` steps after the origin (the first
    included, the last not). The Metropolis rule makes every node there equally likely in the long run."""
    rows, columns, ids = walks.starts, walks.links, walks.ids
    at = start
    for step in range(walks.length):
        bits = absorb(state, step)
        degree = rows[at + 1] - rows[at]
        if degree == 0:
            return at
        q = columns[rows[at] + below(bits, degree)]
        away = clockwise(origin, ids[q])
        if span[0] <= away < span[1]:
            other = rows[q + 1] - rows[q]
            if other <= degree or unit(absorb(bits, 1)) * other < degree:
                at = int(q)
    return at


@njit
def cut(u: int, state: np.uint64, walks: Walks, out: Partitions) -> int:
    """The partitions of the ring as u sees it, into `out`; returns how many. None when all walks come back to u."""
    borders, known, ids = out.borders, out.known, walks.ids
    count, limit = 0, _ALL
    away, found = np.empty(walks.per_median, np.uint64), np.empty(walks.per_median, np.int32)
    while count < len(borders):
        size = 0
        for i in range(walks.per_median):
            bits = absorb(absorb(state, count), i)
            q = walk(bits, ids[u], (np.uint64(0), limit), u, walks)
            if q != u:
                found[size], away[size] = q, clockwise(ids[u], ids[q])
                size += 1
        if size == 0:
            break
        middle = np.argsort(away[:size])[size // 2]
        borders[count], known[count] = away[middle], found[middle]
        limit = away[middle]
        count += 1
    return count


@njit
def rewire(
    seed: int,
    now: int,
    nodes: tuple[int, int],
    walks: Walks,
    views: Views,
    profiles: Profiles,
    out: tuple[Columns, Columns],
) -> int:
    """New fingers of the nodes first … last-1 into the slots behind the ring's; no node is a finger twice.

    `out` has the shapes of the tables' links and `heard`. A slot stays empty when `TRIES` walks found nobody new.
    Returns how many walks it took.
    """
    made = 0
    marks = new_marks(profiles)
    partitions = Partitions(np.empty(MOST_PARTITIONS, np.uint64), np.empty(MOST_PARTITIONS, np.int32))
    fingers, heard = out
    for u in range(nodes[0], nodes[1]):
        if not views.alive[u]:
            continue
        a, b = views.starts[u], views.starts[u + 1]
        state = absorb(stream(seed, now, u), FINGERS)
        count = cut(u, state, walks, partitions)
        made += walks.per_median * min(count + 1, MOST_PARTITIONS)  # the last median was not found
        if walks.choices > 1:
            mark(u, profiles, marks)
        for slot in range(a + RING_SLOTS, b):
            fingers[slot] = NOBODY
            for attempt in range(TRIES):
                if count == 0:
                    break
                bits = absorb(absorb(state, MOST_PARTITIONS + slot - a), attempt)
                q = _pick(u, bits, walks, (count, partitions), profiles, marks)
                made += walks.choices
                if not (fingers[a:slot] == q).any():
                    fingers[slot], heard[slot] = q, now
                    break
    return made


@njit
def _pick(u: int, bits: np.uint64, walks: Walks, cuts: tuple[int, Partitions], profiles: Profiles, marks: Marks) -> int:
    """A random node of a random partition; of several the one with the closest interests, the first found of equals.

    `cuts` is what `cut` found, and the topics of u are marked where interests matter.
    """
    count, partitions = cuts
    borders, known = partitions.borders, partitions.known
    i = below(absorb(bits, 0), count)
    span = borders[i], borders[i - 1] if i > 0 else _ALL
    best, most = NOBODY, -1.0
    for choice in range(walks.choices):
        q = walk(absorb(bits, 1 + choice), walks.ids[u], span, known[i], walks)
        alike = utility(u, q, profiles, marks) if walks.choices > 1 else 0.0
        if alike > most:
            best, most = q, alike
    return best


@njit
def mean_route(seed: int, routes: int, fresh: int, online: Columns, ids: Ids, views: Views) -> float:
    """Mean hops of greedy routes between random online nodes; those that end nowhere do not count; NaN when none
    arrived.

    For measurements (`bench/oscar.py`) and tests. Links last heard before the round `fresh` are not used.
    """
    total, done = 0, 0
    for i in range(routes):
        p = int(online[below(absorb(stream(seed, FINGERS, i), 0), len(online))])
        target = int(online[below(absorb(stream(seed, FINGERS, i), 1), len(online))])
        hops = 0
        while p != target and p != NOBODY:
            p = hop_below(p, target, fresh, ids, views)
            hops += 1
        if p == target:
            total += hops
            done += 1
    return total / done if done else np.nan
