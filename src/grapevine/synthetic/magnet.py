"""Magnet (Girdzijauskas et al., DEBS 2010) §4: multi-modal, spatial and hierarchical-topics models.

Reading (docs/papers.md#magnet): α and α0 are exponents of the rank, popularity ∝ rank^-α. As exponents of the
density, which the paper's footnote suggests, α = 1 would have no meaning. For α0 the match with Fig. 7 decided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from grapevine.kernels.csr import Columns, Starts, from_pairs
from grapevine.kernels.subscribe import (
    Hierarchy,
    Modes,
    Sizes,
    subscribe_by_distance,
    subscribe_by_hierarchy,
    subscribe_by_mode,
)
from grapevine.model.config import MAX_COUNT, parameter
from grapevine.model.errors import UsageError
from grapevine.synthetic.base import SubscriptionModel, random_order, zipf

_NODE_ORDER, _TOPIC_ORDER = 103, 104


@dataclass(frozen=True, slots=True, kw_only=True)
class MagnetModal(SubscriptionModel):
    """50 of 1,000 topics from b_p of b_n modes, by a power law inside each mode; correlated when b_p is small."""

    nodes: int = parameter(10_000, "nodes", source="Magnet §4.2", low=1, high=MAX_COUNT)
    topics: int = parameter(1_000, "topics", source="Magnet §4.2", low=1, high=MAX_COUNT)
    subscriptions_per_node: int = parameter(50, "topics of each node", source="Magnet §4.2", low=1)
    modes: int = parameter(10, "modes (categories) of topics, b_n", source="Magnet §4.2: 10 … 50", low=1)
    modes_per_node: int = parameter(1, "modes of a node, b_p", source="Magnet §4.2: 1 … 5", low=1)
    alpha: float = parameter(1.0, "popularity inside a mode ∝ rank^-α", source="Magnet §4.2", low=0)

    def mistakes(self) -> list[str]:
        if self.topics % self.modes:
            return [f"topics={self.topics}: needs a multiple of modes={self.modes}"]
        if self.modes_per_node > self.modes:
            return [f"modes_per_node={self.modes_per_node}: there are only {self.modes} modes"]
        if (available := self.topics // self.modes * self.modes_per_node) < self.subscriptions_per_node:
            return [
                f"subscriptions_per_node={self.subscriptions_per_node}: a node's modes hold only {available} topics"
            ]
        return []

    @property
    def topic_count(self) -> int:
        return self.topics

    def subscriptions(self, seed: int, first: int, last: int) -> tuple[Starts, Columns]:
        weights = zipf(self.topics // self.modes, self.alpha)
        sizes, modes = Sizes(self.subscriptions_per_node, np.ones(1)), Modes(self.modes, self.modes_per_node, weights)
        return subscribe_by_mode(seed, first, last, sizes, modes)


@dataclass(frozen=True, slots=True, kw_only=True)
class MagnetSpatial(SubscriptionModel):
    """Nodes in the unit square, each with a topic of its own, subscribe to the topics of the nodes around them."""

    topic_is_node: ClassVar[bool] = True

    nodes: int = parameter(10_000, "nodes, and as many topics", source="Magnet §4.3", low=2, high=MAX_COUNT)
    mean_subscriptions: float = parameter(
        32.0, "topics of a node on average, t; sets the radius", source="Magnet §4.3: 8, 16, 32", low=0.001
    )

    def mistakes(self) -> list[str]:
        if self.mean_subscriptions > 0.9 * (self.nodes - 1):
            return [f"mean_subscriptions={self.mean_subscriptions:g}: needs less than 0.9 of nodes={self.nodes}"]
        return []

    @property
    def topic_count(self) -> int:
        return self.nodes

    @property
    def radius(self) -> float:
        """The radius at which a node has `mean_subscriptions` others in reach on average, borders counted in.

        Two random points of the unit square are within r ≤ 1 with probability πr² - 8r³/3 + r⁴/2.
        """
        from scipy.optimize import brentq  # here, because it takes 0.3 s to import

        wanted = self.mean_subscriptions / (self.nodes - 1)
        return float(brentq(lambda r: math.pi * r**2 - 8 / 3 * r**3 + r**4 / 2 - wanted, 0.0, 1.0))

    def subscriptions(self, seed: int, first: int, last: int) -> tuple[Starts, Columns]:
        return subscribe_by_distance(seed, first, last, self.nodes, self.radius)


@dataclass(frozen=True, slots=True, kw_only=True)
class MagnetHierarchical(SubscriptionModel):
    """Topics are leaves of a binary tree; popular topics attract, and nodes prefer topics close to those they have."""

    whole: ClassVar[bool] = True

    nodes: int = parameter(2**14, "nodes", source="Magnet §4.4", low=1, high=MAX_COUNT)
    topics: int = parameter(2**14, "topics, a power of two", source="Magnet §4.4", low=2, high=2**30)
    mean_subscriptions: float = parameter(16.0, "topics of a node on average, Z", source="Magnet §4.4: 8 …", low=0.001)
    initial_fraction: float = parameter(
        0.1, "share of subscriptions made at random first, initFrac", source="Magnet §4.4", low=0.001, high=1
    )
    initial_alpha: float = parameter(
        2.0, "popularity of the random subscriptions ∝ rank^-α0", source="Magnet §4.4", low=0
    )
    home_topics: bool = parameter(
        True,
        "every node makes one of the first subscriptions, its home topic; no: random nodes make all of them",
        source="Magnet §1 and §4.4: a home topic for users; §4.4 a: random peers (docs/papers.md#magnet)",
    )
    first_topics: str = parameter(
        "all",
        "all: every topic gets one of the first subscriptions, where there are enough; in-turn: as many topics do as "
        "there are first subscriptions, the most popular ones first; popular: popularity alone decides",
        source="Magnet §4.4 a: all topics are populated (docs/papers.md#magnet)",
        choices=("all", "in-turn", "popular"),
    )
    homophily: float = parameter(2.0, "λ: tree distance x has probability ∝ e^(-λx)", source="Magnet §4.4", low=0)

    def mistakes(self) -> list[str]:
        mistakes = []
        if self.topics & (self.topics - 1):
            mistakes.append(f"topics={self.topics}: needs a power of two, the leaves of a binary tree")
        if self.mean_subscriptions > self.topics / 2:
            mistakes.append(
                f"mean_subscriptions={self.mean_subscriptions:g}: needs at most half of topics={self.topics}"
            )
        if round(self.nodes * self.mean_subscriptions * self.initial_fraction) < 1:
            mistakes.append("initial_fraction: gives no subscription to start from; make it larger")
        return mistakes

    @property
    def topic_count(self) -> int:
        return self.topics

    def subscriptions(self, seed: int, first: int, last: int) -> tuple[Starts, Columns]:
        if (first, last) != (0, self.nodes):
            raise ValueError("the hierarchical model is one process over all nodes and cannot be split")
        total = round(self.nodes * self.mean_subscriptions)
        initial, height = round(total * self.initial_fraction), self.topics.bit_length() - 1
        in_turn = self.first_topics == "in-turn" or (self.first_topics == "all" and initial >= self.topics)
        hierarchy = Hierarchy(
            random_order(seed, _NODE_ORDER, self.nodes),
            random_order(seed, _TOPIC_ORDER, self.topics),
            np.cumsum(zipf(self.topics, self.initial_alpha)),
            np.cumsum(np.exp(-self.homophily * np.arange(1, height + 1))),
            nodes_in_turn=self.nodes if self.home_topics else 0,
            topics_in_turn=self.topics if in_turn else 0,
        )
        nodes, topics = subscribe_by_hierarchy(seed, initial, total, hierarchy)
        if len(nodes) < total:
            raise UsageError(
                f"homophily={self.homophily:g}: nodes found only {len(nodes):,} of {total:,} subscriptions near those "
                "they had; lower homophily or mean_subscriptions"
            )
        return from_pairs(nodes, topics, self.nodes, self.topics)
