"""`grapevine simulate`, `systems` and `export` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from grapevine import Simulation
from grapevine.cli.console import one_line_errors
from grapevine.cli.main import app
from grapevine.kernels.csr import row_numbers
from grapevine.model import tables
from grapevine.model.manifest import Manifest
from grapevine.model.store import write_table
from grapevine.model.workload import Workload
from grapevine.pipeline import stage
from grapevine.synthetic import generate
from tests.cli.command import run


def store(workload: Workload, folder: Path, **changes: object) -> Path:
    """A workload folder as the pipeline writes it, without Spark."""
    folder.mkdir()
    nodes, topics = workload.node_count, workload.topic_count
    contents = {
        tables.NODES: {"node": range(nodes), "name": list(workload.node_names)},
        tables.TOPICS: {
            "topic": range(topics),
            "name": list(workload.topic_names),
            "rate": workload.rates,
            "publisher": [None] * topics,
        },
        tables.SUBSCRIPTIONS: {
            "node": row_numbers(workload.node_topics.starts),
            "topic": workload.node_topics.columns,
        },
    }
    rows = {table.name: write_table(pa.table(content), folder, table) for table, content in contents.items()}
    described = {"kind": "workload", "stage": "test", "version": "0", "tables": rows} | changes
    Manifest(**described).write(folder)  # type: ignore[arg-type]
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workload = generate("vitis-high", nodes=60, topics=40, subscriptions_per_node=8, buckets=4, seed=4)
    return store(workload, tmp_path_factory.mktemp("simulate") / "w")


def test_a_simulation_is_printed_stored_and_exported_without_spark(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "open_session", lambda settings: pytest.fail("paths need no Java"))
    at = folder.parent
    done = run("simulate", "vitis", "--workload", "w", "--rounds", "30", "--set", "table_size=6", "--out", "v", cwd=at)
    assert done.returncode == 0, done.stderr
    assert "hit ratio" in done.stdout and "100.00%" in done.stdout
    assert "round 30/30: 60 online · ring correctness 100.00%" in done.stderr
    stored = Simulation.load(at / "v")
    assert stored.config["table_size"] == 6
    assert stored.settings["rounds"] == 30
    assert run("export", "v", "v.graphml", cwd=at).returncode == 0
    assert (at / "v.graphml").read_text().count("<edge ") == stored.links.num_rows
    again = run("simulate", "vitis", "--workload", "w", "--out", "v", cwd=at)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "exists already" in again.stderr


def test_progress_for_programs_is_lines_of_json(folder: Path) -> None:
    command = ["simulate", "rvr", "--workload", "w", "--rounds", "20", "--out", "watched", "--json", "--log", "json"]
    done = run(*command, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stderr.splitlines()]
    told = [(row["stage"], row["round"], row.get("online")) for row in rows if row["stage"] != "compiling"]
    assert told == [("running", 10, 60), ("running", 20, 60), ("measuring", 20, 60)]
    assert json.loads(done.stdout)["summary"]["hit_ratio"] > 0.5
    wrong = run(*command[:-1], "xml", cwd=folder.parent)
    assert (wrong.returncode, "--log 'xml': choose one of plain, json" in wrong.stderr) == (2, True)


def test_a_crowd_answers_in_json(folder: Path) -> None:
    command = ["simulate", "rvr", "--workload", "w", "--rounds", "30", "--crowd", "0.5@10", "--out", "crowd", "--json"]
    done = run(*command, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["hit_ratio"] > 0.5
    assert Simulation.load(folder.parent / "crowd").rounds["online"].to_pylist() == [60, 60, 60]


@pytest.fixture(scope="module")
def trace(folder: Path) -> str:
    """Four of the sixty leave, at any times."""
    last = {57: 9.0, 50: 100.0, 52: 101.0, 51: 5_000.0}
    sessions = {"node": range(60), "joined_s": [0.0] * 60, "left_s": [last.get(node) for node in range(60)]}
    target = folder.parent / "trace"
    target.mkdir()
    rows = {tables.CHURN.name: write_table(pa.table(sessions), target, tables.CHURN)}
    Manifest(kind="workload", stage="test", version="0", tables=rows).write(target)
    return target.name


def test_the_order_of_a_churn_trace_is_played_two_at_once_from_a_round_on(folder: Path, trace: str) -> None:
    command = ["simulate", "vitis", "--workload", "w", "--churn", trace, "--rounds", "12", "--measure-every", "1"]
    options = ["--event-rounds", "4", "--events-at-once", "2", "--first-round", "6"]
    done = run(*command, *options, "--measure-topics", "0", "--out", "turns", cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    stored = Simulation.load(folder.parent / "turns")
    assert stored.rounds["online"].to_pylist() == [60] * 5 + [58] * 4 + [56] * 3


def test_mistakes_get_one_line(
    folder: Path, trace: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.parent)
    old = store(Workload.from_pairs([0], [0], node_count=30, topic_count=1), folder.parent / "old", format=0)
    empty = store(Workload.from_pairs([], [], node_count=30, topic_count=1), folder.parent / "empty")
    for arguments, said in (
        (["simulate", "nope", "--workload", "w"], "system 'nope': choose one of "),
        (["simulate", "vitis", "--workload", "nowhere"], "nowhere: no such folder"),
        (["simulate", "vitis", "--workload", str(old)], "has format 0, this version reads format 1"),
        (["simulate", "vitis", "--workload", str(empty)], "nobody subscribes to anything"),
        (["simulate", "vitis", "--workload", "w", "--set", "table_size=60"], "has 60 nodes, too few for table_size=60"),
        (["simulate", "vitis", "--workload", "w", "--crash", "x"], "write it as SHARE@ROUND"),
        (["simulate", "vitis", "--workload", "w", "--crash", "0.1@5", "--crowd", "0.1@5"], "give one of them"),
        (["simulate", "vitis", "--workload", "w", "--crash", "0.1@5", "--churn", trace], "give one of them"),
        (["simulate", "vitis", "--workload", "w", "--churn", trace, "--round-s", "0"], "round_s=0.0: needs at least"),
        (["simulate", "vitis", "--workload", "w", "--churn", trace, "--spread-s=-1"], "spread_s=-1.0: needs at least"),
        (["simulate", "vitis", "--workload", "w", "--churn", trace, "--rejoin", "x"], "choose one of same, new"),
        (["simulate", "vitis", "--workload", "w", "--churn", "w"], "w: has no churn table"),
        (["simulate", "vitis", "--workload", "w", "--graceful"], "graceful: say how a churn trace is played"),
        (
            ["simulate", "vitis", "--workload", "w", "--churn", trace, "--first-round", "6"],
            "only count with event_rounds",
        ),
        (["export", "w", "x.graphml"], "holds a workload, expected a simulation"),
    ):
        extra = ["--out", "x"] if arguments[0] == "simulate" else []
        with pytest.raises(SystemExit) as stopped, one_line_errors():
            app([*arguments, *extra])
        answer = capsys.readouterr().err
        assert (stopped.value.code, answer.count("\n")) == (2, 1), (arguments, answer)
        assert said in answer
    assert not (folder.parent / "x").exists()


def test_systems_explain_themselves() -> None:
    listed = run("systems")
    assert all(name in listed.stdout for name in ("opt", "rvr", "vitis"))
    for name, needed in (("gm", "a centre that knows"), ("vitis", "")):
        assert json.loads(run("systems", name, "--json").stdout)[0]["needs"][: len("a centre that knows")] == needed
        assert ("  needs a centre that knows" in run("systems", name).stdout) == bool(needed)
    facets = json.loads(run("systems", "vitis", "--json").stdout)[0]["facets"]
    assert list(facets) == ["rounds", "peers", "live"] and "clock" in facets["peers"]
    found = {facet: {one["name"]: one for one in said["parameters"]} for facet, said in facets.items()}
    assert found["rounds"]["gateway_reach"]["default"] == 5
    assert [found[facet]["max_age"]["default"] for facet in facets] == [3, 5, 5]
    assert [found[facet].get("sample_rounds", {}).get("default") for facet in facets] == [None, 1, 5]  # as it runs live
    assert all(parameter["source"] for known in found.values() for parameter in known.values())


QUICK = ["--clock", "hours=0.1", "--clock", "start_s=10", "--clock", "publish_from_s=150"]
CONSTANT = [*QUICK, "--clock", "latency=constant"]


@pytest.fixture(scope="module")
def feed(folder: Path) -> str:
    """One feed with nineteen subscribers."""
    return store(generate("rappel-feed", nodes=20), folder.parent / "feed").name


def test_peers_run_by_a_clock_and_answer_in_json(folder: Path, feed: str) -> None:
    command = ["simulate", "rappel", "--workload", feed, *CONSTANT, "--set", "landmarks=5", "--out", "timed", "--json"]
    done = run(*command, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)["summary"]
    assert summary["hit_ratio"] == 1.0
    assert summary["delay_ms"] >= 50
    stored = Simulation.load(folder.parent / "timed")
    assert (stored.settings["hours"], stored.settings["latency"]) == (0.1, "constant")
    assert stored.config["landmarks"] == 5
    assert stored.tables["deliveries"].num_rows > 0
    assert stored.rounds["round"].to_pylist() == [300, 360]


def test_a_run_by_a_clock_is_printed_with_its_delays(
    folder: Path, feed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.parent)
    app(
        ["simulate", "scribe", "--workload", feed, *CONSTANT, "--crash", "0.3@200", "--out", "shown"],
        standalone_mode=False,
    )
    said = capsys.readouterr()
    assert "delay, median, ms" in said.out and "messages a second and node" in said.out
    left = Simulation.load(folder.parent / "shown").rounds["online"].to_pylist()[-1]
    assert f"360/360 s of virtual time: {left} online" in said.err and left < 20
    assert said.err.endswith("360/360 s of virtual time: measuring\n") and "round" not in said.err


def test_what_a_system_would_ignore_is_refused(
    folder: Path, feed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.parent)
    for arguments, said in (
        (["vitis", "--clock", "hours=1"], "--clock, --latency-from: vitis runs by rounds; they are for "),
        (["vitis", "--latency-from", "w"], "--clock, --latency-from: vitis runs by rounds"),
        (["rappel", "--rounds", "30"], "--rounds: rappel runs in virtual time; say how with --clock"),
        (["rappel", "--rounds", "30", "--grace-rounds", "2"], "--rounds, --grace-rounds: rappel runs in virtual time"),
        (["rappel", "--clock", "huors=1"], "did you mean hours?"),
        (["rappel", "--clock", "hours"], "--clock hours: write it as key=value"),
        (["rappel", "--clock", "hours=soon"], "--clock hours=soon: needs a number"),
        (["rappel", "--clock", "hours=0"], "--clock hours=0: needs at least 0.01"),
        (["rappel", "--clock", "observers=20"], "observers=20: there are only 19 subscribers"),
        (["rappel", "--clock", "latency=recorded"], "latency=recorded: no recorded latencies"),
        (["rappel", "--latency-from", "w"], "w: has no latency table"),
        (["rappel", "--latency-from", "nowhere"], "nowhere: no such folder"),
        (["rappel", "--engine", "spark"], "rappel does not run by rounds of gossip, so it runs on one machine; "),
        (["vitis", "--driver", "peers", "--engine", "spark"], "vitis does not run by rounds of gossip"),
        (["vitis", "--engine", "sparc"], "--engine sparc: is neither local nor spark"),
        (["vitis", "--blocks", "4"], "--blocks, --resume, --master, --driver-memory: are for --engine spark; add it"),
    ):
        with pytest.raises(SystemExit) as stopped, one_line_errors():
            app(["simulate", *arguments, "--workload", feed, "--out", "x"])
        answer = capsys.readouterr().err
        assert (stopped.value.code, answer.count("\n")) == (2, 1), (arguments, answer)
        assert said in answer
    assert not (folder.parent / "x").exists()


def test_recorded_latencies_of_another_folder_are_used(
    folder: Path, feed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two sites that are 90 ms apart: a hop takes 45 ms, or half a millisecond on one site."""
    matrix = folder.parent / "matrix"
    matrix.mkdir()
    times = {"slice": [0, 0], "source": [0, 1], "target": [1, 0], "rtt_ms": [90.0, 90.0]}
    rows = {tables.LATENCY.name: write_table(pa.table(times), matrix, tables.LATENCY), tables.NODES.name: 2}
    Manifest(kind="workload", stage="test", version="0", tables=rows).write(matrix)
    monkeypatch.chdir(folder.parent)
    app(
        ["simulate", "scribe", "--workload", feed, "--latency-from", "matrix", *QUICK, "--out", "far", "--json"],
        standalone_mode=False,
    )
    capsys.readouterr()
    stored = Simulation.load(folder.parent / "far")
    assert stored.settings["latency"] == "recorded"
    hops = {round(ms, 3) for ms in stored.tables["deliveries"]["direct_ms"].to_pylist()}
    assert hops == {0.5, 45.0}


def test_peers_explain_their_clock(capsys: pytest.CaptureFixture[str]) -> None:
    app(["systems", "rappel"], standalone_mode=False)
    said = capsys.readouterr().out
    assert "the clock that peers run by: --clock KEY=VALUE" in said
    assert "publish_every_s" in said and "landmark_rounds" in said
    app(["systems", "rappel", "--json"], standalone_mode=False)
    (rappel,) = json.loads(capsys.readouterr().out)
    peers = rappel["facets"]["peers"]
    assert {"name": "hours", "default": 1.0}.items() <= next(p for p in peers["clock"] if p["name"] == "hours").items()
    assert all(parameter["source"] for parameter in [*peers["parameters"], *peers["clock"]])
    app(["systems", "rvr", "--json"], standalone_mode=False)
    assert list(json.loads(capsys.readouterr().out)[0]["facets"]) == ["rounds"]
