"""What an overlay looks like: its ring, per topic the clusters of its subscribers' graph, and which topic to show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.topic_graph import leave, new_scratch, open_topic, spread

FIRST_TOPICS = 100  # among which one is chosen to be drawn
_TELLING = 2, 4  # clusters, from … to: enough to show what joins them, few enough to tell apart
_LEGIBLE = 10, 60  # subscribers, from … to: more of them are a ball of wool


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


def topic_to_draw(subscribers: NDArray[np.int64], clusters: NDArray[np.int64], largest: NDArray[np.int64]) -> int:
    """The topic, of those that these arrays are by, whose picture tells most: one of a few clusters that can be told
    apart, with most subscribers outside the largest cluster.

    Only the first hundred topics count, and there is at least one. Where none of them has 2 – 4 clusters and 10 – 60
    subscribers, it is the one with most subscribers. Of equals it is the first.
    """
    subscribers, clusters, largest = (found[:FIRST_TOPICS] for found in (subscribers, clusters, largest))
    telling = (clusters >= _TELLING[0]) & (clusters <= _TELLING[1])
    legible = (subscribers >= _LEGIBLE[0]) & (subscribers <= _LEGIBLE[1])
    chosen = telling & legible
    return int(np.argmax(np.where(chosen, subscribers - largest, -1) if chosen.any() else subscribers))
