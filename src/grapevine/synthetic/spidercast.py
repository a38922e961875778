"""SpiderCast (Chockler et al., DEBS 2007): §3.1 subscriptions by popularity, §3.8 exponential on/off churn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.csr import Columns
from grapevine.kernels.sessions import alternate
from grapevine.model.config import MAX_COUNT, parameter
from grapevine.synthetic.base import ChurnModel
from grapevine.synthetic.popularity import ByPopularity


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiderCast(ByPopularity):
    """A fixed number, or min … max, of topics chosen by popularity: RSS (Zipf 0.5), Zipf 1 and 2, NYSE, uniform."""

    nodes: int = parameter(10_000, "nodes", source="SpiderCast §3.1: 1,000 … 10,000", low=1, high=MAX_COUNT)

    def size_weights(self) -> NDArray[np.float64]:
        return np.ones(self.max_subscriptions - self.min_subscriptions + 1)


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
