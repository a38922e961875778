"""The strawman of Magnet (DEBS 2010, §4): the same trees on hashed ids, so that nobody looks at interests."""

from __future__ import annotations

from grapevine.systems.registry import System, register

register(
    System(
        name="strawman",
        paper="the baseline of Magnet, DEBS 2010, §4 (as Scribe, Castro et al. 2002)",
        summary="Magnet's trees on hashed ids: nobody looks at interests",
        rounds="grapevine.systems.strawman.rounds:Strawman",
    )
)
