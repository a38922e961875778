"""Diaries of a live network become the tables that a simulation leaves, and mean the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from grapevine import Simulation, Workload
from grapevine.cli.main import app
from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.model.store import read_table
from grapevine.net.cluster_config import ClusterConfig, workload_of
from grapevine.net.diary import as_hex
from grapevine.net.play import play
from grapevine.pipeline.collect import collect
from grapevine.pipeline.diaries import find_diaries, read_diaries
from grapevine.pipeline.live_events import counted_subscribers, follow, number_events, subscription_spans
from grapevine.pipeline.live_nodes import last_seen, session_spans, span_of
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.topic_graphs import topic_graphs
from grapevine.report.page import write_page
from grapevine.sim.churn import Change, Schedule
from tests.diary_world import Writing, address_of, topic_id, topic_name, write_diaries
from tests.jobs import jobs_of
from tests.peer_world import WatchedRun, clock_of, crossing, nodes, watch

MOST_JOBS = 40  # a table takes one; there were 215 when every shuffle and every joined table was one
pytestmark = pytest.mark.slow

Collected = tuple[Path, Simulation, WatchedRun]
# Nobody comes back: the recorder counts only those who are there, and a live run also those who return.
COMING = Schedule(
    np.arange(20, dtype=np.int32),
    {
        310: Change(crashes=nodes(5, 6, 7)),
        350: Change(joins=nodes(20, 21, 22, 23, 24, 25)),
        600: Change(crashes=nodes(23)),
    },
)
SYSTEM = "vitis"  # it floods, and has relays


@pytest.fixture(scope="module")
def collected(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Collected:
    folder = tmp_path_factory.mktemp("live")
    clock = clock_of(loss=0.05, duplication=0.05, grace_s=0)
    done, run = watch(SYSTEM, crossing(), clock, schedule=COMING, driver="peers")
    write_diaries(run, SYSTEM, folder / "diaries")
    with jobs_of(stage) as jobs:  # on the session that the command then uses
        said = CliRunner().invoke(app, ["collect", str(folder / "diaries"), "--out", str(folder / "out"), "--json"])
    assert said.exit_code == 0, said.output
    (folder / "jobs.json").write_text(json.dumps(jobs))
    (folder / "said.json").write_text(said.stdout)
    return folder / "out", done, run


def rows(out: Path, table: tables.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_table(out / "simulations" / "run_id=live", table).to_pylist()
    return found


def test_events_are_those_of_the_recorder(collected: Collected) -> None:
    out, done, _ = collected
    names = Workload.load(out / "workload").topic_names
    kept = [name for name in tables.EVENTS.column_names if name not in ("round", "topic")]
    told = rows(out, tables.EVENTS)
    expected = done.events.to_pylist()
    assert [{name: row[name] for name in kept} for row in told] == [
        {name: row[name] for name in kept} for row in expected
    ]
    wanted = {row["topic"] for row in expected if row["subscribers"]}  # others have no subscriber to name them
    assert len(wanted) == 3
    for row, want in zip(told, expected, strict=True):
        topic = want["topic"]
        assert names[row["topic"]] == (topic_name(topic) if topic in wanted else as_hex(topic_id(topic)))
    begun = min(row["round"] for row in expected) - min(row["round"] for row in told)
    assert all(abs(row["round"] - want["round"] + begun) <= 1 for row, want in zip(told, expected, strict=True))
    assert sum(row["unwanted"] for row in told) > 0 < sum(row["duplicate"] for row in told)


def test_deliveries_are_those_of_the_recorder(collected: Collected) -> None:
    out, done, _ = collected

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in ("event", "node", "hops", "pulled", "observer"))

    told, expected = rows(out, tables.DELIVERIES), done.tables["deliveries"].to_pylist()
    assert sorted(map(key, told)) == sorted(map(key, expected))
    delays = {(row["event"], row["node"]): row["delay_ms"] for row in expected}
    assert all(row["delay_ms"] == pytest.approx(delays[row["event"], row["node"]], abs=2e-3) for row in told)
    assert {row[name] for row in told for name in ("direct_ms", "coordinate_ms", "path_ms")} == {None}


def test_nodes_and_links_are_those_of_the_end(collected: Collected) -> None:
    out, done, run = collected
    assert rows(out, tables.NODE_LOAD) == done.nodes.to_pylist()
    links = [(row["source"], row["target"], row["kind"]) for row in done.links.to_pylist()]
    assert [(row["source"], row["target"], row["kind"]) for row in rows(out, tables.LINKS)] == sorted(links)
    peers = {row["node"]: row for row in done.tables["peers"].to_pylist()}
    for row in rows(out, tables.PEERS):
        for name in ("online", "subscriptions", "events_in", "messages_in", "messages_out"):
            assert row[name] == peers[row["node"]][name], name
        assert row["online_s"] == pytest.approx(peers[row["node"]]["online_s"], abs=1e-3)
        assert row["roles"] >= row["neighbours"]
        assert row["events_out"] == sum(sender == row["node"] for _, _, sender, _ in run.diary.received)


def test_rounds_tell_who_was_there_and_what_became_of_events(collected: Collected) -> None:
    out, done, run = collected
    told = rows(out, tables.ROUNDS)
    begin = min(now for now, node, _ in run.diary.started if node < 26)
    for row in told:
        assert row["online"] == len(run.diary.online(begin + row["round"]) & set(range(26)))
    assert sum(row["joined"] for row in told) == sum(row["joined"] for row in rows_of(done, "rounds"))
    assert sum(row["left"] for row in told) == 4
    hits = [row["hit_ratio"] for row in told if row["hit_ratio"] is not None]
    assert len(hits) > 20 and max(hits) == 1.0
    assert told[-1]["degree"] == pytest.approx(done.summary["degree"])
    assert sum(row["count"] for row in rows(out, tables.MESSAGES)) == sum(run.engine.sent[node] for node in range(26))


def test_a_table_takes_about_one_job(collected: Collected) -> None:
    out, _, _ = collected
    assert 0 < len(json.loads((out.parent / "jobs.json").read_text())) <= MOST_JOBS


def test_the_command_says_what_a_simulation_would(collected: Collected) -> None:
    out, done, _ = collected
    said = json.loads((out.parent / "said.json").read_text())
    live = Simulation.load(out / "simulations" / "run_id=live")
    assert (said["nodes"], said["events"], said["rejected"]) == (26, len(done.events), 0)
    assert (said["sessions"], said["unfinished_sessions"], said["unknown_copies"]) == (26, 4, 0)
    for name in ("hit_ratio", "overhead", "hops", "degree"):
        assert said[name] == pytest.approx(done.summary[name])
    assert said["delay_ms_p50"] == pytest.approx(done.summary["delay_ms"], abs=10)
    for name in ("hit_ratio", "delay_ms", "delay_ms_p95", "nodes_over_20_percent", "messages_per_s"):
        assert live.summary[name] == pytest.approx(done.summary[name], abs=1e-2), name
    assert (live.system, live.config) == (SYSTEM, {"seed": 1})  # nodes do not agree on `me`


def test_a_collected_run_is_measured_and_drawn_as_a_simulated_one(collected: Collected, stage: Stage) -> None:
    out, _, _ = collected
    graphs = topic_graphs(stage, out / "simulations" / "run_id=live", out / "workload").collect()
    stored = [row for row in rows(out, tables.TOPIC_OVERLAY) if row["subscribers"]]
    columns = tables.TOPIC_GRAPHS.column_names
    assert sorted(tuple(row[name] for name in columns) for row in graphs) == [
        tuple(row[name] for name in columns) for row in stored
    ]
    page = write_page(out).read_text()
    assert page.count('class="chart"') == 6
    assert "A live network" in page and "in 1 cluster" in page


def rows_of(done: Simulation, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done.tables[table].to_pylist()
    return found


def test_lines_that_cannot_be_read_are_rejected_with_their_place_and_reason(stage: Stage, tmp_path: Path) -> None:
    writing = Writing(tmp_path)
    writing.at(0, 0).session("vitis", {})
    writing.close()
    (diary,) = tmp_path.iterdir()
    wrong = {
        '{"what":"session","time":1,"node":"00': "is not a record in JSON",
        "[1, 2]": "is not a record in JSON",
        '{"time":1}': "is not a record in JSON",
        '{"what":"sang","time":1}': "is of no known kind: sang",
        '{"what":"end"}': "has no time in microseconds since 1970",
        '{"what":"end","time":-1}': "has no time in microseconds since 1970",
        '{"what":"subscribed","time":1,"topic":"12"}': "has no valid topic",
        f'{{"what":"published","time":1,"topic":"{7:016x}","publisher":"{8:016x}"}}': "has no valid sequence",
        f'{{"what":"session","time":1,"node":"{9:016x}","system":"vitis","config":{{}}}}': (
            "is a session of another node than the file's"
        ),
        "\x00\x01": "not text (binary, or not UTF-8)",
    }
    with diary.open("a") as file:
        file.write("\n" + "\n".join(wrong))
    (tmp_path / "notes.jsonl").write_text('{"what":"end","time":1}\n')
    found = read_diaries(stage, find_diaries(tmp_path), tmp_path / "_scratch")
    assert found.counts == {"diaries": 2, "lines": 2 + len(wrong), "rejected": 1 + len(wrong), "lost": 0}
    told = {(row.file, row.line): row.reason for row in found.rejected().collect()}
    assert told == {
        **{(str(diary), 3 + at): reason for at, reason in enumerate(wrong.values())},
        (str(tmp_path / "notes.jsonl"), 1): "the file is not named after a node (16 hexadecimal digits)",
    }


def test_only_garbage_or_two_networks_are_the_callers_mistakes(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "garbage").mkdir()
    (tmp_path / "garbage" / f"{7:016x}.jsonl").write_text("garbage\n")
    with pytest.raises(
        UsageError, match="not readable as diaries: 1 lines were rejected; line 1 is not a record in JSON"
    ):
        collect(stage, tmp_path / "garbage", tmp_path / "out")
    writing = Writing(tmp_path / "two")
    writing.at(0, 0).session("vitis", {})
    writing.at(0, 1).session("rappel", {})
    writing.close()
    with pytest.raises(UsageError, match=r"several systems \(rappel, vitis\)"):
        collect(stage, tmp_path / "two", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_who_was_away_and_came_back_counts_and_who_was_gone_or_came_later_does_not(
    stage: Stage, tmp_path: Path
) -> None:
    """An event of node 0 at 10 s; the topic's subscribers are 1 … 6."""
    topic, writing = topic_id(0), Writing(tmp_path)
    for node in range(7):
        writing.at(0, node).session("vitis", {})
    for node in (0, 1, 2, 3, 4):
        writing.at(1, node).subscribed(topic)
    writing.at(5, 2).end()  # is away, and comes back
    writing.at(5, 3).end()  # is gone
    writing.at(5, 4).unsubscribed(topic)
    writing.published(10, 0, 0, 1)
    writing.at(11, 5).subscribed(topic)  # too late
    writing.at(12, 2).session("vitis", {})
    writing.at(12, 4).subscribed(topic)  # again, but too late
    writing.at(20, 1).end()
    writing.close()
    diaries = read_diaries(stage, find_diaries(tmp_path), tmp_path / "_scratch")
    numbers = stage.spark.createDataFrame([(n, as_hex(address_of(n))) for n in range(7)], "node INT, name STRING")
    topics = stage.spark.createDataFrame([(0, as_hex(topic))], "topic INT, id STRING")
    sessions = session_spans(diaries, numbers)
    spans = subscription_spans(diaries, numbers, topics)
    events = number_events(diaries, numbers, topics)
    counted = counted_subscribers(events, spans, last_seen(sessions, span_of(sessions)))
    assert sorted((row.event, row.node) for row in counted.collect()) == [(0, 1), (0, 2)]
    assert sorted((row.node, row.session, row.ended) for row in sessions.where("node < 3").collect()) == [
        (0, 1, False),
        (1, 1, True),
        (2, 1, True),
        (2, 2, False),
    ]


def test_a_cluster_and_what_is_collected_of_it_agree(stage: Stage, tmp_path: Path) -> None:
    config = ClusterConfig(nodes=8, topics=8, subscriptions=4, processes=2, events=60, rate=20.0)
    parameters = {"round_s": 0.3, "table_size": 4}  # fewer links than others, so that the degree is not simply all
    out = tmp_path / "live"
    counted = play(workload_of(config, 1), config, system=SYSTEM, parameters=parameters, settings={}, out=out)
    events = collect(stage, out / "diaries", tmp_path / "tables").counts["events"]
    found = Simulation.load(tmp_path / "tables" / "simulations" / "run_id=live").summary
    degree = np.array([row["degree"] for row in rows(tmp_path / "tables", tables.NODE_LOAD)])
    assert (degree > 0).all() and degree.mean() == pytest.approx(counted["degree"], rel=0.1)
    assert (events, found["hit_ratio"]) == (counted["events"], counted["hit_ratio"])


def test_the_end_is_when_the_first_of_those_that_stayed_began_to_leave(stage: Stage, tmp_path: Path) -> None:
    """Node 0 leaves first; node 1 drops it and says so, before node 0 is gone. At the end they were linked."""
    writing = Writing(tmp_path / "diaries")
    for node, other in ((0, 1), (1, 0)):
        writing.at(0, node).session("vitis", {})
        writing.at(1, node).subscribed(topic_id(0))
        writing.at(20, node).links([(address_of(other), "friend")], 1)
    writing.at(20, 0).leaving()
    writing.at(21, 1).links([], 0)
    writing.at(21.5, 1).leaving()
    for node in range(2):
        writing.at(22, node).end()
    writing.close()
    collect(stage, tmp_path / "diaries", tmp_path / "out")
    assert [row["degree"] for row in rows(tmp_path / "out", tables.NODE_LOAD)] == [1, 1]
    assert [(row["source"], row["target"]) for row in rows(tmp_path / "out", tables.LINKS)] == [(0, 1), (1, 0)]
    assert rows(tmp_path / "out", tables.ROUNDS)[-1]["round"] == 20


def test_a_run_may_take_longer_than_36_minutes(stage: Stage, tmp_path: Path) -> None:
    """Microseconds since its beginning are more than an integer of Spark's holds."""
    writing = Writing(tmp_path / "diaries")
    for node in range(2):
        writing.at(0, node).session("vitis", {})
        writing.at(1, node).subscribed(topic_id(0))
    for sequence, now in enumerate((10, 2_400), 1):
        writing.published(now, 0, 0, sequence)
        writing.at(now + 1, 1).delivered(topic_id(0), address_of(0), sequence, address_of(0), pulled=False)
    for node in range(2):
        writing.at(2_500, node).end()
    writing.close()
    collect(stage, tmp_path / "diaries", tmp_path / "out")
    told = {row["round"]: row["hit_ratio"] for row in rows(tmp_path / "out", tables.ROUNDS)}
    assert {second for second, ratio in told.items() if ratio == 1} == {30, 2_430}


def test_hops_follow_first_copies_as_far_as_they_are_known() -> None:
    """0 publishes: 0 → 1 → 2; 3 had it from a stranger; 4 and 5 from each other; another event took another way."""
    came_from = {(0, 2): 1, (0, 1): 0, (0, 3): None, (0, 4): 5, (0, 5): 4, (1, 2): 0, (1, 1): 2}
    keys = list(came_from)
    ways = pa.table(
        {
            "event": pa.array([event for event, _ in keys], pa.int32()),
            "node": pa.array([node for _, node in keys], pa.int32()),
            "sender": pa.array(came_from.values(), pa.int32()),
            "publisher": pa.array([0] * len(keys), pa.int32()),
        }
    )
    hops = dict(zip(keys, follow(ways)["hops"].to_pylist(), strict=True))
    assert hops == {(0, 2): 2, (0, 1): 1, (0, 3): 1, (0, 4): 2, (0, 5): 1, (1, 2): 1, (1, 1): 2}
