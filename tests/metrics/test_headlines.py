"""The headline numbers of a run, by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from grapevine.metrics.headlines import BRIEF, HEADLINE, headlines
from grapevine.model import tables


def rows(table: tables.Table, content: list[dict[str, object]]) -> pa.Table:
    """A table in which whatever is not given is 0 or, where that may be, empty."""
    empty = {column.name: None if column.nullable else 0 for column in table.columns}
    made = [empty | row for row in content]
    return pa.table({name: [row[name] for row in made] for name in table.column_names}).cast(table.schema)


EVENT: dict[str, object] = {
    "rate": 1.0,
    "subscribers": 4,
    "reached": 3,
    "wanted": 3,
    "unwanted": 1,
    "relays": 1,
    "ids": 4,
    "payloads": 4,
    "hops_sum": 6,
}
FOUND = {
    "events": rows(tables.EVENTS, [EVENT | {"hops_max": 4}]),
    "delivery_hops": rows(tables.DELIVERY_HOPS, [{"hops": 1, "deliveries": 1.5}, {"hops": 3, "deliveries": 1.5}]),
    "node_load": rows(
        tables.NODE_LOAD,
        [
            {"online": True, "degree": 2, "overhead": 0.5},
            {"online": True, "degree": 5, "overhead": 0.1},
            {"online": False, "degree": 40},
        ],
    ),
    "topic_overlay": rows(
        tables.TOPIC_OVERLAY, [{"subscribers": 3, "clusters": 2, "gateways": 1}, {"subscribers": 0, "clusters": 0}]
    ),
    "deliveries": rows(
        tables.DELIVERIES,
        [
            {"delay_ms": 10.0, "path_ms": 30.0, "coordinate_ms": 20.0},
            {"delay_ms": 30.0, "path_ms": 5.0, "coordinate_ms": 0.0},
        ],
    ),
    "peers": rows(tables.PEERS, [{"online_s": 10.0, "messages_in": 20, "messages_out": 10}, {"messages_in": 7}]),
}


def test_tables_tell_the_headline_numbers() -> None:
    assert headlines(FOUND) == pytest.approx(
        {
            "hit_ratio": 3 / 4,
            "overhead": 1 / 4,
            "hops": 2.0,
            "hops_p99": 3.0,
            "hops_max": 4.0,
            "notifications_per_event": 4.0,
            "duplicates_per_event": 0.0,
            "relays_per_event": 1.0,
            "overhead_of_payloads": 1 / 4,
            "payloads_per_event": 4.0,
            "ids_per_event": 4.0,
            "bytes_per_event": 4 * 48 + 4 * 1_048,
            "bytes_per_event_of_200": 4 * 48 + 4 * 248,
            "bytes_per_event_of_10000": 4 * 48 + 4 * 10_048,
            "bytes_if_pushed": 4 * 1_048,
            "overhead_of_nodes": 0.3,
            "degree": 3.5,
            "degree_max": 5.0,
            "nodes_over_20_percent": 0.5,
            "clusters_per_topic": 2.0,
            "connected_topics": 0.0,
            "gateways_per_topic": 1.0,
            "delay_ms": 20.0,
            "delay_ms_p95": 29.0,
            "stretch": 1.5,
            "stretch_p95": 1.5,
            "messages_per_s": 3.0,
        }
    )


def test_a_run_by_rounds_has_no_delays() -> None:
    nothing = {name: FOUND[name].slice(0, 0) for name in ("deliveries", "peers")}
    found = headlines(FOUND | nothing)
    assert {found[name] for name in ("delay_ms", "delay_ms_p95", "stretch", "messages_per_s")} == {None}
    assert found["hit_ratio"] == 3 / 4


def test_an_empty_network_has_no_numbers_at_all() -> None:
    assert set(headlines({name: content.slice(0, 0) for name, content in FOUND.items()}).values()) == {None}


def test_what_is_printed_is_told_by_tables_or_drivers() -> None:
    by_drivers = {"ring", "lookup_hops", "wall_s", "cpu_s"}
    assert {metric.name for metric in HEADLINE} <= set(headlines(FOUND)) | by_drivers
    assert set(BRIEF) <= set(HEADLINE)
