"""SpiderCast (Chockler et al., DEBS 2007): §3.1 subscriptions by popularity, §3.8 exponential on/off churn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.sessions import alternate
from grapevine.kernels.subscribe import subscribe_by_mode
from grapevine.model.config import MAX_COUNT, parameter
from grapevine.synthetic import popularity
from grapevine.synthetic.base import ChurnModel, SubscriptionModel


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiderCast(SubscriptionModel):
    """A fixed number, or min … max, of topics chosen by popularity: RSS (Zipf 0.5), Zipf 1 and 2, NYSE, uniform."""

    nodes: int = parameter(10_000, "nodes", source="SpiderCast §3.1: 1,000 … 10,000", low=1, high=MAX_COUNT)
    topics: int = parameter(100, "topics", source="SpiderCast §3.1: 100 … 1,000", low=1, high=MAX_COUNT)
    popularity: str = parameter(
        "zipf", "popularity law; exponential is NYSE", source="SpiderCast §3.1", choices=popularity.LAWS
    )
    exponent: float = parameter(0.5, "Zipf exponent", source="SpiderCast §3.1: RSS 0.5; also 1 and 2", low=0)
    head_share: float = parameter(
        0.55, "exponential: choices that fall on the top 10 % of topics", source="SpiderCast §3.1", low=0.11, high=0.99
    )
    min_subscriptions: int = parameter(10, "fewest topics of a node", source="SpiderCast §3.4", low=1)
    max_subscriptions: int = parameter(
        10, "most topics of a node; sizes are uniform between", source="SpiderCast §3.4; §3.6: 30 and 70", low=1
    )

    def mistakes(self) -> list[str]:
        sizes = size_mistakes(self.min_subscriptions, self.max_subscriptions, self.topics)
        return sizes + popularity.law_mistakes(self.popularity, self.topics)

    @property
    def topic_count(self) -> int:
        return self.topics

    def subscriptions(self, seed: int, first: int, last: int) -> tuple[Starts, Columns]:
        weights = popularity.weights(self.popularity, self.topics, exponent=self.exponent, head_share=self.head_share)
        sizes = np.arange(1.0, self.max_subscriptions - self.min_subscriptions + 2)
        return subscribe_by_mode(seed, first, last, self.min_subscriptions, sizes, 1, 1, weights)


def size_mistakes(smallest: int, largest: int, available: int) -> list[str]:
    """What is wrong with a range of subscription sizes."""
    if smallest > largest:
        return [f"min_subscriptions={smallest}: is more than max_subscriptions={largest}"]
    if largest > available:
        return [f"max_subscriptions={largest}: there are only {available} topics to choose from"]
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiderCastChurn(ChurnModel):
    """Nodes alternate between being there (mean λ) and away (mean λ/4), both exponential, from the steady state."""

    mean_up_s: float = parameter(100.0, "mean session λ, seconds", source="SpiderCast §3.8: 100 … 500", low=0.001)
    mean_down_s: float | None = parameter(
        None, "mean absence, seconds; default λ/4", source="SpiderCast §3.8", low=0.001
    )
    duration_s: float = parameter(1_000.0, "length of the trace, seconds", source="SpiderCast §3.8", low=0.001)

    def sessions(self, seed: int, first: int, last: int) -> tuple[Columns, NDArray[np.float64], NDArray[np.float64]]:
        mean_down = self.mean_up_s / 4 if self.mean_down_s is None else self.mean_down_s
        return alternate(seed, first, last, self.mean_up_s, mean_down, self.duration_s)
