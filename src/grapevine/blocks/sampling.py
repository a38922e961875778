"""Newscast peer sampling (Jelasity & Montresor, ICDCS 2004; Vitis §IV uses it for all systems).

Every round a node exchanges its cache with a random member of it; both keep the freshest descriptors of the union,
among them a new one of each other. A round answers from its start: all exchanges of a node happen at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.candidates import Candidates, new_candidates, offer_all, start_over
from grapevine.blocks.views import NOBODY, SAMPLE_PARTNER, SAMPLE_TIES, Views, one_of
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, draw, stream
from grapevine.kernels.topk import largest

_33 = np.uint64(33)


@njit
def choose_partners(seed: int, now: int, first: int, last: int, views: Views, partner: Columns) -> None:
    """Whom each of the nodes first … last-1 contacts in this round, into `partner`: a random member of its cache.

    A member that is gone does not answer: then the node has no partner (NOBODY) in this round.
    """
    for p in range(first, last):
        partner[p] = NOBODY
        if views.alive[p]:
            q = one_of(views.cache[p], seed, now, p, SAMPLE_PARTNER)
            if q != NOBODY and views.alive[q]:
                partner[p] = q


@njit
def merge_freshest(p: int, ties: np.uint64, views: Views, sources: Columns, news: Candidates) -> int:
    """The freshest descriptors of the sources' caches into `news`, in descending freshness; returns how many.

    `news` holds the new descriptors of the sources already. Caches are sorted by freshness, so the merge goes age by
    age and stops at the age that fills the cache; in that age the hash decides, drawn anew every round.
    """
    size = int(views.cache.shape[1])
    position = np.zeros(len(sources), np.int64)  # in each source's cache
    before = np.int64(0)
    while news.size[0] < size:
        level = np.int64(-1)
        for i in range(len(sources)):
            if position[i] < size and views.cache[sources[i], position[i]] != NOBODY:
                level = max(level, np.int64(views.cache_heard[sources[i], position[i]]))
        if level < 0:
            return min(size, int(news.size[0]))
        before = news.size[0]
        for i in range(len(sources)):
            q, start = sources[i], position[i]
            end = start
            while end < size and views.cache[q, end] != NOBODY and views.cache_heard[q, end] == level:
                end += 1
            position[i] = end
            if end > start:
                offer_all(news, views.cache[q, start:end], views.cache_heard[q, start:end], 0, p)
    if news.size[0] > size:
        last = news.nodes[before : news.size[0]].copy()
        keys = np.empty(len(last), np.int64)
        for i in range(len(last)):
            keys[i] = np.int64(absorb(ties, last[i]) >> _33)
        chosen = np.empty(size - before, np.int32)
        largest(keys, len(chosen), chosen)
        news.nodes[before:size] = last[chosen]
    return size


@njit
def sample_round(
    seed: int,
    now: int,
    nodes: tuple[int, int],
    views: Views,
    partner: Columns,
    callers: tuple[Starts, Columns],
    out: tuple[NDArray[np.int32], NDArray[np.int32]],
) -> None:
    """New caches of the nodes first … last-1 from the caches at the start of the round, into `out` (nodes, heard).

    `callers` are the rows of `group_contacts(partner)`. A node that is not alive gets an empty cache.
    """
    first, last = nodes
    cache, heard = out
    size = views.cache.shape[1]
    starts, who = callers
    most = 0
    for p in range(first, last):
        most = max(most, starts[p + 1] - starts[p])
    sources, fresh = np.empty(most + 2, np.int32), np.full(most + 2, now, np.int32)
    news = new_candidates((most + 2) * (size + 1))
    for p in range(first, last):
        kept = 0
        if views.alive[p]:
            count = 1
            sources[0] = p
            if partner[p] != NOBODY:
                sources[1] = partner[p]
                count = 2
            for at in range(starts[p], starts[p + 1]):
                sources[count] = who[at]
                count += 1
            start_over(news, count * (size + 1))
            offer_all(news, sources[1:count], fresh[1:count], now, p)
            kept = merge_freshest(p, absorb(stream(seed, now, p), SAMPLE_TIES), views, sources[:count], news)
        cache[p, :kept], heard[p, :kept] = news.nodes[:kept], news.heard[:kept]
        cache[p, kept:] = NOBODY


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
