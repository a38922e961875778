"""What judges of several parts of the paper read: subscription patterns, and the readings of overhead."""

from __future__ import annotations

from grapevine.metrics.structure import (
    OVERHEAD_OF_NODES,
)
from grapevine.metrics.traffic import OVERHEAD, OVERHEAD_OF_PAYLOADS

PATTERNS = "random", "low", "high"


# What "traffic overhead" may mean (§IV); the first is judged, and all are shown.
READINGS = {
    "of notifications": OVERHEAD,
    "in the mean over nodes": OVERHEAD_OF_NODES,
    "of payloads": OVERHEAD_OF_PAYLOADS,
}
