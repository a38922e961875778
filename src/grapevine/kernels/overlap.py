"""How much the interests of subscribers overlap. Each kernel walks topic → subscribers, never all pairs of nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import draw


@njit
def shared_topics(
    node: int, topics: Columns, topic_starts: Starts, topic_nodes: Columns, shared: Columns, touched: Columns
) -> int:
    """Count topics in common with every other node into `shared` (zero before); list those nodes in `touched`."""
    found = 0
    for topic in topics:
        for other in topic_nodes[topic_starts[topic] : topic_starts[topic + 1]]:
            if other != node:
                if shared[other] == 0:
                    touched[found] = other
                    found += 1
                shared[other] += 1
    return found


@njit
def top_intersection(
    node: int,
    d: int,
    node_starts: Starts,
    node_topics: Columns,
    topic_starts: Starts,
    topic_nodes: Columns,
    shared: Columns,
    touched: Columns,
) -> float:
    """tdi_n(d) of SpiderCast §3.4: the mean of the d largest intersections with others, percent of the smaller list."""
    topics = node_topics[node_starts[node] : node_starts[node + 1]]
    found = shared_topics(node, topics, topic_starts, topic_nodes, shared, touched)
    percent = np.empty(found)
    for i in range(found):
        other = touched[i]
        smaller = min(len(topics), node_starts[other + 1] - node_starts[other])
        percent[i] = 100.0 * shared[other] / smaller
        shared[other] = 0
    d = min(d, len(node_starts) - 2)
    if d <= 0:
        return 0.0
    if found > d:
        percent = np.partition(percent, found - d)[found - d :]
    return float(percent.sum() / d)


@njit
def cover_by_friends(
    seed: int,
    node: int,
    node_starts: Starts,
    node_topics: Columns,
    topic_starts: Starts,
    topic_nodes: Columns,
    shared: Columns,
    touched: Columns,
    covered: NDArray[np.int64],
) -> int:
    """Topics covered by the first 1, 2, … greedily chosen friends into `covered`; returns how many could be covered.

    The next friend covers most of what is still uncovered; ties go to the smaller hash of (node, candidate).
    """
    topics = node_topics[node_starts[node] : node_starts[node + 1]]
    open_topic = np.ones(len(topics), np.bool_)
    coverable = 0
    for topic in topics:
        coverable += topic_starts[topic + 1] - topic_starts[topic] > 1
    found = shared_topics(node, topics, topic_starts, topic_nodes, shared, touched)
    done = 0
    for k in range(len(covered)):
        best = -1
        for i in range(found):
            other = touched[i]
            if shared[other] > 0 and (
                best < 0
                or shared[other] > shared[best]
                or (shared[other] == shared[best] and draw(seed, 0, node, other) < draw(seed, 0, node, best))
            ):
                best = other
        if best >= 0:
            mine, theirs = 0, node_starts[best]
            while mine < len(topics) and theirs < node_starts[best + 1]:
                if topics[mine] < node_topics[theirs]:
                    mine += 1
                elif topics[mine] > node_topics[theirs]:
                    theirs += 1
                else:
                    if open_topic[mine]:
                        open_topic[mine] = False
                        done += 1
                        for other in topic_nodes[topic_starts[topics[mine]] : topic_starts[topics[mine] + 1]]:
                            if other != node:
                                shared[other] -= 1
                    mine += 1
                    theirs += 1
        covered[k] = done
    shared[touched[:found]] = 0
    return coverable


@njit
def jaccard(a: Columns, b: Columns) -> float:
    """|a ∩ b| / |a ∪ b| of two ascending lists."""
    i, j, common = 0, 0, 0
    while i < len(a) and j < len(b):
        if a[i] < b[j]:
            i += 1
        elif a[i] > b[j]:
            j += 1
        else:
            common += 1
            i += 1
            j += 1
    union = len(a) + len(b) - common
    return common / union if union else 0.0
