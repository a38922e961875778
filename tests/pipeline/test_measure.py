"""What Spark measures of the tables of runs, on rows that were written down by hand or against numpy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from scipy.stats import linregress

from grapevine.metrics.course import COURSE
from grapevine.metrics.measured import MeasuredTable
from grapevine.metrics.structure import TOPICS
from grapevine.metrics.timed import BY_DISTANCE, DELIVERY, PEER_LOAD
from grapevine.metrics.traffic import RELAYS_PER_EVENT, RELAYS_PER_TREE, TRAFFIC, TRAFFIC_OF_FIRST
from grapevine.model import tables
from grapevine.pipeline.declared import metrics_of
from grapevine.pipeline.measure import message_metrics
from grapevine.pipeline.stage import Stage, spark_schema
from grapevine.systems.contracts.trees import PLACES, TREES
from grapevine.systems.omen.measures import BACKUP_VIEWS, MENDING
from grapevine.systems.rappel.measures import COVERAGE, FRIENDS


def test_the_worst_moment_of_a_crowd_is_that_of_the_rounds_after_most_came(stage: Stage) -> None:
    online = {1: 90, 2: 40, 3: 40, 4: 80, 5: 85, 24: 85, 25: 85}
    hit = {1: 1.0, 2: 0.5, 3: 0.6, 4: 0.9, 5: 0.8, 24: 0.85, 25: 0.7}  # the crowd comes in round 4 and is over after 24
    rows = [
        (run, r, online[r], hit[r], r / 100, 1.0 * r, 3.0, 1.0, 4 + r, 2.0 * r, 3 * r)
        for run in ("a", "b")
        for r in online
    ]
    shrinking = [("c", r, 10 - r, hit[r], 0.5, 2.0, 3.0, 1.0, 4 + r, None, None) for r in (1, 2, 3)]
    frame = stage.spark.createDataFrame(
        rows + shrinking,
        "run_id string, round int, online int, hit_ratio double, overhead double, hops double, degree double, "
        "connected_topics double, degree_max long, diameter double, diameter_max long",
    )
    found = {(row.run_id, row.metric): row.value for row in metrics_of(frame, COURSE).collect()}
    assert found["a", "hit_ratio_min"] == 0.5
    assert found["a", "hit_ratio_min_crowd"] == found["b", "hit_ratio_min_crowd"] == 0.8
    assert found["a", "overhead_before_crowd"] == pytest.approx((1 + 2 + 3) / 300)
    assert found["a", "overhead_in_crowd"] == pytest.approx((4 + 5 + 24) / 300)
    assert found["a", "overhead_after_crowd"] == pytest.approx((24 + 25) / 200)
    assert (found["a", "hops_before_crowd"], found["a", "hops_after_crowd"]) == (2.0, 24.5)
    assert found["c", "hit_ratio_min_crowd"] is found["c", "overhead_in_crowd"] is None
    assert (found["c", "degree_max_on_the_way"], found["c", "diameter_on_the_way"]) == (6.0, None)
    assert found["a", "diameter_max_on_the_way"] == 1.5 * found["a", "diameter_on_the_way"]
    assert found["a", "diameter_on_the_way"] == 2 * found["a", "degree_max_on_the_way"] - 8


def test_only_topics_in_one_cluster_have_a_diameter(stage: Stage) -> None:
    """The longest path in a piece of a topic is not how far its subscribers are from each other."""
    rows = [("a", 9, 1, 0, 4), ("a", 9, 1, 0, 5), ("a", 9, 2, 0, 7), ("a", 0, 0, 0, 0), ("b", 9, 3, 0, 2)]
    schema = "run_id string, subscribers long, clusters long, gateways long, diameter long"
    values = {
        (row.run_id, row.metric): row.value
        for row in metrics_of(stage.spark.createDataFrame(rows, schema), TOPICS).collect()
    }
    assert (values["a", "diameter_max"], values["a", "diameter"]) == (5.0, 4.5)
    assert (values["b", "diameter_max"], values["b", "diameter"]) == (None, None)


def test_relays_are_weighted_by_rate_and_not_and_overhead_is_that_of_the_first_topics(stage: Stage) -> None:
    """Magnet §4.5 averages over trees; Fig. 5 draws the overhead of the first x topics, the most popular ones first."""
    rows = [("a", topic, 1.0, 200 - topic, 99, 0, 1, 1) for topic in range(99)]
    rows += [("a", 99, 101.0, 1, 1, 0, 9, 9)]  # nobody wants it much, and it is the busiest
    rows += [("calm", 0, 1.0, 0, 0, 0, 0, 0)]
    schema = (
        "run_id string, topic int, rate double, subscribers long, wanted long, duplicate long, unwanted long, "
        "relays long"
    )
    frame = stage.spark.createDataFrame(rows, schema)
    relays = tuple(one for one in TRAFFIC.measures if one.metric in (RELAYS_PER_EVENT, RELAYS_PER_TREE))
    found = {
        (row.run_id, row.metric): row.value
        for part in (MeasuredTable(tables.EVENTS, relays), TRAFFIC_OF_FIRST)
        for row in metrics_of(frame, part).collect()
    }
    assert found["a", "relays_per_tree"] == pytest.approx((99 + 9) / 100)
    assert found["a", "relays_per_event"] == pytest.approx((99 + 101 * 9) / 200)
    assert found["a", "overhead_of_popular_10"] == found["a", "overhead_of_popular_50"] == pytest.approx(0.01)
    everything = (99 + 101 * 9) / (99 * 100 + 101 * 10)
    assert found["a", "overhead_of_popular_100"] == found["a", "overhead_of_busiest_500"] == pytest.approx(everything)
    assert found["a", "overhead_of_busiest_10"] == pytest.approx((9 + 101 * 9) / (9 * 100 + 101 * 10))
    assert found["calm", "overhead_of_popular_10"] is None


def test_messages_are_counted_per_join_or_leave_after_the_first_row(stage: Stage) -> None:
    rounds = [("a", 10, 50, 5), ("a", 20, 3, 2), ("a", 30, 4, 1), ("calm", 10, 9, 0), ("calm", 20, 0, 0)]
    sent = [
        ("a", 10, "connect", 99, 99),
        ("a", 20, "connect", 30, 60),
        ("a", 30, "connect", 10, 15),
        ("a", 30, "connect-ok", 5, 0),
    ]
    found = message_metrics(
        stage.spark.createDataFrame(
            [*sent, ("calm", 20, "connect", 7, 7)],
            "run_id string, round int, kind string, count long, descriptors long",
        ),
        stage.spark.createDataFrame(rounds, "run_id string, round int, joined long, left long"),
    )
    assert {(row.run_id, row.metric): row.value for row in found.collect()} == {
        ("a", "connect_per_change"): 4.0,
        ("a", "connect_ok_per_change"): 0.5,
        ("a", "messages_per_change"): 4.5,
        ("a", "descriptors_per_change"): 7.5,
    }


def test_views_and_backups_are_those_of_nodes_that_are_there(stage: Stage) -> None:
    """Of 20 nodes online a small view is one of less than 5 % of them (OMen §6.4): of nobody. 20 others are gone."""
    view = [0, 1, 1, 1] + [5] * 16
    backups = [2, 4] * 10
    backup_of = [1, 4, 5, 12] + [6] * 16  # fewer than 5: rarely (§6.3)
    rows = [("omen", True, 3, 0.0, *mine) for mine in zip(view, backups, backup_of, strict=True)]
    rows += [("omen", False, 3, 0.0, 0, 99, gone) for gone in (0, 99) * 10]
    none = [("vitis", True, 3, 0.0, None, None, None)]
    schema = "run_id string, online boolean, degree long, overhead double, view long, backups long, backup_of long"
    found = metrics_of(stage.spark.createDataFrame(rows + none, schema), BACKUP_VIEWS).collect()
    values = {(row.run_id, row.metric): row.value for row in found}
    expected = {
        "view": (0 + 3 + 80) / 20,
        "small_views": 1 / 20,
        "backups": 3.0,
        "backups_share": 3 / 20,
        "backup_of_min": 1.0,
        "backup_of_max": 12.0,
        "backup_of_rarely": 2 / 20,
    }
    assert {name: values["omen", name] for name in expected} == pytest.approx(expected)
    assert {values["vitis", name] for name in expected} == {None}


def test_repairs_that_nobody_finished_are_not_counted(stage: Stage) -> None:
    rows = [("a", 10, 12, 4, 2), ("a", 20, 21, 6, 0), ("a", 30, None, 50, 9), ("b", 10, 10, 1, 3), ("c", 5, None, 7, 7)]
    schema = "run_id string, round int, finished int, shadow long, added long"
    found = metrics_of(stage.spark.createDataFrame(rows, schema), MENDING).collect()
    assert {(row.run_id, row.metric): row.value for row in found} == {
        ("a", "repair_rounds"): 1.5,
        ("a", "shadow"): 5.0,
        ("a", "links_per_repair"): 1.0,
        ("b", "repair_rounds"): 0.0,
        ("b", "shadow"): 1.0,
        ("b", "links_per_repair"): 3.0,
    }


# Runs in virtual time


def measured(stage: Stage, runs: dict[str, pa.Table], *declared: MeasuredTable) -> dict[str, dict[str, Any]]:
    """What Spark makes of one table of these runs, as it is declared, by run and metric."""
    rows = [(*row.values(), run) for run, content in runs.items() for row in content.to_pylist()]
    frame = stage.spark.createDataFrame(rows, spark_schema(declared[0].table).add("run_id", "string"))
    found: dict[str, dict[str, Any]] = {run: {} for run in runs}
    for row in (row for part in declared for row in metrics_of(frame, part).collect()):
        assert row.metric not in found[row.run_id]
        found[row.run_id][row.metric] = row.value
    return found


def ranks(name: str, values: Sequence[float], digits: int) -> dict[str, float]:
    """Nearest-rank quantiles of rounded values, as numpy has them."""
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    rounded = np.round(np.array(values), digits)
    return {f"{name}_{at}": float(np.quantile(rounded, q, method="inverted_cdf")) for at, q in shares.items()}


def deliveries(count: int, *, observers: bool, coordinates: bool) -> pa.Table:
    random = np.random.default_rng(count)
    delay = random.exponential(700, count)
    content = {
        "event": random.integers(0, 5, count),
        "node": np.arange(count),
        "delay_ms": delay,
        "hops": random.integers(1, 9, count),
        "pulled": random.random(count) < 0.1,
        "direct_ms": np.where(np.arange(count) % 7 == 0, 0.0, delay / random.uniform(1, 4, count)),
        "coordinate_ms": [float(x) if coordinates and x > 5 else None for x in random.uniform(0, 90, count)],
        "path_ms": [float(x) if coordinates else None for x in random.uniform(90, 300, count)],
        "observer": random.random(count) < (0.3 if observers else -1),
    }
    return pa.table(content).cast(tables.DELIVERIES.schema)


def test_delays_and_stretch_are_those_of_numpy(stage: Stage) -> None:
    """101 rows, where the nearest rank of 0.95 is the 96th; one row; and a run without observers and coordinates."""
    made = {
        "many": deliveries(101, observers=True, coordinates=True),
        "one": deliveries(1, observers=False, coordinates=False),
        "plain": deliveries(60, observers=False, coordinates=False),
    }
    found = measured(stage, made, DELIVERY)
    for run, content in made.items():
        rows = content.to_pylist()
        delay, watched = [row["delay_ms"] for row in rows], [row["delay_ms"] for row in rows if row["observer"]]
        expected: dict[str, Any] = {
            "within_1s": np.mean(np.array(delay) <= 1_000),
            "observer_within_1s": np.mean(np.array(watched) <= 1_000) if watched else None,
            "pulled": np.mean([row["pulled"] for row in rows]),
            "delay_ms_max": max(delay),
        }
        expected |= ranks("delay_ms", delay, 1)
        expected |= ranks("observer_delay_ms", watched, 1) if watched else {}
        stretch = [row["path_ms"] / row["coordinate_ms"] for row in rows if row["path_ms"] and row["coordinate_ms"]]
        expected |= ranks("stretch", stretch, 3) if stretch else {}
        direct = [row["delay_ms"] / row["direct_ms"] for row in rows if row["direct_ms"]]
        expected |= ranks("direct_stretch", direct, 3) if direct else {}
        assert found[run] == pytest.approx(expected), run
    assert len(found["many"]) == 4 + 4 * 3


def test_stretch_is_told_by_quarters_of_the_distance(stage: Stage) -> None:
    """Rappel Fig. 8a, of each event; ways without a distance count in no quarter."""
    made = {
        "many": deliveries(101, observers=False, coordinates=True),
        "plain": deliveries(9, observers=False, coordinates=False),
    }
    found = measured(stage, made, BY_DISTANCE)
    rows = [row for row in made["many"].to_pylist() if row["coordinate_ms"]]
    quarters: dict[int, list[float]] = {}
    for event in range(5):
        of_event = sorted((row["coordinate_ms"], row["node"], row["path_ms"]) for row in rows if row["event"] == event)
        for position, (distance, _, way) in enumerate(of_event):
            long, short = len(of_event) % 4, len(of_event) // 4  # the first quarters have one more
            edge = long * (short + 1)
            at = position // (short + 1) if position < edge else long + (position - edge) // short
            quarters.setdefault(at + 1, []).append(way / distance)
    expected = {f"stretch_at_distance_{at}": round(float(np.median(ways)), 3) for at, ways in quarters.items()}
    assert found == {"many": pytest.approx(expected, abs=0.0011), "plain": {}}
    assert len(expected) == 4


def peers(count: int, *, alike: bool = False) -> pa.Table:
    random = np.random.default_rng(count)
    neighbours = random.integers(0, 6, count)
    content = {
        "node": np.arange(count),
        "online": random.random(count) < 0.8,
        "online_s": np.where(random.random(count) < 0.2, 0.0, random.uniform(1, 900, count)),
        "subscriptions": np.full(count, 3) if alike else random.integers(0, 4, count),
        "neighbours": neighbours,
        "roles": neighbours + random.integers(0, 2, count) * (neighbours > 0),
        **{name: random.integers(0, 300, count) for name in ("messages_in", "messages_out", "events_in")},
        "events_out": random.integers(0, 3, count),
    }
    return pa.table(content).cast(tables.PEERS.schema)


def share(of: Sequence[bool]) -> float | None:
    return float(np.mean(of)) if of else None


def test_load_and_messages_of_peers_are_those_of_numpy(stage: Stage) -> None:
    """Two runs, and one where all subscribe to as much: load follows nothing there."""
    made = {"many": peers(120), "some": peers(80), "alike": peers(40, alike=True)}
    found = measured(stage, made, PEER_LOAD)
    for run, content in made.items():
        rows = content.to_pylist()
        load = [row["events_in"] + row["events_out"] for row in rows]
        expected = {
            "neighbour_overlap": share([row["roles"] > row["neighbours"] for row in rows if row["neighbours"]]),
            "leaves": share([row["events_out"] == 0 for row in rows if row["subscriptions"]]),
            "load_correlation": None
            if run == "alike"
            else round(float(np.corrcoef([row["subscriptions"] for row in rows], load)[0, 1]), 6),
            "subscriptions_max": max(row["subscriptions"] for row in rows),
        }
        cost = [
            (row["subscriptions"], (row["messages_in"] + row["messages_out"]) / row["online_s"])
            for row in rows
            if row["online_s"] and row["subscriptions"]
        ]
        expected["messages_per_subscription"] = (
            None if run == "alike" else round(float(linregress(np.array(cost)[:, 0], np.array(cost)[:, 1]).slope), 6)
        )
        rates = [(row["messages_in"] + row["messages_out"]) / row["online_s"] for row in rows if row["online_s"]]
        assert found[run] == pytest.approx(expected | ranks("messages_per_s", rates, 3)), run


def test_coverage_by_friends_is_that_of_numpy(stage: Stage) -> None:
    """Rappel Fig. 9a. Who subscribes to nothing is not covered, and not uncovered."""
    random, made = np.random.default_rng(3), {}
    for run, most in (("many", 12), ("nothing", 1)):
        wanted = random.integers(0, most, 60)
        covered = np.minimum(wanted, random.integers(0, 12, 60))
        content = {
            "node": np.arange(60),
            "subscriptions": wanted,
            "covered": covered,
            "friends": covered,
            "fans": wanted,
        }
        made[run] = pa.table(content).cast(FRIENDS.schema)
    found = measured(stage, made, COVERAGE)
    for run, content in made.items():
        rows = content.to_pylist()
        for metric, least in (("fully_covered", 1), ("fully_covered_multi", 2)):
            whole = [row["covered"] == row["subscriptions"] for row in rows if row["subscriptions"] >= least]
            assert found[run][metric] == share(whole), (run, metric)
        several = [row["covered"] / row["subscriptions"] for row in rows if row["subscriptions"] > 1]
        assert found[run]["covered"] == (pytest.approx(np.mean(several)) if several else None)
        many = [row["covered"] for row in rows if row["subscriptions"] >= 9]
        assert found[run]["many_feeds_covered"] == share([covered >= 6 for covered in many])
        assert found[run]["least_covered"] == (min(many) if many else None)
    assert 0 < found["many"]["fully_covered"] < 1 and found["nothing"]["fully_covered"] is None


def test_places_in_trees_are_measured_by_their_height(stage: Stage) -> None:
    """Rappel Fig. 11a. Who does not know its height counts for nothing but its children."""
    held = [(0, 0, 5, 9), (0, 1, 2, 4), (0, 1, 0, 1), (0, 2, 1, 0), (1, 1, 0, 1), (1, None, 8, 3)]
    names = "topic", "height", "children", "rejoins"
    many = [dict(zip(names, row, strict=True)) | {"node": n, "parent": None} for n, row in enumerate(held)]
    unknown = [{"topic": 0, "node": 1, "parent": 0, "height": None, "children": 2, "rejoins": 0}]
    made = {run: pa.Table.from_pylist(rows, PLACES.schema) for run, rows in (("a", many), ("b", unknown))}
    assert measured(stage, made, TREES) == {
        "a": {
            "height": 1.0,
            "height_max": 2.0,
            "children_max": 8.0,
            "rejoins_at_height_0": 9.0,
            "rejoins_at_height_1": 2.0,
            "rejoins_at_height_2": 0.0,
        },
        "b": {"height": None, "height_max": None, "children_max": 2.0},
    }


def test_empty_tables_have_no_metrics(stage: Stage) -> None:
    parts = [
        metrics_of(stage.spark.createDataFrame([], spark_schema(declared.table).add("run_id", "string")), declared)
        for declared in (DELIVERY, PEER_LOAD, TREES)
    ]
    assert reduce(DataFrame.union, parts).collect() == []
