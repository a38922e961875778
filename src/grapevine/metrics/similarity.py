"""How similar the interests of a workload are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.overlap import Interests, cover_by_friends, top_intersection
from grapevine.kernels.rng import priorities
from grapevine.model.workload import Workload

_ASKED = 231  # the `round` word of the draw


def mean_top_intersection(workload: Workload, nodes: int) -> float:
    """tdi(2·s) of SpiderCast §3.4 in percent, over so many nodes, evenly chosen; s: the mean topics of a node."""
    subscriptions, topics = workload.node_topics, workload.topic_nodes
    interests = Interests.of(subscriptions.starts, subscriptions.columns, topics.starts, topics.columns)
    d = max(1, round(2 * workload.subscription_count / workload.node_count))
    chosen = np.unique(np.linspace(0, workload.node_count - 1, min(nodes, workload.node_count)).astype(np.int64))
    return float(np.mean([top_intersection(int(node), d, interests) for node in chosen]))


def share_covered(
    workload: Workload, friends: int, *, nodes: int = 1_000, least: int = 5, seed: int = 1
) -> float | None:
    """The share of subscribers with at least `least` topics whose so many best friends, chosen greedily with full
    knowledge, cover all of them (Rappel Fig. 1); over so many of them, chosen at random. None: there are none."""
    shares = _shares_covered(workload, friends, nodes, least, seed)[1]
    return float(np.mean(shares == 1.0)) if len(shares) else None


def coverage_by_subscriptions(
    workload: Workload, friends: int, *, nodes: int = 1_000, least: int = 5, seed: int = 1
) -> dict[int, float]:
    """The mean share of a user's topics that its best friends cover (Rappel Fig. 1b), by the number of its topics:
    `least` and more, twice as many and more, and so on; of the same users as `share_covered` is. A class without users
    is left out."""
    wanted, shares = _shares_covered(workload, friends, nodes, least, seed)
    found = {}
    while len(shares):
        chosen = (least <= wanted) & (wanted < 2 * least)
        if chosen.any():
            found[least] = float(shares[chosen].mean())
        wanted, shares = wanted[~chosen], shares[~chosen]
        least *= 2
    return found


def _shares_covered(
    workload: Workload, friends: int, nodes: int, least: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Of so many random subscribers with at least `least` topics: their topics, and the share of these that their best
    friends cover."""
    subscriptions, topics = workload.node_topics, workload.topic_nodes
    interests = Interests.of(subscriptions.starts, subscriptions.columns, topics.starts, topics.columns)
    able = np.flatnonzero(subscriptions.sizes() >= least)
    chosen = able[np.argsort(priorities(seed, _ASKED, len(able)), kind="stable")[:nodes]]
    covered, shares = np.empty(friends, np.int64), np.empty(len(chosen))
    for i, node in enumerate(chosen.tolist()):
        cover_by_friends(seed, node, interests, covered)
        shares[i] = covered[-1] / len(workload.topics_of(node))
    return subscriptions.sizes()[chosen], shares
