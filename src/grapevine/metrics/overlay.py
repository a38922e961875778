"""What an overlay looks like: ring, degrees, and per topic the clusters and diameter of its subscribers' graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.topic_graph import Scratch, leave, new_scratch, open_topic


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
    """The longest shortest path between subscribers of each topic, within its clusters: a search from every member."""
    starts, nodes = subscribers
    graph = new_scratch(len(alive))
    queue = np.empty(len(alive), np.int32)
    for at in range(len(topics)):
        members = nodes[starts[topics[at]] : starts[topics[at] + 1]]
        graph = open_topic(members, links, alive, graph)
        out[at] = 0
        for i in range(len(members)):
            if alive[members[i]]:
                _, far = _spread(i, graph, np.full(len(members), -1, np.int32), queue)
                out[at] = max(out[at], far)
        leave(members, graph)


@njit
def _spread(root: int, graph: Scratch, hops: Columns, queue: Columns) -> tuple[int, int]:
    """Breadth-first search that marks `hops`; returns how many were reached and how far the last one is."""
    queue[0], hops[root] = root, 0
    head, tail = 0, 1
    while head < tail:
        i = queue[head]
        head += 1
        for j in graph.edges[graph.starts[i] : graph.starts[i + 1]]:
            if hops[j] < 0:
                hops[j] = hops[i] + 1
                queue[tail] = j
                tail += 1
    return tail, int(hops[queue[tail - 1]])
