"""Every stage with folders at URLs: the same tables as on paths, on file systems with and without atomic renames."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapevine
from grapevine import Simulation, Workload
from grapevine.experiment.description import Experiment, read_experiment
from grapevine.experiment.plan import plan
from grapevine.model import tables
from grapevine.model.location import Location
from grapevine.model.manifest import read_manifest
from grapevine.model.store import read_table
from grapevine.model.workload import load_churn
from grapevine.pipeline import measure as measure_module
from grapevine.pipeline.measure import series_rows
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.sweep import sweep
from grapevine.pipeline.workloads import WorkloadMaker
from grapevine.sim.round_run import RunConfig
from grapevine.synthetic import generate
from tests.cli.command import COMMAND, WIDE_AND_PLAIN, run, run_process
from tests.cli.test_simulate import store
from tests.conftest import not_atomic
from tests.diary_world import write_diaries
from tests.peer_world import clock_of, crossing, watch

ATOMIC, OBJECT_STORE = "file", "notatomic"
SMALL = {"nodes": 60, "topics": 40, "subscriptions_per_node": 8, "buckets": 4}
AS_SIMULATED: dict[str, Any] = {"rounds": 3, "table_size": 8}
TEXT = """
title = "At a URL"
seeds = [1, 2]

[run]
rounds = 8
measure_every = 4

[[workloads]]
name = "calm"
model = "vitis-random"
nodes = 30
topics = 10
subscriptions_per_node = 3

[[systems]]
system = "opt"
table_size = [4, 40]
"""

TRACED = """
title = "Traced"

[[workloads]]
name = "crawl"
trace = "follows"
path = "raw.csv"

[[systems]]
system = "opt"
"""


def options(of: Mapping[str, object]) -> list[str]:
    return [text for name, value in of.items() for text in (f"--{name.replace('_', '-')}", str(value))]


def done(*arguments: str) -> str:
    """What the command printed; it has to succeed."""
    answer = run(*arguments)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def kept_in(folder: Path) -> list[str]:
    """What lies in the folder of a store, without Hadoop's checksums; a generation's name does not matter."""
    names = sorted(path.name for path in folder.iterdir() if path.suffix != ".crc")
    return ["_generation" if name.startswith("_generation-") else name for name in names]


def test_a_simulation_is_stored_and_exported_at_urls(stage: Stage, tmp_path: Path) -> None:
    """With names that Hadoop, Spark or a browser might take for something else."""
    direct = generate("vitis-high", **SMALL)
    store(direct, tmp_path / "100% of [it] {all} w")
    workload, home = f"file://{tmp_path}/100% of [it] {{all}} w", f"notatomic://{tmp_path}/a b%20c*"
    assert stage.spark.version
    simulated = ["simulate", "opt", "-w", workload, "--rounds", "3", "--set", "table_size=8", "--out", f"{home}/v"]
    done(*simulated)
    stored, expected = Simulation.load(stage.location(f"{home}/v")), grapevine.simulate("opt", direct, **AS_SIMULATED)
    assert stored.links.equals(expected.links) and stored.events.equals(expected.events)
    assert kept_in(tmp_path / "a b%20c*" / "v") == ["_generation", "manifest.json"]
    done("export", f"{home}/v", f"{home}/v.edges")
    assert (tmp_path / "a b%20c*" / "v.edges").read_text().count("\n") == expected.links.num_rows
    again = run(*simulated)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert f"{home}/v: exists already" in again.stderr


def test_a_wrong_url_is_one_line_and_exit_2(stage: Stage, tmp_path: Path) -> None:
    assert stage.spark.version
    small = ["workload", "generate", "vitis-high", *options(SMALL)]
    for arguments, said in (
        ([*small, "--out", "s4://bucket/w"], "Spark knows no file system for s4://"),
        ([*small, "--out", "s3a://bucket/w"], "Spark lacks org.apache.hadoop.fs.s3a.S3AFileSystem"),
        ([*small, "--out", "hdfs://"], "hdfs://: is not a valid URL"),
        ([*small, "--out", f"notatomic://{tmp_path}"], "exists already"),
        (["simulate", "opt", "-w", f"file://{tmp_path}/nothing", "--out", "v"], "nothing: no such folder"),
        (["simulate", "opt", "-w", f"notatomic://{tmp_path}/half", "--out", "v"], "is not a complete workload"),
        (["report", f"file://{tmp_path}/half"], "is not a complete experiment"),
        (["export", f"file://{tmp_path}/half", "o.edges"], "is not a complete simulation"),
        (["collect", f"file://{tmp_path}/nothing", "--out", "c"], "nothing: no such folder"),
        (["collect", f"file://{tmp_path}/half", "--out", "c"], "half: holds no diaries"),
        (["workload", "sample", "bfs", "s4://bucket/w", "--out", "s"], "Spark knows no file system for s4://"),
        (["workload", "ingest", "follows", "s4://bucket/raw", "--out", "i"], "Spark knows no file system for s4://"),
        (["workload", "ingest", "follows", "s3a://bucket/raw", "--out", "i"], "Spark lacks org.apache.hadoop.fs.s3a"),
        (["workload", "ingest", "follows", f"file://{tmp_path}/raw", "--out", "i"], "raw: no such file or folder"),
    ):
        (tmp_path / "half").mkdir(exist_ok=True)
        (tmp_path / "half" / "file").write_text("")
        answer = run(*arguments, cwd=tmp_path)
        assert (answer.returncode, answer.stderr.count("\n")) == (2, 1), (arguments, answer.stderr)
        assert said in answer.stderr, (arguments, answer.stderr)
        assert [path.name for path in tmp_path.iterdir()] == ["half"], arguments


# Slow


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [ATOMIC, OBJECT_STORE])
def test_a_workload_is_generated_and_its_graphs_measured_at_urls(stage: Stage, tmp_path: Path, scheme: str) -> None:
    home = f"{scheme}://{tmp_path}/a b%20c"
    assert stage.spark.version
    made = json.loads(done("workload", "generate", "vitis-high", *options(SMALL), "--out", f"{home}/w", "--json"))
    assert made["folder"] == f"{home}/w" and made["tables"]["subscriptions"] == 480
    stored, direct = Workload.load(stage.location(f"{home}/w")), generate("vitis-high", **SMALL)
    assert np.array_equal(stored.node_topics.columns, direct.node_topics.columns)
    assert kept_in(tmp_path / "a b%20c" / "w") == (
        ["_generation", "manifest.json"] if scheme == OBJECT_STORE else ["manifest.json", *sorted(made["tables"])]
    )
    grapevine.simulate("opt", direct, **AS_SIMULATED).save(stage.location(f"{home}/v"))
    measured = done("measure", f"{home}/v", "-w", f"{home}/w", "--out", f"{home}/g", "--json")
    assert json.loads(measured)["topics"] == len({int(topic) for topic in direct.node_topics.columns})
    assert kept_in(tmp_path / "a b%20c") == ["g", "v", "w"]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    path = tmp_path_factory.mktemp("experiment") / "small.toml"
    path.write_text(TEXT)
    return read_experiment(path)


@pytest.mark.slow
@pytest.mark.parametrize("home", ["file://", "notatomic://", ""])
def test_a_sweep_is_done_all_again_without_losing_what_was_there(
    stage: Stage, experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    out = stage.location(f"{home}{tmp_path}/a b%20c/out")
    sweep(stage, experiment, out)
    expected = direct_degrees(experiment)

    def fail(*_: object) -> None:
        raise RuntimeError("the power went out")

    monkeypatch.setattr(measure_module, "_measure_finished", fail)
    with pytest.raises(RuntimeError):
        sweep(stage, experiment, out, force=True)
    assert degrees_in(out) == expected, "what was there is read until the new tables are complete"
    monkeypatch.undo()
    forced = sweep(stage, experiment, out, force=True)
    assert forced is not None and forced.counts["made"] == 4
    assert degrees_in(out) == expected
    assert kept_in(tmp_path / "a b%20c" / "out").count("_generation") == (home == "notatomic://")
    assert not list((tmp_path / "a b%20c" / "out").glob(".tables.*"))


def direct_degrees(experiment: Experiment) -> list[float]:
    """What the runs that can be done come to, simulated here."""
    found = []
    for planned in plan(experiment):
        if planned.config["table_size"] == 4:
            workload = generate("vitis-random", seed=planned.seed, nodes=30, topics=10, subscriptions_per_node=3)
            settings = RunConfig(rounds=8, measure_every=4)
            simulated = grapevine.simulate("opt", workload, seed=planned.seed, run=settings, table_size=4)
            found.append(simulated.summary["degree"])
    return sorted(degree for degree in found if degree is not None)


def degrees_in(out: Location) -> list[float]:
    stored = read_manifest(out, "experiment").tables_in(out)
    return sorted(row["value"] for row in read_table(stored, tables.METRICS).to_pylist() if row["metric"] == "degree")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [ATOMIC, OBJECT_STORE])
def test_traces_become_workloads_samples_and_profiles_at_urls(stage: Stage, tmp_path: Path, scheme: str) -> None:
    home = f"{scheme}://{tmp_path}"
    (tmp_path / "raw.csv").write_text("".join(f"u{i},u{i * 7 % 41}\n" for i in range(41)) + "broken\n")
    (tmp_path / "nodes.avt").write_text("a 1 0 5\nb 2 3 9 12 20\n")
    assert stage.spark.version
    for place in (home, str(tmp_path / "paths")):
        done("workload", "ingest", "follows", f"{home}/raw.csv", "--out", f"{place}/w", "--json")
        done("workload", "ingest", "avt", f"{home}/nodes.avt", "--out", f"{place}/c", "--json")
        done("workload", "sample", "bfs", f"{place}/w", "--users", "20", "--out", f"{place}/s", "--json")
        done("workload", "profile", f"{place}/w", f"{place}/s", "--out", f"{place}/p")
    for name in ("w", "s"):
        there, here = Workload.load(stage.location(f"{home}/{name}")), Workload.load(tmp_path / "paths" / name)
        assert list(there.node_names) == list(here.node_names)
        assert np.array_equal(there.node_topics.columns, here.node_topics.columns)
    assert np.array_equal(load_churn(stage.location(f"{home}/c")).left_s, load_churn(tmp_path / "paths" / "c").left_s)
    stored = read_manifest(stage.location(f"{home}/p"), "profile").tables_in(stage.location(f"{home}/p"))
    for table in tables.PROFILE_TABLES:
        assert read_table(stored, table).equals(read_table(tmp_path / "paths" / "p", table)), table.name
    assert (stored / "profile.png").is_file()
    (tmp_path / "traced.toml").write_text(TRACED)
    (planned,) = plan(read_experiment(tmp_path / "traced.toml"), traces=stage.location(home))
    maker = WorkloadMaker(stage, stage.location(f"{home}/out"), stage.location(home))
    maker.make([planned.workload])
    whole = Workload.load(maker.folder(planned.workload.key))
    assert list(whole.node_names) == list(Workload.load(tmp_path / "paths" / "w").node_names)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [ATOMIC, OBJECT_STORE])
def test_diaries_at_a_url_are_collected_and_shown_at_one(stage: Stage, tmp_path: Path, scheme: str) -> None:
    _, watched = watch("vitis", crossing(), clock_of(), driver="peers")
    write_diaries(watched, "vitis", tmp_path / "diaries")
    assert stage.spark.version
    found: list[list[dict[str, Any]]] = []
    for home in (f"{scheme}://{tmp_path}", str(tmp_path)):
        done("collect", f"{home}/diaries", "--out", f"{home}/{len(found)}", "--json")
        done("report", f"{home}/{len(found)}", "--json")
        found.append(series_rows(stage.location(f"{home}/{len(found)}")))
    assert found[0] == found[1]
    pages = [(tmp_path / name / "report.html").read_text() for name in ("0", "1")]
    assert pages[0].count("<figure") == pages[1].count("<figure") > 0


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [ATOMIC, OBJECT_STORE])
@pytest.mark.parametrize("old", [False, True])
def test_a_run_that_was_killed_leaves_the_old_output_and_the_next_one_cleans_up(
    tmp_path: Path, scheme: str, old: bool
) -> None:
    """The process group, Java too, is killed with SIGKILL while tasks are writing."""
    conf = [text for key, value in not_atomic(tmp_path).items() for text in ("--conf", f"{key}={value}")]
    home = f"{scheme}://{tmp_path}"
    command = ["workload", "generate", "vitis-random", "--out", f"{home}/w", *conf]
    small = run_process(*command, "--nodes", "100", "--json") if old else None
    assert small is None or small.returncode == 0, small
    process = subprocess.Popen(
        [*COMMAND, *command, "--nodes", "2000000", "--force"], env=os.environ | WIDE_AND_PLAIN, start_new_session=True
    )
    draft = ".w.partial-*" if scheme == ATOMIC else "w/_generation-*"
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(f"{draft}/subscriptions/_temporary")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    read = ["simulate", "opt", "-w", f"{home}/w", "--rounds", "2", "--out", str(tmp_path / "v"), "--json", *conf]
    answer = run_process(*read)
    if old:
        assert answer.returncode == 0, answer.stderr
        assert Simulation.load(tmp_path / "v").nodes.num_rows == 100
    else:
        assert answer.returncode == 2
        assert ("no such folder" if scheme == ATOMIC else "is not a complete workload") in answer.stderr
    again = run_process(*command, "--nodes", "120", "--json", *(["--force"] if old else []))
    assert again.returncode == 0, again.stderr
    left = [path for path in tmp_path.rglob("*.parquet") if "v" not in path.relative_to(tmp_path).parts]
    assert sum(path.parent.name == "nodes" for path in left) > 0
    assert len({path.parents[1] for path in left}) == 1, "the tables of one run are left"
    assert not list(tmp_path.glob(".w.*"))
    assert len(list(tmp_path.glob("w/_generation-*"))) == (scheme == OBJECT_STORE)


@pytest.mark.slow
def test_a_sweep_at_a_url_that_was_killed_is_resumed(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(TEXT)
    conf = [text for key, value in not_atomic(tmp_path).items() for text in ("--conf", f"{key}={value}")]
    out = ["--out", f"notatomic://{tmp_path}/out", "--master", "local[1]", "--json", *conf]
    command = ["run", str(tmp_path / "small.toml"), *out]
    process = subprocess.Popen([*COMMAND, *command], env=os.environ | WIDE_AND_PLAIN, start_new_session=True)
    deadline = time.monotonic() + 180
    while not list(tmp_path.glob("out/simulations/run_id=*/manifest.json")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    resumed = run_process(*command, "--resume")
    assert resumed.returncode == 1, resumed.stderr  # two runs cannot be done
    assert json.loads(resumed.stdout)["failed"] == 2, resumed.stderr
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["counts"]["made"] < 4, "what was finished is not done again"
    degrees = [
        row["value"]
        for row in read_table(tmp_path / "out" / manifest["generation"], tables.METRICS).to_pylist()
        if row["metric"] == "degree"
    ]
    assert sorted(degrees) == direct_degrees(read_experiment(tmp_path / "small.toml"))
