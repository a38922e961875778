"""What Magnet saves against the strawman, as its claims state it.

A saving is one minus the ratio of two means over seeds. Its interval follows from theirs, as of independent errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from grapevine.experiment.claims.base import Evidence
from grapevine.metrics.catalogue import Metric
from grapevine.metrics.traffic import RELAYS_PER_EVENT


@dataclass(frozen=True, slots=True)
class Saving:
    """The share of the strawman's uninterested relays that Magnet does without, with half its 95 % interval."""

    share: float
    half: float


def saved(
    evidence: Evidence, experiment: str, workload: str, metric: Metric = RELAYS_PER_EVENT, **point: object
) -> Saving:
    """What Magnet saves at one point."""
    magnet, strawman = (
        evidence.estimate(experiment, metric, system, workload, **point) for system in ("magnet", "strawman")
    )
    left = magnet.mean / strawman.mean
    return Saving(1 - left, left * math.hypot(magnet.half / magnet.mean, strawman.half / strawman.mean))


def means(savings: list[Saving]) -> list[float]:
    """Their shares."""
    return [saving.share for saving in savings]


def shares(savings: list[Saving]) -> str:
    """Savings of a curve, with slashes between, and the widest of their intervals."""
    widest = max(saving.half for saving in savings)
    return "/".join(f"{100 * saving.share:.0f}" for saving in savings) + f" % (± {100 * widest:.1f})"
