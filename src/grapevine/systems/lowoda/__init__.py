"""LowODA (Onus & Richa, ICDCS 2010): between GM's few edges and MinMaxODA's low degrees, balanced by ρ.

A centre that knows everything designs the overlay (`contracts/designs`). OMen starts from it, and mends with it.
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="lowoda",
        paper="Onus & Richa, ICDCS 2010 (as in OMen, DEBS 2016)",
        summary="from full knowledge: between GM and MinMaxODA, balanced by ρ",
        rounds="grapevine.systems.lowoda.rounds:LowOda",
    )
)
