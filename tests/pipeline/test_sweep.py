"""Experiments as Spark jobs: the same tables in whatever way they were reached."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from grapevine import Simulation
from grapevine.experiment.description import Experiment, read_experiment
from grapevine.experiment.plan import plan
from grapevine.metrics.structure import NODES, TOPICS
from grapevine.metrics.traffic import TRAFFIC
from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.model.location import Location
from grapevine.model.manifest import read_manifest
from grapevine.model.store import read_table
from grapevine.model.workload import Workload
from grapevine.pipeline import sweep as sweep_module
from grapevine.pipeline.measure import series_rows
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.sweep import sweep
from grapevine.pipeline.topic_graphs import topic_graphs
from grapevine.pipeline.workloads import WorkloadMaker
from grapevine.report.page import write_page
from tests.cli.command import COMMAND
from tests.pipeline.test_measure import ranks

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
    defined = sum(one.definition is not None for declared in (TRAFFIC, NODES, TOPICS) for one in declared.measures)
    assert checked == 12 * defined > 12 * 15


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


@pytest.mark.slow
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


def test_where_nothing_is_left_to_do_spark_is_not_started(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
    title = "Tiny"
    seeds = [1, 2]
    [run]
    rounds = 2
    [[workloads]]
    name = "w"
    model = "vitis-random"
    nodes = 30
    topics = 8
    subscriptions_per_node = 2
    [[systems]]
    system = "vitis"
    """
    (tmp_path / "tiny.toml").write_text(text)
    experiment, out = read_experiment(tmp_path / "tiny.toml"), tmp_path / "out"
    first = sweep(stage, experiment, out)
    idle = Stage(quiet=True)
    again = sweep(idle, experiment, out, resume=True)
    assert first is not None and again is not None and again.counts == first.counts
    assert "spark" not in vars(idle)
    runs = plan(experiment)
    assert sweep_module._measured(out, experiment, runs) == again
    assert sweep_module._measured(out, experiment, runs[:1]) is None
    assert sweep_module._measured(out, dataclasses.replace(experiment, title="Other"), runs) is None
    monkeypatch.setattr(sweep_module, "measuring_digest", lambda: "other code")
    assert sweep_module._measured(out, experiment, runs) is None


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
        WorkloadMaker(stage, tmp_path / "out", tmp_path).make([run.workload])
        found.append(Workload.load(tmp_path / "out" / "workloads" / run.workload.key).node_count)
    assert found == [3, 4, 3]
    assert len(list((tmp_path / "out" / "workloads").iterdir())) == 4  # two traces, whole and as they are asked for


def test_a_trace_of_another_kind_is_refused(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "traced.toml").write_text(TRACED.replace('"follows"', '"avt"'))
    (tmp_path / "crawl.txt").write_text("a 1 0 5\n")
    (run,) = plan(read_experiment(tmp_path / "traced.toml"), traces=tmp_path)
    with pytest.raises(UsageError, match="trace 'avt': choose a format that makes subscriptions, one of follows, "):
        WorkloadMaker(stage, tmp_path / "out", tmp_path).make([run.workload])
