"""Vitis (Rahimian et al., IPDPS 2011) §IV-A: three patterns of equal popularity and growing correlation; and §IV-E:
users that follow each other by the numbers that the paper gives of its Twitter log, which is not at hand.

All nodes share one grouping of the topics into buckets; the paper's wording would also allow a grouping per node,
but then no pattern would be correlated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.subscribe import Sizes, subscribe_by_bucket, subscribe_to_users
from grapevine.model.config import MAX_COUNT, parameter
from grapevine.synthetic.base import SubscriptionModel, zipf

Floats = NDArray[np.float64]
_TURNS = 200  # the default law is then met within 1 %


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TwitterLike(SubscriptionModel):
    """Users who follow each other: both degrees by one power law, independent of each other, without communities.

    A law of this exponent that begins at 1 has a mean of 32 among 10,000 users, since nobody can follow more than all
    others (the paper's whole log has a largest degree of 172,268, up to which the law's mean is its 88). So the law is
    cut at both ends: it begins at the smallest degree that allows for the wanted mean, and ends where the mean is
    reached.
    """

    topic_is_node: ClassVar[bool] = True

    nodes: int = parameter(10_000, "users, each of them a topic", source="Vitis §IV-E", low=2, high=MAX_COUNT)
    exponent: float = parameter(
        1.65, "degrees d occur ∝ d^-x, of followers and of followees", source="Vitis §IV-E, Fig. 8", low=1, high=6
    )
    mean_degree: float = parameter(80.0, "users that each follows, in the mean", source="Vitis §IV-E", low=1)
    largest_share: float = parameter(
        0.5, "of all others, the most that somebody follows or is followed by", source="ours", low=0.001, high=1
    )

    def mistakes(self) -> list[str]:
        if self.mean_degree > self._limit:
            return [f"mean_degree={self.mean_degree:g}: is more than the {self._limit} that a user may follow"]
        return []

    @property
    def _limit(self) -> int:
        return max(1, int(self.largest_share * (self.nodes - 1)))

    @property
    def topic_count(self) -> int:
        return self.nodes

    def degrees(self) -> tuple[int, int]:
        """The smallest and the largest degree of the law."""
        weights, degrees = zipf(self._limit, self.exponent), np.arange(1, self._limit + 1)
        means = np.cumsum((weights * degrees)[::-1])[::-1] / np.cumsum(weights[::-1])[::-1]  # from 1, 2, … to the limit
        smallest = min(int(np.searchsorted(means, self.mean_degree)), self._limit - 1)
        kept = slice(smallest, None)
        means = np.cumsum((weights * degrees)[kept]) / np.cumsum(weights[kept])
        largest = smallest + min(int(np.searchsorted(means, self.mean_degree)), len(means) - 1)
        return int(degrees[smallest]), int(degrees[largest])

    def subscriptions(self, seed: int, first: int, last: int) -> tuple[Starts, Columns]:
        smallest, largest = self.degrees()
        law = zipf(largest, self.exponent)[smallest - 1 :]
        appeal = _appeal(np.arange(smallest, largest + 1, dtype=np.float64), law / law.sum(), self.nodes)
        return subscribe_to_users(seed, first, last, self.nodes, Sizes(smallest, np.cumsum(law)), appeal)


def _appeal(degrees: Floats, law: Floats, nodes: int) -> Floats:
    """Weights for wanted numbers of followers, such that users who choose by weight bring everybody as many as wanted.

    Weights in proportion would not do: who follows thousands soon has everybody of weight, and the rest goes to those
    who should have few. Somebody of weight w is chosen by a user of s choices with probability 1 - exp(-a(s)·w) (who
    rings first in `choose_weighted`), so all a and w follow in turn from the numbers that they have to bring about.
    Degrees are taken together in steps of a few percent.
    """
    step = np.unique(np.round(40 * np.log(degrees)), return_inverse=True)[1]
    share = np.bincount(step, law)
    wanted = np.bincount(step, law * degrees) / share
    appeal = wanted / nodes
    for _ in range(_TURNS):  # both degrees have the same law, so a and w are the same function
        met = -np.expm1(-np.outer(appeal, appeal)) @ share * (nodes - 1)
        appeal *= np.sqrt(wanted / met)
    return np.exp(np.interp(np.log(degrees), np.log(wanted), np.log(appeal)))
