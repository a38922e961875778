"""GM (Chockler et al., PODC 2007): always the edge that joins most topics.

A centre that knows everything designs the overlay (`contracts/designs`). Few edges, but some nodes become hubs.
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="gm",
        paper="Chockler, Melamed, Tock & Vitenberg, PODC 2007 (as in OMen, DEBS 2016)",
        summary="greedy merge from full knowledge: always the edge that joins most topics; few edges, but hubs",
        rounds="grapevine.systems.gm.rounds:Gm",
    )
)
