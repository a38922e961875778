"""OMen (Chen et al., Middleware 2016) §6.1: Unif, Zipf and Expo popularity, power-law subscription sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.subscribe import subscribe_by_mode
from grapevine.model.config import MAX_COUNT, parameter
from grapevine.synthetic import popularity
from grapevine.synthetic.base import SubscriptionModel
from grapevine.synthetic.spidercast import size_mistakes


@dataclass(frozen=True, slots=True, kw_only=True)
class Omen(SubscriptionModel):
    """10 … 90 of 200 topics by popularity, sizes by a power law: Unif, Zipf (exponent 2) or Expo."""

    nodes: int = parameter(2_000, "nodes", source="OMen §6.1", low=1, high=MAX_COUNT)
    topics: int = parameter(200, "topics", source="OMen §6.1", low=1, high=MAX_COUNT)
    popularity: str = parameter("uniform", "popularity law", source="OMen §6.1", choices=popularity.LAWS)
    exponent: float = parameter(2.0, "Zipf exponent", source="OMen §6.1", low=0)
    head_share: float = parameter(
        0.55,
        "exponential: choices on the top 10 % of topics",
        source="SpiderCast §3.1 (OMen cites the same study)",
        low=0.11,
        high=0.99,
    )
    min_subscriptions: int = parameter(10, "fewest topics of a node", source="OMen §6.1", low=1)
    max_subscriptions: int = parameter(90, "most topics of a node", source="OMen §6.1", low=1)
    size_exponent: float = parameter(
        2.0, "sizes s occur ∝ s^-x", source="ours: the paper says power law and gives no exponent", low=0
    )

    def mistakes(self) -> list[str]:
        sizes = size_mistakes(self.min_subscriptions, self.max_subscriptions, self.topics)
        return sizes + popularity.law_mistakes(self.popularity, self.topics)

    @property
    def topic_count(self) -> int:
        return self.topics

    def subscriptions(self, seed: int, first: int, last: int) -> tuple[Starts, Columns]:
        weights = popularity.weights(self.popularity, self.topics, exponent=self.exponent, head_share=self.head_share)
        sizes = np.arange(self.min_subscriptions, self.max_subscriptions + 1, dtype=np.float64) ** -self.size_exponent
        return subscribe_by_mode(seed, first, last, self.min_subscriptions, np.cumsum(sizes), 1, 1, weights)
