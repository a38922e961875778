"""GM over arrays: its rule, handed to the centre that designs (`contracts/designs`)."""

from __future__ import annotations

from grapevine.blocks.overlay_design import GM
from grapevine.systems.contracts.designs import DesignConfig, DesignedSystem


class Gm(DesignedSystem):
    """GM on a network, designed by the centre."""

    config_type = DesignConfig
    rule = GM
