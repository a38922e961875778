"""What an overlay looks like: ring, degrees, and per topic the clusters and diameters of its subscribers' graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts, count_rows, fill_rows
from grapevine.kernels.jit import njit
from grapevine.kernels.topic_graph import Scratch, leave, new_scratch, open_topic

_0, _1 = np.uint64(0), np.uint64(1)


def ring_correctness(
    ids: NDArray[np.uint64],
    alive: NDArray[np.bool_],
    successor: NDArray[np.int32],
    predecessor: NDArray[np.int32],
) -> float:
    """The share of online nodes whose successor and predecessor are the true ones among those online."""
    online = np.flatnonzero(alive)
    if len(online) < 2:
        return 1.0
    order = online[np.argsort(ids[online], kind="stable")]
    right = (successor[order] == np.roll(order, -1)) & (
        (predecessor[order] == np.roll(order, 1)) | (len(online) == 2)  # of two, one link serves both ways
    )
    return float(right.mean())


@njit
def topic_clusters(
    first: int,
    last: int,
    subscribers: tuple[Starts, Columns],
    links: tuple[Starts, Columns],
    alive: NDArray[np.bool_],
    counted: NDArray[np.bool_],
    out: NDArray[np.int64],
) -> None:
    """For the topics first … last-1: online subscribers that count, clusters (connected parts of all who are online)
    with such a subscriber, and the most of them in one cluster."""
    starts, nodes = subscribers
    graph = new_scratch(len(alive))
    queue = np.empty(len(alive), np.int32)
    for topic in range(first, last):
        members = nodes[starts[topic] : starts[topic + 1]]
        graph = open_topic(members, links, alive, graph)
        online, clusters, largest = 0, 0, 0
        hops = np.full(len(members), -1, np.int32)
        for i in range(len(members)):
            if alive[members[i]] and hops[i] < 0:
                reached, _ = _spread(i, graph, hops, queue)
                size = 0
                for j in queue[:reached]:
                    size += counted[members[j]]
                online += size
                clusters += size > 0
                largest = max(largest, size)
        out[topic, 0], out[topic, 1], out[topic, 2] = online, clusters, largest
        leave(members, graph)


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
        out[at] = 0
        for i in range(len(members)):
            if alive[members[i]] and found[i] < 0:
                reached, _ = _spread(i, graph, found, cluster)
                out[at] = _diameter(cluster[:reached], out[at], graph, room, queue)
        leave(members, graph)


@njit
def overlay_diameters(
    topics: Columns,
    subscribers: tuple[Starts, Columns],
    links: tuple[Starts, Columns],
    alive: NDArray[np.bool_],
    out: NDArray[np.int64],
) -> None:
    """The longest shortest path between online subscribers of each topic by way of any online node, subscriber or not.

    -1 where some of them do not reach each other. One search from every subscriber, for all of its topics at once: in
    such overlays nearly everybody is as far from the farthest as anybody, so bounds would spare no searches.
    """
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
    hops, queue = np.full(len(alive), -1, np.int32), np.empty(len(alive), np.int32)
    out[:] = 0
    for p in range(len(alive)):
        if not alive[p] or own_starts[p] == own_starts[p + 1]:
            continue
        reached = _search(p, links, alive, hops, queue)
        for at in own[own_starts[p] : own_starts[p + 1]]:
            for q in nodes[starts[topics[at]] : starts[topics[at] + 1]]:
                if alive[q] and out[at] >= 0:
                    out[at] = max(out[at], hops[q]) if hops[q] >= 0 else -1
        for q in queue[:reached]:
            hops[q] = -1


@njit
def _search(root: int, links: tuple[Starts, Columns], alive: NDArray[np.bool_], hops: Columns, queue: Columns) -> int:
    """Breadth-first search over all online nodes that marks `hops`; returns how many are in `queue` then."""
    starts, columns = links
    queue[0], hops[root] = root, 0
    head, tail = 0, 1
    while head < tail:
        p = queue[head]
        head += 1
        for q in columns[starts[p] : starts[p + 1]]:
            if alive[q] and hops[q] < 0:
                hops[q] = hops[p] + 1
                queue[tail] = q
                tail += 1
    return tail


@njit
def _diameter(cluster: Columns, longest: int, graph: Scratch, room: NDArray[np.int32], queue: Columns) -> int:
    """The longest shortest path in a cluster, or `longest` if that is longer.

    Theory (Takes & Kosters 2011). A search from one member tells how far the farthest is from it, f, and how far any
    other one is, h. The longest path of that other one is not longer than f + h, nor shorter than h and f - h. Who
    cannot have a longer path than the longest so far is not searched from. Of the others, in turn the one that may have
    the longest, and the one that may be in the middle, whose search tells most about all. So a few searches suffice
    where there is a middle, and no more than one from every member anywhere. The first row of `room` is -1 before and
    after.
    """
    hops, least, most = room
    for i in cluster:
        least[i], most[i] = 0, len(cluster) - 1
    middle = True
    while True:
        root = -1
        for i in cluster:
            if most[i] > longest and (root < 0 or (least[i] < least[root] if middle else most[i] > most[root])):
                root = i
        if root < 0:
            return longest
        _, far = _spread(root, graph, hops, queue)
        longest = max(longest, far)
        for i in cluster:
            least[i], most[i] = max(least[i], hops[i], far - hops[i]), min(most[i], far + hops[i])
            hops[i] = -1
        middle = not middle


@njit
def _spread(root: int, graph: Scratch, hops: Columns, queue: Columns) -> tuple[int, int]:
    """Breadth-first search that marks `hops`; returns how many were reached and how far the last one is."""
    queue[0], hops[root] = root, 0
    head, tail = _0, _1
    while head < tail:
        i = np.uint32(queue[head])
        head += _1
        for at in range(np.uint64(graph.starts[i]), np.uint64(graph.starts[i + 1])):
            j = np.uint32(graph.edges[at])
            if hops[j] < 0:
                hops[j] = hops[i] + 1
                queue[tail] = j
                tail += _1
    return int(tail), int(hops[queue[tail - _1]])
