"""What a model is: a config that can say the subscriptions, or sessions, of any range of nodes.

A row depends on the model's parameters, the seed and the node alone, so any partition of the nodes gives the same rows.
Used by `synthetic.generate` in one process, and by `pipeline/generate` in Spark tasks.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.rng import priorities
from grapevine.model.config import MAX_COUNT, Config, parameter

_RATES = 101  # the `round` word of the draws that order topics by rate; other models' words follow on it


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionModel(Config):
    """A model of who subscribes to what."""

    whole: ClassVar[bool] = False  # True: the model is one sequential process and cannot be split by node
    topic_is_node: ClassVar[bool] = False  # True: topic t is published by node t

    nodes: int = parameter(10_000, "nodes", source="ours", low=1, high=MAX_COUNT)
    rate_exponent: float = parameter(
        0.0,
        "publication rates ∝ rank^-x over randomly ranked topics; 0: all equal",
        source="Vitis §IV-D: 0.3 … 3",
        low=0,
    )

    @property
    @abstractmethod
    def topic_count(self) -> int:
        """The number of topics; they are 0 … topic_count-1. A topic may have no subscriber."""

    @abstractmethod
    def subscriptions(self, seed: int, first: int, last: int) -> tuple[Starts, Columns]:
        """Topics of the nodes first … last-1 as rows, ascending in each.

        A model that is `whole` takes all nodes at once, and ValueError any other range.
        """

    def rates(self, seed: int) -> NDArray[np.float64]:
        """Publication rate of every topic, relative: the mean is 1. Which topic has which rate depends on the seed."""
        weights = zipf(self.topic_count, self.rate_exponent)
        rates = np.empty(self.topic_count)
        rates[random_order(seed, _RATES, self.topic_count)] = weights * (self.topic_count / weights.sum())
        return rates


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnModel(Config):
    """A model of when nodes are there."""

    nodes: int = parameter(1_250, "nodes", source="SpiderCast §3.8: 1,250 and 2,500", low=1, high=MAX_COUNT)

    @abstractmethod
    def sessions(self, seed: int, first: int, last: int) -> tuple[Columns, NDArray[np.float64], NDArray[np.float64]]:
        """Columns (node, joined_s, left_s), a row per session of the nodes first … last-1, in seconds from the trace's
        start.

        left_s is NaN for sessions that outlast the trace. A node's sessions do not overlap.
        """


def zipf(count: int, exponent: float) -> NDArray[np.float64]:
    """Weights rank^-exponent of ranks 1 … count."""
    return np.arange(1, count + 1, dtype=np.float64) ** -exponent


def random_order(seed: int, purpose: int, count: int) -> Columns:
    """A random permutation of 0 … count-1, by a hash of seed, purpose and element."""
    return np.argsort(priorities(seed, purpose, count), kind="stable").astype(np.int32)
