"""MinMaxODA (Onus & Richa, INFOCOM 2009): the lowest largest degree first, then the edge that joins most topics.

A centre that knows everything designs the overlay (`contracts/designs`). No hubs, but more edges than GM.
"""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="minmax-oda",
        paper="Onus & Richa, INFOCOM 2009 (as in OMen, DEBS 2016)",
        summary="from full knowledge: the edge that joins most topics among those that keep the largest degree lowest",
        rounds="grapevine.systems.minmax_oda.rounds:MinMaxOda",
    )
)
