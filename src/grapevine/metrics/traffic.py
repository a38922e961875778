"""What delivery costs, from counts per event and per node.

Counts are weighted by the topic's publication rate: a topic that publishes twice as often counts twice. Definitions
follow Vitis §IV: *hit ratio* is the share of subscribers reached, *overhead* the share of notifications that reached
nodes without interest in them (repeated ones included), *hops* the mean over all deliveries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.metrics.catalogue import Metric
from grapevine.metrics.definitions import Largest, Ratio
from grapevine.metrics.measured import Measure, MeasuredTable, declare
from grapevine.model.tables import EVENTS

RECEIVED = "wanted", "duplicate", "unwanted"

HIT_RATIO = Metric(
    "hit_ratio",
    "hit ratio",
    "The share of the subscribers that count whom an event reached, of all events.",
    share=True,
    better="high",
)
OVERHEAD = Metric(
    "overhead",
    "overhead",
    "The share of all notifications that went to nodes without interest in the topic, repeated ones included.",
    share=True,
    better="low",
)
HOPS = Metric("hops", "hops", "Nodes that passed an event on, in the mean over deliveries.", "hops", better="low")
HOPS_P99 = Metric(
    "hops_p99",
    "hops, p99",
    "Hops within which 99 % of the reached subscribers were reached, in the mean over events.",
    "hops",
    better="low",
)
HOPS_MAX = Metric("hops_max", "hops, max", "Hops of the longest delivery.", "hops", better="low")
NOTIFICATIONS_PER_EVENT = Metric(
    "notifications_per_event", "notifications per event", "Notifications of a mean event, wanted or not.", better="low"
)
DUPLICATES_PER_EVENT = Metric(
    "duplicates_per_event",
    "duplicates per event",
    "Notifications of a mean event to interested nodes that had it already.",
    better="low",
)
RELAYS_PER_EVENT = Metric(
    "relays_per_event",
    "relays per event",
    "Nodes without interest in the topic that a mean event reached.",
    better="low",
)
OUTCOME = HIT_RATIO, OVERHEAD, HOPS  # what is told of events first, and on the way

TRAFFIC = declare(
    MeasuredTable(
        EVENTS,
        (
            Measure.defined(HIT_RATIO, Ratio(("reached",), ("subscribers",))),
            Measure.defined(OVERHEAD, Ratio(("unwanted",), RECEIVED)),
            Measure.defined(HOPS, Ratio(("hops_sum",), ("reached",))),
            Measure.defined(HOPS_P99, Ratio(("hops_p99",))),
            Measure.defined(HOPS_MAX, Largest("hops_max")),
            Measure.defined(NOTIFICATIONS_PER_EVENT, Ratio(RECEIVED)),
            Measure.defined(DUPLICATES_PER_EVENT, Ratio(("duplicate",))),
            Measure.defined(RELAYS_PER_EVENT, Ratio(("relays",))),
        ),
    )
)


def outcome(events: dict[str, Any]) -> dict[str, float | None]:
    """What became of some events, given as columns of the table `events`: the columns of `rounds` that tell of it."""
    numbers = TRAFFIC.of_columns(events)
    return {metric.name: numbers[metric.name] for metric in OUTCOME}


def node_overhead(
    wanted: NDArray[np.float64], duplicate: NDArray[np.float64], unwanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The overhead that each node experiences: unwanted over all it received; NaN for nodes that received nothing."""
    received = wanted + duplicate + unwanted
    with np.errstate(invalid="ignore"):
        return np.asarray(unwanted / np.where(received > 0, received, np.nan), np.float64)
