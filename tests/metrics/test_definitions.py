"""Definitions in memory against values by hand; `tests/pipeline/test_declared.py` compares their other reading."""

from __future__ import annotations

import numpy as np
import pytest

from grapevine.metrics.definitions import Definition, Largest, Mean, Rank, Ratio, Share, Where
from grapevine.metrics.structure import TOPICS

NODES = {
    "online": np.array([True, True, True, False]),
    "degree": np.array([1, 4, 4, 9]),
    "overhead": np.array([0.5, np.nan, 0.1, 0.9]),
}
ONLINE = Where("online", "=", True)


@pytest.mark.parametrize(
    ("definition", "expected", "sql"),
    [
        (Mean("degree", ONLINE), 3.0, "avg(degree) FILTER (WHERE online = true)"),
        (Mean("overhead"), 0.5, "avg(overhead)"),
        (Largest("degree"), 9.0, "max(degree)"),
        (Largest("degree", Where("overhead", "known")), 9.0, "max(degree) FILTER (WHERE overhead IS NOT NULL)"),
        (Largest("degree", Where("overhead", "<", 0.5)), 4.0, "max(degree) FILTER (WHERE overhead < 0.5D)"),
        (Share(Where("degree", ">", 1), ONLINE), 2 / 3, "avg(CAST(degree > 1 AS DOUBLE)) FILTER (WHERE online = true)"),
        (Share(Where("overhead", ">", 0.2)), 2 / 3, "avg(CAST(overhead > 0.2D AS DOUBLE))"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_definition_has_a_value_in_memory_and_a_text_for_spark(
    definition: Definition, expected: float, sql: str
) -> None:
    assert definition.of(NODES) == pytest.approx(expected)
    assert definition.sql() == sql


def test_nothing_to_aggregate_is_no_number() -> None:
    nobody = {name: values[:0] for name, values in NODES.items()}
    for definition in (Mean("degree"), Largest("degree", ONLINE), Share(Where("overhead", ">", 0.2))):
        assert definition.of(nobody) is None


def test_a_ratio_weighs_rows_by_their_rate() -> None:
    events: dict[str, list[float]] = {"rate": [1.0, 3.0], "relays": [2, 4], "wanted": [1, 1], "unwanted": [0, 2]}
    assert Ratio(("unwanted",), ("wanted", "unwanted")).of(events) == 6 / 10
    assert Ratio(("relays",)).of(events) == 14 / 4
    assert Ratio(("relays",), ("unwanted",)).of(events | {"unwanted": [0, 0]}) is None


def test_a_rank_is_taken_over_weights_and_not_over_rows() -> None:
    ways: dict[str, list[float]] = {"hops": [3, 1, 2, 9], "deliveries": [1.0, 97.0, 1.0, 1.0]}
    assert [Rank("hops", "deliveries", percent).of(ways) for percent in (50, 97, 98, 99, 100)] == [1, 1, 2, 3, 9]
    assert Rank("hops", "deliveries", 99).of({"hops": [1, 2], "deliveries": [0.0, 0.0]}) is None
    assert Rank("hops", "deliveries", 99).of({"hops": [], "deliveries": []}) is None


def test_topics_of_one_subscriber_are_in_one_cluster_and_tell_nothing() -> None:
    topics = {"subscribers": np.array([1, 1, 4, 2]), "clusters": np.array([1, 1, 1, 2]), "gateways": np.zeros(4)}
    found = TOPICS.of_columns(topics | {"diameter": np.full(4, np.nan)})
    assert found["connected_topics"] == 0.5
