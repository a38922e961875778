"""Parameters of Magnet, and of what it has in common with its strawman."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.model.config import parameter
from grapevine.systems.contracts.configs import BoundedConfig, RingConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class OscarConfig(RingConfig, BoundedConfig):
    """Parameters of trees of greedy routes over Oscar: Magnet's and its strawman's."""

    table_size: int = parameter(
        19, "links of a node: two on the ring, the others fingers", source="Magnet §4.2: 19", low=4, high=1_000
    )
    settle_rounds: int = parameter(
        0, "rounds before a newcomer is a ring link of others", source="Magnet §3.2: a join is complete", low=0
    )
    walks: int = parameter(5, "random walks to estimate a median", source="Magnet Fig. 1: 5", low=1, high=1_000)
    walk_length: int = parameter(20, "steps of a random walk", source="ours: Magnet names none", low=1, high=1_000)
    rewire_rounds: int = parameter(
        5, "rounds between two choices of fingers", source="ours: Magnet §2.2 says periodically", low=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MagnetConfig(OscarConfig):
    """Magnet: ids on the ring by interest."""

    samples: int = parameter(
        10, "interests that are sampled per topic (k)", source="Magnet §4.2: 10", low=1, high=1_000
    )
    choices: int = parameter(
        2,
        "nodes of which a finger takes the one with the closest interests",
        source="Magnet §2.2: two",
        low=1,
        high=100,
    )
