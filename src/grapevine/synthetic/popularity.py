"""Topic popularity: the weight of the topic of each rank, under the three laws that SpiderCast and OMen use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.synthetic.base import zipf

LAWS = ("zipf", "exponential", "uniform")
HEAD = 0.1  # "the 10 % most popular topics" (SpiderCast §3.1)


def law_mistakes(law: str, topics: int) -> list[str]:
    """What is wrong with a law for so many topics."""
    return ["topics: the exponential law needs at least 10"] if law == "exponential" and topics < 10 else []


def weights(law: str, topics: int, *, exponent: float, head_share: float) -> NDArray[np.float64]:
    """Weights of the topics by rank; `exponent` speaks to zipf, `head_share` to exponential."""
    if law == "zipf":
        return zipf(topics, exponent)
    if law == "exponential":
        return np.asarray(np.exp(-exponential_decay(topics, head_share) * np.arange(topics)), np.float64)
    return np.ones(topics)


def exponential_decay(topics: int, head_share: float) -> float:
    """c such that weights e^(-c·rank) give the 10 % most popular topics `head_share` of all choices (NYSE: 0.55)."""
    from scipy.optimize import brentq  # here, because it takes 0.3 s to import

    head = round(HEAD * topics)

    def excess(c: float) -> float:
        return float(np.expm1(-c * head) / np.expm1(-c * topics)) - head_share

    return float(brentq(excess, 1e-9, 50.0))
