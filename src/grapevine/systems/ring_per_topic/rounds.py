"""A ring per topic over arrays: links are worked out anew in every round, from who is online."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import NOBODY, Views
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.systems.contracts.configs import FloodingConfig
from grapevine.systems.contracts.rounds import Delivery, RoundSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class RingPerTopicConfig(FloodingConfig):
    """Parameters of RingPT: how events travel, and none of its own."""


@njit
def close_rings(now: int, ids: NDArray[np.uint64], topic_starts: Starts, topic_nodes: Columns, views: Views) -> None:
    """Give everyone its successor on each of its topics' rings, each neighbour once, in the order of topics.

    The tables in `views` are rewritten; a node has room for one link per topic. A topic with one online subscriber has
    no ring.
    """
    views.links[:] = NOBODY
    used = np.zeros(len(ids), np.int64)
    for topic in range(len(topic_starts) - 1):
        members = topic_nodes[topic_starts[topic] : topic_starts[topic + 1]]
        online = members[views.alive[members]]
        if len(online) < 2:
            continue
        around = online[np.argsort(ids[online])]
        for i in range(len(around)):
            p, q = around[i], around[(i + 1) % len(around)]
            row = views.links[views.starts[p] : views.starts[p + 1]]
            if not (row[: used[p]] == q).any():
                row[used[p]] = q
                views.heard[views.starts[p] + used[p]] = now
                used[p] += 1


class RingPerTopic(RoundSystem):
    """RingPT on a network: all online subscribers of a topic form one ring."""

    config_type = RingPerTopicConfig
    config: RingPerTopicConfig
    needs = "that everybody knows the next subscriber of each of its topics, at every change"

    def row_sizes(self) -> NDArray[np.int64]:
        return np.diff(self.network.profiles.starts)

    def slot_kinds(self, size: int) -> list[str]:
        return ["topic successor"] * size

    def round(self) -> None:
        network = self.network
        close_rings(network.now, network.ids, network.topic_nodes.starts, network.topic_nodes.columns, network.views)
        network.links_changed()

    def delivery(self) -> Delivery:
        return self.flooding()
