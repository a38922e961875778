"""Rappel (Patel et al., Computer Networks 2009): one feed (§6.2, §6.4), Overnet's churn (§6.1.3), an outage (§6.2.2).

Differs from the paper: Overnet's availability trace is not at hand, so nodes come and go at its rate, for exponential
times. The trace's daily rhythm, and nodes that differ in how long they stay, are lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.sessions import alternate
from grapevine.model.config import MAX_COUNT, parameter
from grapevine.synthetic.base import ChurnModel, SubscriptionModel, random_order

HOUR_S = 3_600.0
_SUBSCRIBERS, _FAILING = 105, 106


@dataclass(frozen=True, slots=True, kw_only=True)
class RappelFeed(SubscriptionModel):
    """One feed: node 0 publishes it and does not subscribe; so many of the others do, the rest look on."""

    topic_is_node: ClassVar[bool] = True

    nodes: int = parameter(5_001, "nodes, the publisher among them", source="Rappel §6.4", low=2, high=MAX_COUNT)
    subscribers: int | None = parameter(
        None,
        "nodes that subscribe; default: all but the publisher",
        source="Rappel §6.2: 250 and 5,000; §6.4: 500 of 5,001",
        low=1,
    )

    def mistakes(self) -> list[str]:
        if self.subscribers is not None and self.subscribers >= self.nodes:
            return [f"subscribers={self.subscribers}: there are only {self.nodes - 1} nodes besides the publisher"]
        return []

    @property
    def topic_count(self) -> int:
        return 1

    def subscriptions(self, seed: int, first: int, last: int) -> tuple[Starts, Columns]:
        wanted = self.nodes - 1 if self.subscribers is None else self.subscribers
        subscribes = np.zeros(self.nodes, np.int64)
        subscribes[1 + random_order(seed, _SUBSCRIBERS, self.nodes - 1)[:wanted]] = 1
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(subscribes[first:last])])
        return starts, np.zeros(starts[-1], np.int32)


@dataclass(frozen=True, slots=True, kw_only=True)
class OvernetChurn(ChurnModel):
    """Nodes of a file-sharing network: there and away for exponential times, from the steady state."""

    nodes: int = parameter(
        7_200,
        "nodes, online or not",
        source="Rappel §6.2.3: 5,000 online and 30 leaves a minute, which are 25 % of 7,200 an hour",
        low=1,
        high=MAX_COUNT,
    )
    hourly: float = parameter(
        0.25, "share of all nodes that leave in an hour, and that join", source="Rappel §6.1.3", low=0.0001, high=1_000
    )
    online: float = parameter(
        0.7, "share of all nodes that are there at a time", source="Rappel §6.2.3: 5,000 of 7,200", low=0.01, high=0.99
    )
    duration_s: float = parameter(4 * HOUR_S, "length, seconds", source="Rappel §6.2.2: 4 hours", low=0.001)

    def sessions(self, seed: int, first: int, last: int) -> tuple[Columns, NDArray[np.float64], NDArray[np.float64]]:
        cycle_s = HOUR_S / self.hourly  # who leaves `hourly` times an hour comes back as often
        return alternate(seed, first, last, self.online * cycle_s, (1 - self.online) * cycle_s, self.duration_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage(ChurnModel):
    """Everybody is there from the start; a random share fails at once and is back, at once, later."""

    nodes: int = parameter(251, "nodes", source="Rappel §6.2.2: 250 and a publisher", low=1, high=MAX_COUNT)
    share: float = parameter(0.5, "share of the nodes that fail", source="Rappel §6.2.2", low=0, high=1)
    fails_s: float = parameter(2 * HOUR_S, "when they fail, seconds", source="Rappel §6.2.2", low=0.001)
    returns_s: float = parameter(3 * HOUR_S, "when they return, seconds", source="Rappel §6.2.2", low=0.001)

    def mistakes(self) -> list[str]:
        if self.returns_s <= self.fails_s:
            return [f"returns_s={self.returns_s:g}: needs to be later than fails_s={self.fails_s:g}"]
        return []

    def sessions(self, seed: int, first: int, last: int) -> tuple[Columns, NDArray[np.float64], NDArray[np.float64]]:
        failing = random_order(seed, _FAILING, self.nodes)[: round(self.share * self.nodes)]
        failing = np.sort(failing[(first <= failing) & (failing < last)])
        everyone = np.arange(first, last, dtype=np.int32)
        ends = np.where(np.isin(everyone, failing), self.fails_s, np.nan)
        joined = np.concatenate([np.zeros(len(everyone)), np.full(len(failing), self.returns_s)])
        left = np.concatenate([ends, np.full(len(failing), np.nan)])
        return np.concatenate([everyone, failing]), joined, left
