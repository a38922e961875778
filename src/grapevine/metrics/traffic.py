"""What delivery costs, from counts per event and per node.

Counts are weighted by the topic's publication rate: a topic that publishes twice as often counts twice. Definitions
follow Vitis §IV: *hit ratio* is the share of subscribers reached, *hops* the mean over all deliveries.

*Overhead*, the share of relay traffic that nodes have to bear, can be read in three ways, and all three are
measured: as a share of all notifications, repeated ones included (`overhead`); as the mean of what each node
experiences (`overhead_of_nodes`); and as a share of the events themselves (`overhead_of_payloads`), since an event is
announced by every neighbour but pulled from one of them (§III-C). No claim picks one of them for itself.

Ids and payloads are counted apart (columns `ids` and `payloads`): a flood announces the event on every link, and who
hears of it pulls it once; a tree pushes it, and a few other links carry its id. In bytes, an id is a frame of ours with
topic and event id, and a payload the size of a short message; what pushing the payload with every notification would
cost stands beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grapevine.metrics.catalogue import Metric, add
from grapevine.metrics.definitions import Costs, Largest, Rank, Ratio
from grapevine.metrics.measured import Measure, MeasuredTable, declare
from grapevine.model.tables import DELIVERY_HOPS, EVENTS

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
OVERHEAD_OF_PAYLOADS = Metric(
    "overhead_of_payloads",
    "overhead, payloads",
    "The share of pulled events that went to nodes without interest in the topic; everybody pulls an event once.",
    share=True,
    better="low",
)
HOPS = Metric("hops", "hops", "Nodes that passed an event on, in the mean over deliveries.", "hops", better="low")
HOPS_P99 = Metric(
    "hops_p99",
    "hops, p99",
    "Hops within which 99 % of all deliveries were made.",
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
PAYLOADS_PER_EVENT = Metric(
    "payloads_per_event",
    "payloads per event",
    "Copies of a mean event itself, wanted or not: one for each node that pulls it, or every notification of a tree.",
    better="low",
)
IDS_PER_EVENT = Metric(
    "ids_per_event",
    "ids per event",
    "Notifications that only name a mean event: all of a flood, or those on the lazy links beside a tree.",
    better="low",
)
ANNOUNCEMENT_BYTES, PULL_BYTES, PAYLOAD_BYTES = 48, 48, 1_000
BYTES_PER_EVENT = Metric(
    "bytes_per_event",
    "bytes per event",
    f"What a mean event costs all nodes together: {ANNOUNCEMENT_BYTES} bytes for each id, and for each payload "
    f"{PAYLOAD_BYTES:,} and the {PULL_BYTES} of a request, or of the frame in which it is pushed.",
    "kB",
    better="low",
    per_unit=1_000,
)
BYTES_OF = add(
    Metric(
        "bytes_per_event_of_{number}",
        "bytes per event of {number}",
        f"What a mean event costs all nodes together if it has so many bytes: {ANNOUNCEMENT_BYTES} for each id, and "
        f"for each payload {PULL_BYTES} more than it has.",
        "kB",
        better="low",
        per_unit=1_000,
    )
)
SIZES = 200, 10_000  # a sensor's reading, an article
BYTES_IF_PUSHED = Metric(
    "bytes_if_pushed",
    "bytes per event, if pushed",
    f"What a mean event would cost if every notification carried its payload of {PAYLOAD_BYTES:,} bytes.",
    "kB",
    better="low",
    per_unit=1_000,
)
RELAYS_PER_TREE = Metric(
    "relays_per_tree",
    "relays per tree",
    "Nodes without interest in the topic that an event reached, in the mean over events, whatever their topics' rates.",
    better="low",
)
OVERHEAD_OF_POPULAR = add(
    Metric(
        "overhead_of_popular_{number}",
        "overhead, {number} most popular topics",
        "The overhead of the events on the {number} topics with most subscribers.",
        share=True,
        better="low",
    )
)
OVERHEAD_OF_BUSIEST = add(
    Metric(
        "overhead_of_busiest_{number}",
        "overhead, {number} busiest topics",
        "The overhead of the events on the {number} topics with the highest publication rates.",
        share=True,
        better="low",
    )
)
FIRST_TOPICS = 10, 50, 100, 200, 500  # Magnet Fig. 5 draws the overhead of the first x topics over x
OUTCOME = HIT_RATIO, OVERHEAD, HOPS  # what is told of events first, and on the way


def _costs(payload: int) -> Costs:
    return Costs({"ids": ANNOUNCEMENT_BYTES, "payloads": PULL_BYTES + payload})


_PUSHED = dict.fromkeys(RECEIVED, ANNOUNCEMENT_BYTES + PAYLOAD_BYTES)

TRAFFIC = declare(
    MeasuredTable(
        EVENTS,
        (
            Measure.defined(HIT_RATIO, Ratio(("reached",), ("subscribers",))),
            Measure.defined(OVERHEAD, Ratio(("unwanted",), RECEIVED)),
            Measure.defined(OVERHEAD_OF_PAYLOADS, Ratio(("relays",), ("wanted", "relays"))),
            Measure.defined(HOPS, Ratio(("hops_sum",), ("reached",))),
            Measure.defined(HOPS_MAX, Largest("hops_max")),
            Measure.defined(NOTIFICATIONS_PER_EVENT, Ratio(RECEIVED)),
            Measure.defined(DUPLICATES_PER_EVENT, Ratio(("duplicate",))),
            Measure.defined(RELAYS_PER_EVENT, Ratio(("relays",))),
            Measure.defined(PAYLOADS_PER_EVENT, Ratio(("payloads",))),
            Measure.defined(IDS_PER_EVENT, Ratio(("ids",))),
            Measure.defined(BYTES_PER_EVENT, _costs(PAYLOAD_BYTES)),
            *(Measure.defined(BYTES_OF.of(number=size), _costs(size)) for size in SIZES),
            Measure.defined(BYTES_IF_PUSHED, Costs(_PUSHED)),
            Measure(RELAYS_PER_TREE, "avg(relays)"),
        ),
    )
)

_P99 = Rank("hops", "deliveries", 99)
WAYS = declare(MeasuredTable(DELIVERY_HOPS, (Measure.defined(HOPS_P99, _P99),), derived=_P99.derived()))


def _overhead_of_first(family: Metric, place: str) -> tuple[Measure, ...]:
    """The overhead of the topics at the first so many places."""
    received = " + ".join(RECEIVED)
    return tuple(
        Measure(
            family.of(number=most),
            f"sum(rate * unwanted) FILTER (WHERE {place} <= {most}) / "
            f"nullif(sum(rate * ({received})) FILTER (WHERE {place} <= {most}), 0)",
        )
        for most in FIRST_TOPICS
    )


TRAFFIC_OF_FIRST = declare(
    MeasuredTable(
        EVENTS,
        (*_overhead_of_first(OVERHEAD_OF_POPULAR, "popular"), *_overhead_of_first(OVERHEAD_OF_BUSIEST, "busy")),
        derived=(
            ("popular", "dense_rank() OVER (PARTITION BY run_id ORDER BY subscribers DESC, topic)"),
            ("busy", "dense_rank() OVER (PARTITION BY run_id ORDER BY rate DESC, topic)"),
        ),
    )
)


def outcome(events: dict[str, Any]) -> dict[str, float | None]:
    """What became of some events, given as columns of the table `events`: the columns of `rounds` that tell of it."""
    numbers = TRAFFIC.of_columns(events)
    return {metric.name: numbers[metric.name] for metric in OUTCOME}


def delivery_hops(rounds: NDArray[Any], event: NDArray[Any], hops: NDArray[Any]) -> pa.Table:
    """The table `delivery_hops` of a timed run, where every event counts once: from the rounds of its events, and of
    each delivery the event (its row number) and the hops."""
    each = np.stack([rounds[event], hops]).astype(np.int32)
    (when, far), count = np.unique(each, axis=1, return_counts=True)
    return pa.table([when, far, count.astype(np.float64)], schema=DELIVERY_HOPS.schema)


def node_overhead(
    wanted: NDArray[np.float64], duplicate: NDArray[np.float64], unwanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The overhead that each node experiences: unwanted over all it received; NaN for nodes that received nothing."""
    received = wanted + duplicate + unwanted
    with np.errstate(invalid="ignore"):
        return np.asarray(unwanted / np.where(received > 0, received, np.nan), np.float64)
