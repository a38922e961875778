"""The headline numbers of one run, from its tables: the same for runs by rounds, in virtual time and live."""

from __future__ import annotations

import pyarrow as pa

from grapevine.metrics.findings import CPU_S, LOOKUP_HOPS, RING, WALL_S
from grapevine.metrics.structure import (
    CLUSTERS_PER_TOPIC,
    CONNECTED_TOPICS,
    DEGREE,
    DEGREE_MAX,
    GATEWAYS_PER_TOPIC,
    NODES,
    NODES_OVER_20_PERCENT,
    OVERHEAD_OF_NODES,
    TOPICS,
)
from grapevine.metrics.timed import (
    DELAY_MS,
    DELAY_MS_AT,
    MESSAGES_PER_S,
    STRETCH,
    STRETCH_AT,
    over_distance,
    quantile,
)
from grapevine.metrics.traffic import (
    BYTES_PER_EVENT,
    DUPLICATES_PER_EVENT,
    HOPS_P99,
    IDS_PER_EVENT,
    NOTIFICATIONS_PER_EVENT,
    OUTCOME,
    OVERHEAD_OF_PAYLOADS,
    PAYLOADS_PER_EVENT,
    RELAYS_PER_EVENT,
    TRAFFIC,
    WAYS,
)
from grapevine.model import tables

BRIEF = *OUTCOME, DEGREE  # where a run has one line
GROUPS = {  # where it has a table, in this order
    "Delivery": (
        *(*OUTCOME, HOPS_P99, OVERHEAD_OF_NODES, OVERHEAD_OF_PAYLOADS),
        *(DELAY_MS, DELAY_MS_AT.of(quantile="p95"), STRETCH),
    ),
    "Traffic": (
        *(NOTIFICATIONS_PER_EVENT, DUPLICATES_PER_EVENT, RELAYS_PER_EVENT),
        *(IDS_PER_EVENT, PAYLOADS_PER_EVENT, BYTES_PER_EVENT),
        NODES_OVER_20_PERCENT,
    ),
    "Overlay": (DEGREE, DEGREE_MAX, CLUSTERS_PER_TOPIC, CONNECTED_TOPICS, GATEWAYS_PER_TOPIC, RING, LOOKUP_HOPS),
    "Effort": (MESSAGES_PER_S, WALL_S, CPU_S),
}
HEADLINE = tuple(metric for group in GROUPS.values() for metric in group)


def headlines(found: dict[str, pa.Table]) -> dict[str, float | None]:
    """What the tables of a run tell, by the names of metrics; None for what they do not tell.

    Needs `events`, `delivery_hops`, `node_load`, `topic_overlay`, `deliveries` and `peers`, of which the last two are
    empty in runs by rounds. The drivers add what no table holds (`findings`).
    """
    measured: dict[str, float | None] = {}
    for declared in (TRAFFIC, WAYS, NODES, TOPICS):
        measured |= declared.in_memory(found[declared.table.name])
    return measured | _by_the_clock(found)


def _by_the_clock(found: dict[str, pa.Table]) -> dict[str, float | None]:
    deliveries, peers = found[tables.DELIVERIES.name], found[tables.PEERS.name]
    delay, way, distance = (deliveries[name].to_numpy() for name in ("delay_ms", "path_ms", "coordinate_ms"))
    stretch, spent = over_distance(way, distance), peers["online_s"].to_numpy()
    sent = peers["messages_in"].to_numpy() + peers["messages_out"].to_numpy()
    return {
        DELAY_MS.name: quantile(delay, 0.5),
        DELAY_MS_AT.of(quantile="p95").name: quantile(delay, 0.95),
        STRETCH.name: quantile(stretch, 0.5),
        STRETCH_AT.of(quantile="p95").name: quantile(stretch, 0.95),
        MESSAGES_PER_S.name: quantile(sent[spent > 0] / spent[spent > 0], 0.5),
    }
