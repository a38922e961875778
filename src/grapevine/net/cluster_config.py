"""How large a network `grapevine cluster` runs, what happens in it, and the subscriptions that are made for it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from grapevine.model.config import Config, parameter
from grapevine.model.workload import Workload
from grapevine.synthetic import generate


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig(Config):
    """How large a network, and what happens in it."""

    nodes: int = parameter(50, "nodes", source="ours: one machine", low=2)
    topics: int = parameter(200, "topics of the generated workload", source="ours: one machine", low=1)
    subscriptions: int = parameter(50, "topics that each node subscribes to", source="Vitis §IV-A", low=1)
    processes: int = parameter(os.cpu_count() or 1, "processes, each with its share of the nodes", source="ours", low=1)
    bootstraps: int = parameter(3, "nodes that the others begin with", source="ours", low=1)
    events: int = parameter(500, "events to publish", source="ours", low=1)
    rate: float = parameter(20.0, "events a second", source="ours", low=0.001)
    payload: int = parameter(100, "bytes of an event's payload", source="ours", low=8)
    ready_s: float = parameter(60.0, "seconds to wait until all topics are connected", source="ours", low=0)
    settle_s: float = parameter(30.0, "seconds to wait for the last events", source="ours", low=0)

    def mistakes(self) -> list[str]:
        mistakes = []
        if self.processes > self.nodes:
            mistakes.append(f"processes={self.processes}: there are only nodes={self.nodes}")
        if self.subscriptions > self.topics:
            mistakes.append(f"subscriptions={self.subscriptions}: there are only topics={self.topics}")
        return mistakes


def workload_of(config: ClusterConfig, seed: int) -> Workload:
    """Vitis' correlated subscriptions, with as many buckets of topics as there can be."""
    each = 2 if config.subscriptions % 2 == 0 and config.topics % 2 == 0 else 1
    most = config.topics * each // config.subscriptions
    buckets = next(n for n in range(max(most, 1), 0, -1) if config.topics % n == 0)
    return generate(
        "vitis-high",
        seed=seed,
        nodes=config.nodes,
        topics=config.topics,
        subscriptions_per_node=config.subscriptions,
        buckets=buckets,
        buckets_per_node=min(each, buckets),
    )
