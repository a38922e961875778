"""Vitis (Rahimian et al., IPDPS 2011) §IV-A: three patterns of equal popularity and growing correlation.

All nodes share one grouping of the topics into buckets; the paper's wording would also allow a grouping per node,
but then no pattern would be correlated.
"""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.subscribe import subscribe_by_bucket
from grapevine.model.config import MAX_COUNT, parameter
from grapevine.synthetic.base import SubscriptionModel


@dataclass(frozen=True, slots=True, kw_only=True)
class VitisRandom(SubscriptionModel):
    """50 of 5,000 topics, uniformly: no correlation."""

    nodes: int = parameter(10_000, "nodes", source="Vitis §IV-A", low=1, high=MAX_COUNT)
    topics: int = parameter(5_000, "topics", source="Vitis §IV-A", low=1, high=MAX_COUNT)
    subscriptions_per_node: int = parameter(50, "topics that each node subscribes to", source="Vitis §IV-A", low=1)
    buckets: int = parameter(1, "equal groups of topics", source="Vitis §IV-A: 1 is no grouping", low=1)
    buckets_per_node: int = parameter(1, "buckets that a node chooses its topics from", source="Vitis §IV-A", low=1)

    def mistakes(self) -> list[str]:
        mistakes = []
        if self.buckets_per_node > self.buckets:
            mistakes.append(f"buckets_per_node={self.buckets_per_node}: there are only {self.buckets} buckets")
        if self.topics % self.buckets:
            mistakes.append(f"topics={self.topics}: needs a multiple of buckets={self.buckets}")
        elif self.subscriptions_per_node % self.buckets_per_node:
            mistakes.append(
                f"subscriptions_per_node={self.subscriptions_per_node}: "
                f"needs a multiple of buckets_per_node={self.buckets_per_node}"
            )
        elif (available := self.topics // self.buckets * self.buckets_per_node) < self.subscriptions_per_node:
            mistakes.append(
                f"subscriptions_per_node={self.subscriptions_per_node}: a node's buckets hold only {available} topics"
            )
        return mistakes

    @property
    def topic_count(self) -> int:
        return self.topics

    def subscriptions(self, seed: int, first: int, last: int) -> tuple[Starts, Columns]:
        each = self.subscriptions_per_node // self.buckets_per_node
        return subscribe_by_bucket(seed, first, last, self.topics, self.buckets, self.buckets_per_node, each)


@dataclass(frozen=True, slots=True, kw_only=True)
class VitisLow(VitisRandom):
    """10 topics from each of 5 of 100 buckets: low correlation."""

    buckets: int = parameter(100, "equal groups of topics", source="Vitis §IV-A", low=1)
    buckets_per_node: int = parameter(5, "buckets that a node chooses its topics from", source="Vitis §IV-A", low=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class VitisHigh(VitisRandom):
    """25 topics from each of 2 of 100 buckets: high correlation."""

    buckets: int = parameter(100, "equal groups of topics", source="Vitis §IV-A", low=1)
    buckets_per_node: int = parameter(2, "buckets that a node chooses its topics from", source="Vitis §IV-A", low=1)
