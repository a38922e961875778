"""How often events are published in topics, as the utility weighs them (Eq. 1): declared by somebody, or estimated.

A weight is a rate in fixed point, so that sums are exact and both ends of a link come to the same utility. It travels
with a profile as a float of 32 bits, which holds every weight exactly. A topic of which nothing is known has rate 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Weights = NDArray[np.int64]

RATE = np.dtype("<f4")
MOST_RATE = 2.0**20  # so the weights of a million topics, twice, are below 2**63
ONE = 1 << 20  # the weight of rate 1; what is published a million times less often weighs nothing
CHANGE = 1.5  # by this factor an estimate has to differ from what was announced before others are told
_REVIEWS = 10  # of estimates, in a horizon


def weights_of(rates: ArrayLike) -> Weights:
    """Rates, from 0 up to the most that counts, as weights."""
    told = np.minimum(np.asarray(rates, np.float64), MOST_RATE).astype(RATE).astype(np.float64)
    return np.asarray(np.round(told * ONE), np.int64)


def weight_of(rate: float) -> int:
    """One rate as a weight."""
    return int(weights_of([rate])[0])


def pack_weights(weights: Weights) -> bytes:
    """Weights as they travel; the inverse of `unpack_weights`."""
    return (weights / ONE).astype(RATE).tobytes()


def unpack_weights(content: bytes, count: int) -> Weights | None:
    """The weights of so many topics that came; all alike if nothing was said. None: these bytes cannot be rates."""
    if not content:
        return np.full(count, ONE, np.int64)
    if len(content) != count * RATE.itemsize:
        return None
    rates = np.frombuffer(content, RATE)
    return weights_of(rates) if ((rates >= 0) & (rates <= MOST_RATE)).all() else None


class Estimates:
    """How often a node sees events of its topics: a count of each that decays over `horizon_s`.

    The unit is one event per horizon. One event is counted before any was seen, over one horizon more than was watched:
    a topic that is new has rate 1, as where all weigh alike, and one that stays silent 1/2.
    """

    def __init__(self, now: float, horizon_s: float) -> None:
        self._horizon_s, self._started = horizon_s, now
        self._since: dict[int, float] = {}  # of topics that were subscribed to later: when
        self._counts: dict[int, tuple[float, float]] = {}  # decayed counts, as of the last event, and its time
        self._reviewed = now

    def want(self, now: float, topic: int) -> None:
        """The node watches the topic from now on."""
        self._since[topic] = now

    def forget(self, topic: int) -> None:
        """The node does not watch the topic any more."""
        self._since.pop(topic, None)
        self._counts.pop(topic, None)

    def see(self, now: float, topic: int) -> None:
        """An event of the topic came, or was published."""
        self._counts[topic] = self._count(now, topic) + 1.0, now

    def _count(self, now: float, topic: int) -> float:
        count, when = self._counts.get(topic, (0.0, now))
        return count * math.exp((when - now) / self._horizon_s)

    def rate(self, now: float, topic: int) -> float:
        """Events of the topic per horizon, as estimated now."""
        watched = 1.0 - math.exp((self._since.get(topic, self._started) - now) / self._horizon_s)
        return (self._count(now, topic) + 1.0) / (watched + 1.0)

    def is_due(self, now: float) -> bool:
        """Whether it is time to look what has changed; some times in a horizon it is."""
        if now - self._reviewed < self._horizon_s / _REVIEWS:
            return False
        self._reviewed = now
        return True
