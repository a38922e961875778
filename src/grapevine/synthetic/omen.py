"""OMen (Chen et al., DEBS 2016) §6.1: Unif, Zipf and Expo popularity, power-law subscription sizes; machine churn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns
from grapevine.kernels.sessions import alternate
from grapevine.model.config import MAX_COUNT, parameter
from grapevine.synthetic.base import ChurnModel
from grapevine.synthetic.popularity import LAWS, ByPopularity


@dataclass(frozen=True, slots=True, kw_only=True)
class Omen(ByPopularity):
    """10 … 90 of 200 topics by popularity, sizes by a power law: Unif, Zipf (exponent 2) or Expo."""

    nodes: int = parameter(2_000, "nodes", source="OMen §6.1", low=1, high=MAX_COUNT)
    topics: int = parameter(200, "topics", source="OMen §6.1", low=1, high=MAX_COUNT)
    popularity: str = parameter("uniform", "popularity law; exponential is Expo", source="OMen §6.1", choices=LAWS)
    exponent: float = parameter(2.0, "Zipf exponent", source="OMen §6.1", low=0)
    min_subscriptions: int = parameter(10, "fewest topics of a node", source="OMen §6.1", low=1)
    max_subscriptions: int = parameter(90, "most topics of a node", source="OMen §6.1", low=1)
    size_exponent: float = parameter(
        2.0, "sizes s occur ∝ s^-x", source="ours: the paper says power law and gives no exponent", low=0
    )

    def size_weights(self) -> NDArray[np.float64]:
        sizes = np.arange(self.min_subscriptions, self.max_subscriptions + 1, dtype=np.float64)
        return np.asarray(sizes**-self.size_exponent, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineChurn(ChurnModel):
    """Machines of a data centre: removed about once a month, back soon. For where Google's trace is not at hand."""

    nodes: int = parameter(1_000, "machines", source="OMen §6.1: 1,000 and 10,000", low=1, high=MAX_COUNT)
    mean_up_s: float = parameter(
        29 * 86_400.0, "mean time between removals, seconds", source="ours: a month, as long as the trace", low=0.001
    )
    mean_down_s: float = parameter(1_800.0, "mean absence, seconds", source="ours: an upgrade, half an hour", low=0.001)
    duration_s: float = parameter(29 * 86_400.0, "length, seconds", source="the trace has 29 days", low=0.001)

    def sessions(self, seed: int, first: int, last: int) -> tuple[Columns, NDArray[np.float64], NDArray[np.float64]]:
        return alternate(seed, first, last, self.mean_up_s, self.mean_down_s, self.duration_s)
