"""How similar the interests of a workload are."""

from __future__ import annotations

import numpy as np

from grapevine.kernels.overlap import Interests, cover_by_friends, top_intersection
from grapevine.model.workload import Workload


def mean_top_intersection(workload: Workload, nodes: int) -> float:
    """tdi(2·s) of SpiderCast §3.4 in percent, over so many nodes, evenly chosen; s: the mean topics of a node."""
    subscriptions, topics = workload.node_topics, workload.topic_nodes
    interests = Interests.of(subscriptions.starts, subscriptions.columns, topics.starts, topics.columns)
    d = max(1, round(2 * workload.subscription_count / workload.node_count))
    chosen = np.unique(np.linspace(0, workload.node_count - 1, min(nodes, workload.node_count)).astype(np.int64))
    return float(np.mean([top_intersection(int(node), d, interests) for node in chosen]))


def share_covered(workload: Workload, friends: int, *, nodes: int = 1_000, least: int = 5) -> float | None:
    """The share of subscribers with at least `least` topics whose so many best friends, chosen greedily with full
    knowledge, cover all of them (Rappel Fig. 1); over so many of them, evenly chosen. None: there are none."""
    subscriptions, topics = workload.node_topics, workload.topic_nodes
    interests = Interests.of(subscriptions.starts, subscriptions.columns, topics.starts, topics.columns)
    able = np.flatnonzero(subscriptions.sizes() >= least)
    if len(able) == 0:
        return None
    chosen = able[np.unique(np.linspace(0, len(able) - 1, min(nodes, len(able))).astype(np.int64))]
    covered, complete = np.empty(friends, np.int64), 0
    for node in chosen.tolist():
        cover_by_friends(1, node, interests, covered)
        complete += covered[-1] == len(workload.topics_of(node))
    return complete / len(chosen)
