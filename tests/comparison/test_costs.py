"""From rows of the table `series` to costs, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from grapevine.comparison.costs import Rates, choices

RATES = Rates(nodes=100, topics=50, events_a_day=12.0, payload=500, source="as asked for")
CALM = {
    "hit_ratio": 1.0,
    "degree": 9.5,
    "degree_max": 10.0,
    "notifications_per_event": 30.0,
    "payloads_per_event": 20.0,
    "hops": 3.0,
    "hops_p99": 7.0,
    "overhead": 0.25,
    "load_max": 40.0,
}


def rows(system: str, parameters: dict[str, Any], workload: str, numbers: dict[str, float]) -> list[dict[str, Any]]:
    common = {"system": system, "workload": workload, "parameters": parameters}
    return [common | {"metric": metric, "mean": value} for metric, value in numbers.items()]


def test_counts_become_bytes_and_loads_of_a_day() -> None:
    budget = {"most_links": 10, "table_size": 10}
    series = rows("vitis", budget, "calm", CALM) + rows("vitis", budget, "crash", {"hit_ratio": 0.9})
    (found,) = choices(series, RATES, [10, 15])
    assert (found.system, found.links, found.needs, found.name) == ("vitis", 10, "", "vitis with 10 links")
    assert found.bytes_a_second == pytest.approx((30 * 48 + 20 * (48 + 500)) * (12 * 50) / 100 / 86_400)
    assert (found.connections, found.connections_max, found.hops, found.hops_p99) == (9.5, 10, 3, 7)
    assert found.busiest == 40 * 12
    assert (found.delivered, found.delivered_in_crash) == (1.0, 0.9)


def test_a_system_without_a_budget_has_no_links_and_says_what_it_needs() -> None:
    (found,) = choices(rows("gm", {}, "calm", CALM), RATES, [10, 15])
    assert (found.links, found.name, found.delivered_in_crash) == (None, "gm", None)
    assert "centre" in found.needs


def test_what_else_was_set_does_not_hide_the_budget() -> None:
    (found,) = choices(rows("opt", {"table_size": 15, "coverage": 2}, "calm", CALM), RATES, [10, 15])
    assert found.links == 15
    (other,) = choices(rows("vitis", {"gateway_reach": 5}, "calm", CALM), RATES, [10, 15])
    assert other.links is None


def test_a_point_without_all_numbers_is_left_out() -> None:
    some = {name: value for name, value in CALM.items() if name != "hops"}
    series = rows("vitis", {}, "calm", some) + rows("rvr", {}, "calm", CALM) + rows("opt", {}, "crash", CALM)
    assert [found.system for found in choices(series, RATES, [10, 15])] == ["rvr"]
