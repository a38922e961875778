"""What only SpiderCast has to tell: the random coverage that its nodes have come to want."""

from __future__ import annotations

from grapevine.metrics.catalogue import Metric

RANDOM_COVERAGE = Metric(
    "random_coverage",
    "random coverage, mean",
    "K_r of an online node, in the mean: how often its topics are to be covered by random links.",
)
