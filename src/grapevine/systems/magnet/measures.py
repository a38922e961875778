"""What only Magnet and its strawman have to tell: how many control messages they cost."""

from __future__ import annotations

from grapevine.metrics.catalogue import Metric

CONTROL = Metric(
    "control_{kind}",
    "control messages of a node in a round: {kind}",
    "Control messages of the kind {kind} in a round over nodes that are online, in the mean over a run's rounds, its "
    "beginning included.",
    better="low",
)
