"""LowODA over arrays: its rule and ρ, handed to the centre that designs (`contracts/designs`)."""

from __future__ import annotations

from dataclasses import dataclass

from grapevine.blocks.overlay_design import LOW_ODA
from grapevine.model.config import parameter
from grapevine.systems.contracts.designs import DesignConfig, DesignedSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class LowOdaConfig(DesignConfig):
    """LowODA: between few edges and low degrees."""

    rho: float = parameter(
        3.0,
        "an edge at a node of largest degree must contribute more than this many times the best of the others (ρ)",
        source="OMen Table 1 names ρ without a value; ours",
        low=1.0,
    )


class LowOda(DesignedSystem):
    """LowODA on a network, designed by the centre with its ρ."""

    config_type = LowOdaConfig
    config: LowOdaConfig
    rule = LOW_ODA

    @property
    def rho(self) -> float:
        return self.config.rho
