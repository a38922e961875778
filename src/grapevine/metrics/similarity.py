"""How similar the interests of a workload are."""

from __future__ import annotations

import numpy as np

from grapevine.kernels.overlap import Interests, top_intersection
from grapevine.model.workload import Workload


def mean_top_intersection(workload: Workload, nodes: int) -> float:
    """tdi(2·s) of SpiderCast §3.4 in percent, over so many nodes, evenly chosen; s: the mean topics of a node."""
    subscriptions, topics = workload.node_topics, workload.topic_nodes
    interests = Interests.of(subscriptions.starts, subscriptions.columns, topics.starts, topics.columns)
    d = max(1, round(2 * workload.subscription_count / workload.node_count))
    chosen = np.unique(np.linspace(0, workload.node_count - 1, min(nodes, workload.node_count)).astype(np.int64))
    return float(np.mean([top_intersection(int(node), d, interests) for node in chosen]))
