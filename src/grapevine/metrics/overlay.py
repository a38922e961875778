"""What an overlay looks like: its ring, and per topic the clusters of its subscribers' graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.topic_graph import leave, new_scratch, open_topic, spread


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
                reached, _ = spread(i, graph, hops, queue)
                size = 0
                for j in queue[:reached]:
                    size += counted[members[j]]
                online += size
                clusters += size > 0
                largest = max(largest, size)
        out[topic, 0], out[topic, 1], out[topic, 2] = online, clusters, largest
        leave(members, graph)
