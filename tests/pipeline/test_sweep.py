"""Experiments as Spark jobs: the same tables in whatever way they were reached."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from grapevine import Simulation
from grapevine.experiment.description import Experiment, read_experiment
from grapevine.experiment.plan import plan
from grapevine.metrics.course import COURSE
from grapevine.metrics.measured import MeasuredTable
from grapevine.metrics.structure import NODES, TOPICS
from grapevine.metrics.timed import DELIVERY, PEER_LOAD
from grapevine.metrics.traffic import TRAFFIC
from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.model.location import Location
from grapevine.model.manifest import read_manifest
from grapevine.model.store import read_table
from grapevine.model.workload import Workload
from grapevine.pipeline.declared import metrics_of
from grapevine.pipeline.measure import message_metrics, series_rows
from grapevine.pipeline.stage import Stage, spark_schema
from grapevine.pipeline.sweep import sweep
from grapevine.pipeline.topic_graphs import topic_graphs
from grapevine.pipeline.workloads import WorkloadMaker
from grapevine.report.page import write_page
from grapevine.systems.contracts.trees import PLACES, TREES
from grapevine.systems.omen.measures import BACKUP_VIEWS, MENDING
from grapevine.systems.rappel.measures import COVERAGE, FRIENDS
from tests.cli.command import COMMAND

TEXT = """
title = "Small"
seeds = [1, 2, 3]

[run]
rounds = 12
measure_every = 4
measure_topics = 10
diameter_topics = 30

[[workloads]]
name = "calm"
model = "vitis-high"
nodes = 60
topics = 30
buckets = 3
subscriptions_per_node = 6
rate_exponent = 0.5

[[workloads]]
name = "crowded"
model = "vitis-random"
nodes = 50
topics = 30
subscriptions_per_node = 6
churn = { crowd = "0.5@6" }

[[systems]]
system = "vitis"
table_size = [5, 55]

[[systems]]
system = "opt"
workloads = ["calm"]
table_size = 8
"""
TIMED = "wall_s", "cpu_s"


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    path = tmp_path_factory.mktemp("experiment") / "small.toml"
    path.write_text(TEXT)
    return read_experiment(path)


@pytest.fixture(scope="module")
def done(stage: Stage, experiment: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole experiment, without interruption."""
    out = tmp_path_factory.mktemp("whole") / "out"
    manifest = sweep(stage, experiment, out)
    assert manifest is not None
    return out


def content(folder: Location) -> dict[str, pa.Table]:
    """All tables but the times that runs took."""
    found = {table.name: read_table(folder, table) for table in tables.EXPERIMENT_TABLES}
    found["runs"] = found["runs"].drop_columns(list(TIMED))
    metrics = found["metrics"].to_pylist()
    rows = sorted((row["run_id"], row["metric"], row["value"]) for row in metrics if row["metric"] not in TIMED)
    found["metrics"] = pa.table({"row": [str(row) for row in rows]})
    series = [row for row in found["series"].to_pylist() if row["metric"] not in TIMED]
    found["series"] = pa.table({"row": [str(row) for row in series]})
    return found


def test_a_run_that_cannot_be_done_is_recorded_and_loses_no_other(done: Path) -> None:
    runs = read_table(done, tables.RUNS).to_pylist()
    failed = [row for row in runs if row["status"] == "failed"]
    assert len(runs) == 3 * (2 + 2 + 1)
    assert {(row["workload"], row["parameters"]) for row in failed} == {("crowded", '{"table_size": 55}')}
    assert all("has 50 nodes, too few for table_size=55" in row["error"] for row in failed)


def test_spark_measures_what_the_definitions_say(done: Path, experiment: Experiment) -> None:
    metrics = {(row["run_id"], row["metric"]): row["value"] for row in read_table(done, tables.METRICS).to_pylist()}
    checked = 0
    for run in plan(experiment):
        folder = done / "simulations" / f"run_id={run.run_id}"
        if folder.exists():
            stored = Simulation.load(folder)
            for declared in (TRAFFIC, NODES, TOPICS):
                for name, value in declared.in_memory(stored.tables[declared.table.name]).items():
                    assert metrics[run.run_id, name] == pytest.approx(value, rel=1e-9), name
                    assert value == stored.summary[name]
                    checked += 1
    assert checked == 12 * (8 + 3 + 3)


def test_series_are_means_over_seeds_with_a_student_interval(done: Path) -> None:
    """Three values with mean m and deviation s: m ± 4.303 s / √3."""
    rows = [row for row in series_rows(done) if row["metric"] == "degree" and row["system"] == "opt"]
    metrics = read_table(done, tables.METRICS).to_pylist()
    runs = {row["run_id"] for row in read_table(done, tables.RUNS).to_pylist() if row["system"] == "opt"}
    values = [row["value"] for row in metrics if row["metric"] == "degree" and row["run_id"] in runs]
    mean = sum(values) / 3
    deviation = (sum((value - mean) ** 2 for value in values) / 2) ** 0.5
    (row,) = rows
    assert row["runs"] == 3
    assert row["mean"] == pytest.approx(mean)
    assert row["high"] - mean == pytest.approx(4.302653 * deviation / 3**0.5, rel=1e-6)


def test_distributions_sum_to_one_and_progress_follows_the_crowd(done: Path) -> None:
    shares: dict[tuple[str, ...], float] = {}
    for row in read_table(done, tables.DISTRIBUTIONS).to_pylist():
        key = row["system"], row["workload"], row["parameters"], row["quantity"]
        shares[key] = shares.get(key, 0.0) + row["share"]
    assert all(total == pytest.approx(1) for total in shares.values())
    online = [r for r in read_table(done, tables.PROGRESS).to_pylist() if r["metric"] == "online"]
    assert [(row["round"], row["mean"]) for row in online] == [(4, 25.0), (8, 50.0), (12, 50.0)]


def test_the_worst_moment_of_a_crowd_is_that_of_the_rounds_after_most_came(stage: Stage) -> None:
    online = {1: 90, 2: 40, 3: 40, 4: 80, 5: 85, 24: 85, 25: 85}
    hit = {1: 1.0, 2: 0.5, 3: 0.6, 4: 0.9, 5: 0.8, 24: 0.85, 25: 0.7}  # the crowd comes in round 4 and is over after 24
    rows = [(run, r, online[r], hit[r], 3.0, 1.0, 4 + r, 2.0 * r) for run in ("a", "b") for r in online]
    shrinking = [("c", r, 10 - r, hit[r], 3.0, 1.0, 4 + r, None) for r in (1, 2, 3)]
    frame = stage.spark.createDataFrame(
        rows + shrinking,
        "run_id string, round int, online int, hit_ratio double, degree double, connected_topics double, "
        "degree_max long, diameter double",
    )
    found = {(row.run_id, row.metric): row.value for row in metrics_of(frame, COURSE).collect()}
    assert found["a", "hit_ratio_min"] == 0.5
    assert found["a", "hit_ratio_min_crowd"] == found["b", "hit_ratio_min_crowd"] == 0.8
    assert found["c", "hit_ratio_min_crowd"] is None
    assert (found["c", "degree_max_on_the_way"], found["c", "diameter_on_the_way"]) == (6.0, None)
    assert found["a", "diameter_on_the_way"] == 2 * found["a", "degree_max_on_the_way"] - 8


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
        rates = [(row["messages_in"] + row["messages_out"]) / row["online_s"] for row in rows if row["online_s"]]
        assert found[run] == pytest.approx(expected | ranks("messages_per_s", rates, 3)), run


def test_coverage_by_friends_is_that_of_numpy(stage: Stage) -> None:
    """Rappel Fig. 9a. Who subscribes to nothing is not covered, and not uncovered."""
    random, made = np.random.default_rng(3), {}
    for run, most in (("many", 4), ("nothing", 1)):
        wanted = random.integers(0, most, 60)
        covered = np.minimum(wanted, random.integers(0, 4, 60))
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
    for declared in (DELIVERY, PEER_LOAD, TREES):
        assert measured(stage, {"a": declared.table.schema.empty_table()}, declared) == {"a": {}}


BY_THE_CLOCK = """
title = "By rounds and by the clock"

[run]
rounds = 8
measure_every = 4
grace_rounds = 2

[clock]
hours = 0.1
start_s = 10
publish_from_s = 120
sample_s = 90
latency = "recorded"
recorded = ["first.txt", "second.txt"]
slice_s = 100

[[workloads]]
name = "crossing"
model = "vitis-random"
nodes = 30
topics = 6
subscriptions_per_node = 2
churn = { crash = "0.2@200" }

[[systems]]
system = "rappel"
landmarks = 4

[[systems]]
system = "vitis"
table_size = 6
"""


@pytest.mark.slow
def test_systems_of_peers_and_of_rounds_stand_side_by_side(stage: Stage, tmp_path: Path) -> None:
    """Recorded latencies are ingested once; the tables of a timed run become metrics, series and progress."""
    (tmp_path / "clock.toml").write_text(BY_THE_CLOCK)
    (tmp_path / "first.txt").write_text("0 20 40\n20 0 60\n40 60 0\n")
    (tmp_path / "second.txt").write_text("0 30 50\n30 0 70\n50 70 0\n")
    experiment = read_experiment(tmp_path / "clock.toml")
    manifest = sweep(stage, experiment, tmp_path / "out", traces=tmp_path)
    assert manifest is not None and manifest.counts["failed"] == 0
    found: dict[str, dict[str, Any]] = {}
    for row in series_rows(tmp_path / "out"):
        found.setdefault(row["system"], {})[row["metric"]] = row["mean"]
    (run,) = [run for run in plan(experiment, traces=tmp_path) if run.system == "rappel"]
    stored = Simulation.load(tmp_path / "out" / "simulations" / f"run_id={run.run_id}")
    delay = stored.tables["deliveries"]["delay_ms"].to_pylist()
    direct = {round(ms, 1) for ms in stored.tables["deliveries"]["direct_ms"].to_pylist()}
    assert direct <= {0.5, 10, 15, 20, 25, 30, 35} and len(direct) > 3  # half of what was recorded, in both slices
    assert {name: found["rappel"][name] for name in ranks("delay_ms", delay, 1)} == ranks("delay_ms", delay, 1)
    assert found["rappel"]["hit_ratio"] == pytest.approx(stored.summary["hit_ratio"])
    assert found["rappel"]["fully_covered"] > 0 and found["rappel"]["height_max"] >= 1
    assert found["rappel"]["messages"] == stored.summary["messages"]
    assert "hit_ratio" in found["vitis"] and not {"delay_ms_p50", "fully_covered", "height"} & set(found["vitis"])
    online = {
        (row["system"], row["round"]): row["mean"]
        for row in read_table(tmp_path / "out", tables.PROGRESS).to_pylist()
        if row["metric"] == "online"
    }
    left = stored.rounds["online"].to_pylist()
    assert left[:3] == [30, 30, left[-1]] and 24 <= left[-1] < 30
    assert online == {("vitis", 4): 30, ("vitis", 8): 30} | {
        ("rappel", at): count for at, count in zip((90, 180, 270, 360), left, strict=True)
    }


def test_an_interrupted_sweep_is_resumed_to_the_same_tables(
    stage: Stage, experiment: Experiment, done: Path, tmp_path: Path
) -> None:
    """At a URL, to the tables that are made at a path."""
    out, runs = stage.location(f"notatomic://{tmp_path}/broken"), tmp_path / "broken" / "simulations"
    assert sweep(stage, experiment, out, most_runs=5) is None
    stopped = {folder.name: folder.stat().st_mtime_ns for folder in runs.iterdir()}
    half = next(runs.iterdir())
    (half / "manifest.json").unlink()  # as if the machine had died while it was written
    with pytest.raises(UsageError, match=r"broken: has no manifest\.json, so it is not a complete experiment"):
        series_rows(out)
    with pytest.raises(UsageError, match="exists already; go on with --resume"):
        sweep(stage, experiment, out)
    assert sweep(stage, experiment, out, resume=True) is not None
    kept = {f.name: f.stat().st_mtime_ns for f in runs.iterdir() if f.name in stopped}
    assert {name: kept[name] for name in stopped if name != half.name} == {
        name: at for name, at in stopped.items() if name != half.name
    }
    first, second = content(done), content(read_manifest(out, "experiment").tables_in(out))
    for name, table in first.items():
        assert table.equals(second[name]), name
    page = write_page(out).read_text()
    assert "runs failed" in page and '<figure class="card">' in page  # a topic of a run is drawn


@pytest.mark.slow
def test_a_neighbour_that_has_done_a_run_lends_it(stage: Stage, experiment: Experiment, done: Path) -> None:
    out = done.parent / "again"
    sweep(stage, experiment, out)
    one = next((done / "simulations").iterdir())
    events = next((one / "events").iterdir())
    assert events.stat().st_ino == (out / "simulations" / one.name / "events" / events.name).stat().st_ino


def test_foreign_folders_are_left_alone(stage: Stage, experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_text("x")
    with pytest.raises(UsageError, match="holds something else than an experiment"):
        sweep(stage, experiment, tmp_path, force=True)
    assert (tmp_path / "photo.jpg").exists()


@pytest.mark.slow
def test_graphs_of_topics_measured_by_spark_are_those_of_the_simulation(
    stage: Stage, experiment: Experiment, done: Path
) -> None:
    run = next(run for run in plan(experiment) if run.system == "opt")
    folder = done / "simulations" / f"run_id={run.run_id}"
    found = topic_graphs(stage, folder, done / "workloads" / run.workload.key).orderBy("topic").collect()
    graphs = {row["topic"]: row for row in read_table(folder, tables.TOPIC_OVERLAY).to_pylist()}
    # OPT's nodes refuse connections beyond their bound, and refusals are not stored: Spark sees at least as many links.
    assert all(row["clusters"] <= graphs[row["topic"]]["clusters"] for row in found)
    calm = next(run for run in plan(experiment) if run.system == "vitis" and run.config["table_size"] == 5)
    folder = done / "simulations" / f"run_id={calm.run_id}"
    expected = [
        (row["topic"], row["subscribers"], row["clusters"], row["largest_cluster"], row["diameter"])
        for row in read_table(folder, tables.TOPIC_OVERLAY).to_pylist()
        if row["subscribers"]
    ]
    found = topic_graphs(stage, folder, done / "workloads" / calm.workload.key).orderBy("topic").collect()
    assert [tuple(row) for row in found] == expected


@pytest.mark.slow
def test_kill_and_resume_on_one_core_gives_the_tables_of_two(
    done: Path, experiment: Experiment, tmp_path: Path
) -> None:
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    command = [*COMMAND, "run", str(path), "--out", str(tmp_path / "out"), "--json", "--master", "local[1]"]
    process = subprocess.Popen(command, start_new_session=True)
    deadline = time.monotonic() + 120
    while len(list((tmp_path / "out" / "simulations").glob("run_id=*"))) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    resumed = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    assert json.loads(resumed.stdout)["failed"] == 3
    first, second = content(done), content(tmp_path / "out")
    for name, table in first.items():
        assert table.equals(second[name]), name


TRACED = """
title = "Traced"

[[workloads]]
name = "crawl"
trace = "follows"
path = "crawl.txt"

[[systems]]
system = "vitis"
"""


@pytest.mark.slow
def test_a_trace_that_was_replaced_is_read_again(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "traced.toml").write_text(TRACED)
    experiment, found = read_experiment(tmp_path / "traced.toml"), []
    for text in ("1 2\n1 3\n", "1 2\n4 3\n", "1 2\n1 3\n"):
        (tmp_path / "crawl.txt").write_text(text)
        (run,) = plan(experiment, traces=tmp_path)
        WorkloadMaker(stage, tmp_path / "out", tmp_path).make(run.workload)
        found.append(Workload.load(tmp_path / "out" / "workloads" / run.workload.key).node_count)
    assert found == [3, 4, 3]
    assert len(list((tmp_path / "out" / "workloads").iterdir())) == 4  # two traces, whole and as they are asked for


def test_a_trace_of_another_kind_is_refused(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "traced.toml").write_text(TRACED.replace('"follows"', '"avt"'))
    (tmp_path / "crawl.txt").write_text("a 1 0 5\n")
    (run,) = plan(read_experiment(tmp_path / "traced.toml"), traces=tmp_path)
    with pytest.raises(UsageError, match="trace 'avt': choose a format that makes subscriptions, one of follows, "):
        WorkloadMaker(stage, tmp_path / "out", tmp_path).make(run.workload)
