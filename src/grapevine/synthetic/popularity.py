"""Subscriptions by topic popularity: what the models of SpiderCast and OMen have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.subscribe import Modes, Sizes, subscribe_by_mode
from grapevine.model.config import MAX_COUNT, parameter
from grapevine.synthetic.base import SubscriptionModel, zipf

LAWS = ("zipf", "exponential", "uniform")
HEAD = 0.1  # "the 10 % most popular topics" (SpiderCast §3.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByPopularity(SubscriptionModel):
    """Every node draws its number of topics, then distinct topics by their popularity."""

    topics: int = parameter(100, "topics", source="SpiderCast §3.1: 100 … 1,000", low=1, high=MAX_COUNT)
    popularity: str = parameter("zipf", "popularity law; exponential is NYSE", source="SpiderCast §3.1", choices=LAWS)
    exponent: float = parameter(0.5, "Zipf exponent", source="SpiderCast §3.1: RSS 0.5; also 1 and 2", low=0)
    head_share: float = parameter(
        0.55, "exponential: choices that fall on the top 10 % of topics", source="SpiderCast §3.1", low=0.11, high=0.99
    )
    min_subscriptions: int = parameter(10, "fewest topics of a node", source="SpiderCast §3.4", low=1)
    max_subscriptions: int = parameter(
        10, "most topics of a node; sizes are uniform between", source="SpiderCast §3.4; §3.6: 30 and 70", low=1
    )

    def mistakes(self) -> list[str]:
        mistakes = []
        if self.min_subscriptions > self.max_subscriptions:
            mistakes.append(
                f"min_subscriptions={self.min_subscriptions}: is more than max_subscriptions={self.max_subscriptions}"
            )
        elif self.max_subscriptions > self.topics:
            mistakes.append(
                f"max_subscriptions={self.max_subscriptions}: there are only {self.topics} topics to choose from"
            )
        if self.popularity == "exponential" and self.topics < 10:
            mistakes.append(f"topics={self.topics}: the exponential law needs at least 10")
        return mistakes

    @property
    def topic_count(self) -> int:
        return self.topics

    @abstractmethod
    def size_weights(self) -> NDArray[np.float64]:
        """How likely each number of topics is, from `min_subscriptions` to `max_subscriptions`; in proportion, not
        summing to 1."""

    def topic_weights(self) -> NDArray[np.float64]:
        """How likely each topic is, in proportion; topic 0 is the most popular."""
        if self.popularity == "zipf":
            return zipf(self.topics, self.exponent)
        if self.popularity == "exponential":
            decay = exponential_decay(self.topics, self.head_share)
            return np.asarray(np.exp(-decay * np.arange(self.topics)), np.float64)
        return np.ones(self.topics)

    def subscriptions(self, seed: int, first: int, last: int) -> tuple[Starts, Columns]:
        sizes = Sizes(self.min_subscriptions, np.cumsum(self.size_weights()))
        return subscribe_by_mode(seed, first, last, sizes, Modes(1, 1, self.topic_weights()))


def exponential_decay(topics: int, head_share: float) -> float:
    """c such that weights e^(-c·rank) give the 10 % most popular topics `head_share` of all choices (NYSE: 0.55)."""
    from scipy.optimize import brentq  # here, because it takes 0.3 s to import

    head = round(HEAD * topics)

    def excess(c: float) -> float:
        return float(np.expm1(-c * head) / np.expm1(-c * topics)) - head_share

    return float(brentq(excess, 1e-9, 50.0))
