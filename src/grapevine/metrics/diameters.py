"""The longest shortest paths of topics: inside a topic's subscribers, and by way of any node.

Theory. Both are found exactly, in one of two ways, or first the one and then the other.

Bounds (Takes & Kosters 2011). A search from one member tells how far the farthest is from it, f, and how far any other
one is, h. The longest path of that other one is not longer than f + h, nor shorter than h and f - h. Who cannot have a
longer path than the longest so far is not searched from. Of the others, in turn the one that may have the longest, and
the one that may be in the middle, whose search tells most about all. So a few searches suffice where there is a middle:
in trees, rings and wherever paths are long.

Many searches at once (Then et al. 2014). In overlays of many random links there is no middle: nearly everybody is as
far from the farthest as anybody, and bounds spare no searches. But then paths are short, and 64 searches can share
every look at a link: a node has a word with a bit for each search that has reached it, and in one hop it gets the bits
of its neighbours' words. So 64 searches look at every link as often as the longest path has hops.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts, count_rows, fill_rows
from grapevine.kernels.jit import njit
from grapevine.kernels.topic_graph import Scratch, leave, new_scratch, open_topic, spread

Words = NDArray[np.uint64]

_0, _1, _ALL = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)
_AT_ONCE = 64  # searches: the bits of a word
_ONE_BY_ONE = 16  # searches before it is clear that there is no middle
_LONG = 32  # hops from which on 64 searches at once are not worth it


@njit
def topic_diameters(
    topics: Columns,
    subscribers: tuple[Starts, Columns],
    links: tuple[Starts, Columns],
    alive: NDArray[np.bool_],
    out: NDArray[np.int64],
) -> None:
    """The longest shortest path between subscribers of each topic, within its clusters.

    A topic in several clusters has no finite diameter: whoever compares diameters leaves it out.
    """
    starts, nodes = subscribers
    graph = new_scratch(len(alive))
    cluster, queue = np.empty(len(alive), np.int32), np.empty(len(alive), np.int32)
    for at in range(len(topics)):
        members = nodes[starts[topics[at]] : starts[topics[at] + 1]]
        graph = open_topic(members, links, alive, graph)
        found, room = np.full(len(members), -1, np.int32), np.full((3, len(members)), -1, np.int32)
        words = np.empty((3, len(members)), np.uint64)
        out[at] = 0
        for i in range(len(members)):
            if alive[members[i]] and found[i] < 0:
                reached, _ = spread(i, graph, found, cluster)
                out[at] = _diameter(cluster[:reached], out[at], graph, room, words, queue)
        leave(members, graph)


@njit
def _diameter(
    cluster: Columns, longest: int, graph: Scratch, room: NDArray[np.int32], words: Words, queue: Columns
) -> int:
    """The longest shortest path in a cluster, or `longest` if that is longer. The first row of `room` is -1 before and
    after."""
    hops, least, most = room
    for i in cluster:
        least[i], most[i] = 0, len(cluster) - 1
    searches = 0
    while searches < _ONE_BY_ONE or longest >= _LONG:
        root, middle = -1, searches % 2 == 0
        for i in cluster:
            if most[i] > longest and (root < 0 or (least[i] < least[root] if middle else most[i] > most[root])):
                root = i
        if root < 0:
            return longest
        _, far = spread(root, graph, hops, queue)
        longest = max(longest, far)
        for i in cluster:
            least[i], most[i] = max(least[i], hops[i], far - hops[i]), min(most[i], far + hops[i])
            hops[i] = -1
        searches += 1
    at = 0
    while at < len(cluster):
        roots = 0
        while at < len(cluster) and roots < _AT_ONCE:
            if most[cluster[at]] > longest:
                queue[roots] = cluster[at]
                roots += 1
            at += 1
        _start(queue[:roots], cluster, words)
        hop = 0
        while _advance(cluster, graph.starts, graph.edges, words, hop):
            hop += 1
        longest = max(longest, hop)
    return longest


@njit
def overlay_diameters(
    topics: Columns,
    subscribers: tuple[Starts, Columns],
    links: tuple[Starts, Columns],
    alive: NDArray[np.bool_],
    out: NDArray[np.int64],
) -> None:
    """The longest shortest path between online subscribers of each topic by way of any online node, subscriber or not;
    -1 where some of them do not reach each other. One search from every subscriber, for all of its topics."""
    starts, nodes = subscribers
    count = 0
    for topic in topics:
        count += starts[topic + 1] - starts[topic]
    whose, asked = np.empty(count, np.int32), np.empty(count, np.int32)
    count = 0
    for at in range(len(topics)):
        for p in nodes[starts[topics[at]] : starts[topics[at] + 1]]:
            whose[count], asked[count] = p, at
            count += 1
    own_starts = count_rows(whose, len(alive))
    own = fill_rows(whose, asked, own_starts)
    online = np.flatnonzero(alive).astype(np.int32)
    roots = online[own_starts[online + 1] > own_starts[online]]
    words, wanted = np.zeros((3, len(alive)), np.uint64), np.empty(len(topics), np.uint64)
    out[:] = 0
    for first in range(0, len(roots), _AT_ONCE):
        some = roots[first : first + _AT_ONCE]
        _start(some, online, words)
        wanted[:] = _0  # by topic, the searches that began at a subscriber
        for bit in range(len(some)):
            for at in own[own_starts[some[bit]] : own_starts[some[bit] + 1]]:
                wanted[at] |= _1 << np.uint64(bit)
        hop = 0
        while _advance(online, links[0], links[1], words, hop):
            hop += 1
            came = words[1 + hop % 2]
            for q in online:
                if came[q] != _0:
                    for at in own[own_starts[q] : own_starts[q + 1]]:
                        if 0 <= out[at] < hop and came[q] & wanted[at] != _0:
                            out[at] = hop
        for q in online:
            if words[0, q] != _ALL:
                for at in own[own_starts[q] : own_starts[q + 1]]:
                    if ~words[0, q] & wanted[at] != _0:
                        out[at] = -1


@njit
def _start(roots: Columns, everybody: Columns, words: Words) -> None:
    """Begin searches, a bit each, from at most 64 different roots. In the first row of `words` are the searches that
    have reached a node, and all bits that are none; in the second and third, in turn, those that came with a hop."""
    unused = _ALL << np.uint64(len(roots)) if len(roots) < _AT_ONCE else _0
    for p in everybody:
        words[0, p], words[1, p] = unused, _0
    for bit in range(len(roots)):
        words[1, roots[bit]] = _1 << np.uint64(bit)
        words[0, roots[bit]] |= _1 << np.uint64(bit)


@njit
def _advance(everybody: Columns, starts: Starts, edges: Columns, words: Words, hop: int) -> bool:
    """One hop more of all searches, after so many; whether any of them reached somebody.

    Links lead to members of `everybody` alone, or to nodes whose words are 0 for good.
    """
    seen, here, there = words[0], words[1 + hop % 2], words[2 - hop % 2]
    moved = _0
    for p in everybody:
        new, missing = _0, ~seen[p]
        if missing != _0:
            for at in range(starts[p], starts[p + 1]):
                new |= here[edges[at]]
            new &= missing
            seen[p] |= new
            moved |= new
        there[p] = new
    return moved != _0
