"""similarity(x, y) over arrays: two tasks that want a number of neighbours, one of similar and one of random nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grapevine.blocks.connections import SIMILAR, STRANGER
from grapevine.kernels.csr import Columns
from grapevine.model.config import parameter
from grapevine.systems.contracts.configs import ConnectionConfig
from grapevine.systems.contracts.connections import ConnectionSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityConfig(ConnectionConfig):
    """Parameters of similarity(x, y); similarity(0, y) is random(y)."""

    similar: int = parameter(
        10, "neighbours chosen for their common topics (x)", source="SpiderCast §3.9.1: 7 … 20", low=0, high=1_000
    )
    random: int = parameter(
        0, "neighbours chosen at random (y)", source="SpiderCast §3.9.1: 0 … 3, or 10", low=0, high=1_000
    )

    def mistakes(self) -> list[str]:
        if self.similar == 0 and self.random == 0:
            return ["similar=0, random=0: nobody would look for neighbours; give one of them"]
        return []


class Similarity(ConnectionSystem):
    """similarity(x, y) on a network."""

    config_type = SimilarityConfig
    config: SimilarityConfig
    rules = (SIMILAR, STRANGER)

    def wanted(self, rule: int) -> int:
        return self.config.similar if rule == SIMILAR else self.config.random

    def limit(self, rule: int, k: Columns) -> Columns:
        """The most neighbours are as many as are wanted, whatever a node subscribes to."""
        return np.asarray(k, np.int32).copy()
