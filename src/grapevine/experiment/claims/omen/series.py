"""What judges of several parts of the paper read."""

from __future__ import annotations

from grapevine.experiment.claims.base import (
    Estimate,
    MissingError,
)
from grapevine.systems.omen.config import OmenConfig

SIGHTS = "shadow", "neighbours", "overlay"


SIGHT = OmenConfig().sight


def several(found: Estimate) -> Estimate:
    """The estimate, if it is one of several seeds. A quick run is short, small and alone, and may say the opposite of a
    full one where the verdict hangs on the largest degree of all, on times, or on what adds up over the churn."""
    if found.seeds < 3:
        raise MissingError("a quick run is too short and too small for this; run it in full")
    return found
