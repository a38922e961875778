"""Parameters of OMen."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.blocks.overlay_design import SIGHTS
from grapevine.model.config import parameter
from grapevine.systems.contracts.configs import FloodingConfig, GossipConfig
from grapevine.systems.omen.set_cover import RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class OmenConfig(GossipConfig, FloodingConfig):
    """OMen: coverage factor λ, resilience factor L."""

    coverage: int = parameter(
        5, "backups wanted for each topic of a node (λ)", source="OMen §4.2: 5", low=0, high=1_000
    )
    resilience: int = parameter(
        3, "concurrent churn events that are survived (L)", source="OMen §3.3; §6.3 uses 1", low=1, high=100
    )
    backups: str = parameter("primal-dual", "how backup sets are built", source="OMen §4.2", choices=tuple(RULES))
    view: str = parameter(
        "partial",
        "what coordinators know: gossiped local views, or everybody (OMen-G)",
        source="OMen Table 3",
        choices=("partial", "global"),
    )
    sight: str = parameter(
        "overlay",
        "links that a coordinator counts: inside the shadow set, also to its members' neighbours, or the whole overlay",
        source="OMen Lemma 1: E_cur are all links; Alg. 1: shadow; neighbours is ours (docs/papers.md#omen)",
        choices=tuple(SIGHTS),
    )
    rho: float = parameter(
        3.0, "ρ of LowODA, for the first design and for repairs", source="OMen Table 1 names no value; ours", low=1.0
    )
    patience: int = parameter(
        5,
        "rounds without gain after which a backup set is taken as it is",
        source="ours: some topics have fewer subscribers than λ",
        low=1,
    )
    timeout: int = parameter(
        20, "rounds after which a successor that stands by acts", source="OMen Alg. 5 names no period", low=1
    )
