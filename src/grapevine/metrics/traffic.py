"""What delivery costs, from counts per event and per node. Each measure is defined here and nowhere else.

Counts are weighted by the topic's publication rate: a topic that publishes twice as often counts twice. Definitions
follow Vitis §IV: *hit ratio* is the share of subscribers reached, *overhead* the share of notifications that reached
nodes without interest in them (repeated ones included), *hops* the mean over all deliveries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def _sum(weight: NDArray[np.float64], values: ArrayLike) -> float:
    return float(np.dot(weight, np.asarray(values, np.float64)))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def summarise_events(events: dict[str, Any]) -> dict[str, float | None]:
    """Headline numbers of many events, given as columns (`rate`, `subscribers`, `reached`, `wanted`, …)."""
    weight = np.asarray(events["rate"], np.float64)
    total = {
        name: _sum(weight, events[name])
        for name in ("subscribers", "reached", "wanted", "duplicate", "unwanted", "relays", "hops_sum")
    }
    received = total["wanted"] + total["duplicate"] + total["unwanted"]
    return {
        "hit_ratio": _ratio(total["reached"], total["subscribers"]),
        "overhead": _ratio(total["unwanted"], received),
        "hops": _ratio(total["hops_sum"], total["reached"]),
        "hops_p99": _ratio(_sum(weight, events["hops_p99"]), float(weight.sum())),
        "hops_max": float(np.max(events["hops_max"], initial=0)),
        "notifications_per_event": _ratio(received, float(weight.sum())),
        "duplicates_per_event": _ratio(total["duplicate"], float(weight.sum())),
        "relays_per_event": _ratio(total["relays"], float(weight.sum())),
    }


def node_overhead(
    wanted: NDArray[np.float64], duplicate: NDArray[np.float64], unwanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The overhead that each node experiences: unwanted over all it received; NaN for nodes that received nothing."""
    received = wanted + duplicate + unwanted
    with np.errstate(invalid="ignore"):
        return np.asarray(unwanted / np.where(received > 0, received, np.nan), np.float64)


def share_above(overhead: NDArray[np.float64], threshold: float) -> float | None:
    """The share of nodes with more overhead than the threshold, among those that received anything (Vitis Fig. 5)."""
    known = overhead[~np.isnan(overhead)]
    return _ratio(float((known > threshold).sum()), float(len(known)))
