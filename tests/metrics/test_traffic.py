"""Headline numbers of two events, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from grapevine.metrics.definitions import Share, Where
from grapevine.metrics.traffic import TRAFFIC, node_overhead, outcome

EVENTS = {
    "rate": [1.0, 3.0],
    "subscribers": [4, 2],
    "reached": [4, 1],
    "wanted": [4, 1],
    "duplicate": [2, 0],
    "unwanted": [2, 1],
    "relays": [2, 1],
    "ids": [8, 2],
    "payloads": [6, 2],
    "hops_sum": [8, 5],
    "hops_max": [3, 5],
}


def test_events_count_by_their_rate() -> None:
    found = TRAFFIC.of_columns(EVENTS)
    assert found["hit_ratio"] == pytest.approx((4 + 3 * 1) / (4 + 3 * 2))
    assert found["overhead"] == pytest.approx((2 + 3 * 1) / (8 + 3 * 2))
    assert found["hops"] == pytest.approx((8 + 3 * 5) / (4 + 3 * 1))
    assert found["notifications_per_event"] == pytest.approx((8 + 3 * 2) / 4)
    assert found["relays_per_event"] == pytest.approx((2 + 3 * 1) / 4)
    assert found["overhead_of_payloads"] == pytest.approx((2 + 3 * 1) / (6 + 3 * 2))
    assert found["payloads_per_event"] == pytest.approx((6 + 3 * 2) / 4)
    assert found["bytes_per_event"] == pytest.approx(48 * (8 + 3 * 2) / 4 + 1_048 * (6 + 3 * 2) / 4)
    assert found["ids_per_event"] == pytest.approx((8 + 3 * 2) / 4)
    assert found["bytes_per_event_of_200"] == pytest.approx(48 * (8 + 3 * 2) / 4 + 248 * (6 + 3 * 2) / 4)
    assert found["bytes_if_pushed"] == pytest.approx(1_048 * (8 + 3 * 2) / 4)
    assert found["hops_max"] == 5


def test_nothing_published_is_no_number_and_not_zero() -> None:
    assert set(TRAFFIC.of_columns({name: [] for name in EVENTS}).values()) == {None}


def test_on_the_way_three_numbers_tell_of_events() -> None:
    found = TRAFFIC.of_columns(EVENTS)
    assert outcome(EVENTS) == {name: found[name] for name in ("hit_ratio", "overhead", "hops")}


def test_overhead_of_nodes_leaves_out_those_that_received_nothing() -> None:
    overhead = node_overhead(np.array([3.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0]), np.array([1.0, 2.0, 0.0]))
    assert overhead[:2].tolist() == [0.25, 1.0]
    assert np.isnan(overhead[2])
    assert Share(Where("overhead", ">", 0.2)).of({"overhead": overhead}) == 1.0
    assert Share(Where("overhead", ">", 0.25)).of({"overhead": overhead}) == 0.5
    assert Share(Where("overhead", ">", 0.2)).of({"overhead": np.array([np.nan])}) is None
