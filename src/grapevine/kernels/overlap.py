"""How much the interests of subscribers overlap. Each kernel walks topic → subscribers, never all pairs of nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import draw


class Interests(NamedTuple):
    """Who wants what, both ways as rows, and scratch that every kernel leaves as it found it.

    One object serves one thread.
    """

    node_starts: Starts
    node_topics: Columns
    topic_starts: Starts
    topic_nodes: Columns
    shared: Columns  # per node: topics in common with the node that is looked at; all zero between calls
    touched: Columns  # room for a list of nodes

    @classmethod
    def of(cls, node_starts: Starts, node_topics: Columns, topic_starts: Starts, topic_nodes: Columns) -> Interests:
        """These rows, with new scratch."""
        nodes = len(node_starts) - 1
        scratch = np.zeros(nodes, np.int32), np.empty(nodes, np.int32)
        return cls(node_starts, node_topics, topic_starts, topic_nodes, *scratch)


@njit
def share_topics(node: int, topics: Columns, of: Interests) -> int:
    """How many of these topics every other node has, into `shared`; lists the nodes that have any in `touched` and
    returns their number. The caller sets their `shared` to zero again."""
    found = 0
    for topic in topics:
        for other in of.topic_nodes[of.topic_starts[topic] : of.topic_starts[topic + 1]]:
            if other != node:
                if of.shared[other] == 0:
                    of.touched[found] = other
                    found += 1
                of.shared[other] += 1
    return found


@njit
def top_intersection(node: int, d: int, of: Interests) -> float:
    """tdi_n(d) of SpiderCast §3.4: the mean of the d largest intersections with others, percent of the smaller list."""
    topics = of.node_topics[of.node_starts[node] : of.node_starts[node + 1]]
    found = share_topics(node, topics, of)
    percent = np.empty(found)
    for i in range(found):
        other = of.touched[i]
        smaller = min(len(topics), of.node_starts[other + 1] - of.node_starts[other])
        percent[i] = 100.0 * of.shared[other] / smaller
        of.shared[other] = 0
    d = min(d, len(of.node_starts) - 2)
    if d <= 0:
        return 0.0
    if found > d:
        percent = np.partition(percent, found - d)[found - d :]
    return float(percent.sum() / d)


@njit
def cover_by_friends(seed: int, node: int, of: Interests, covered: NDArray[np.int64]) -> int:
    """Topics covered by the first 1, 2, … greedily chosen friends into `covered`; returns how many could be covered,
    which are those that somebody else has too.

    The next friend covers most of what is still uncovered; ties go to the smaller hash of (node, candidate).
    """
    topics = of.node_topics[of.node_starts[node] : of.node_starts[node + 1]]
    is_open = np.ones(len(topics), np.bool_)
    coverable = 0
    for topic in topics:
        coverable += of.topic_starts[topic + 1] - of.topic_starts[topic] > 1
    found = share_topics(node, topics, of)
    done = 0
    for k in range(len(covered)):
        friend = _best_friend(seed, node, of, found)
        if friend >= 0:
            done += _cover(node, friend, topics, is_open, of)
        covered[k] = done
    of.shared[of.touched[:found]] = 0
    return coverable


@njit
def _best_friend(seed: int, node: int, of: Interests, found: int) -> int:
    """The node with most of the topics that are still open, by `shared`; -1 when nobody has any."""
    best = -1
    for other in of.touched[:found]:
        if of.shared[other] > 0 and (
            best < 0
            or of.shared[other] > of.shared[best]
            or (of.shared[other] == of.shared[best] and draw(seed, 0, node, other) < draw(seed, 0, node, best))
        ):
            best = other
    return best


@njit
def _cover(node: int, friend: int, topics: Columns, is_open: NDArray[np.bool_], of: Interests) -> int:
    """Close the open topics that the friend has too, and take them off everybody's `shared`; returns their number."""
    closed, mine, theirs = 0, 0, of.node_starts[friend]
    while mine < len(topics) and theirs < of.node_starts[friend + 1]:
        if topics[mine] < of.node_topics[theirs]:
            mine += 1
        elif topics[mine] > of.node_topics[theirs]:
            theirs += 1
        else:
            if is_open[mine]:
                is_open[mine] = False
                closed += 1
                for other in of.topic_nodes[of.topic_starts[topics[mine]] : of.topic_starts[topics[mine] + 1]]:
                    if other != node:
                        of.shared[other] -= 1
            mine += 1
            theirs += 1
    return closed


@njit
def common(a: NDArray[Any], b: NDArray[Any]) -> int:
    """|a ∩ b| of two ascending lists."""
    i, j, count = 0, 0, 0
    while i < len(a) and j < len(b):
        if a[i] < b[j]:
            i += 1
        elif a[i] > b[j]:
            j += 1
        else:
            count += 1
            i += 1
            j += 1
    return count


@njit
def common_positions(a: NDArray[Any], b: NDArray[Any]) -> Columns:
    """The positions in a of the items of a ∩ b, ascending, of two ascending lists."""
    i, j, count = 0, 0, 0
    positions = np.empty(min(len(a), len(b)), np.int32)
    while i < len(a) and j < len(b):
        if a[i] < b[j]:
            i += 1
        elif a[i] > b[j]:
            j += 1
        else:
            positions[count] = i
            count += 1
            i += 1
            j += 1
    return positions[:count].copy()


@njit
def jaccard(a: Columns, b: Columns) -> float:
    """|a ∩ b| / |a ∪ b| of two ascending lists; 0 when both are empty."""
    both = common(a, b)
    union = len(a) + len(b) - both
    return both / union if union else 0.0
