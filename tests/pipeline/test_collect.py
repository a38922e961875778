"""Diaries of a live network become the tables that a simulation leaves, and mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from grapevine import Simulation, Workload
from grapevine.cli.main import app
from grapevine.model import tables
from grapevine.model.store import read_table
from grapevine.net.diary import as_hex
from grapevine.pipeline.stage import Stage
from grapevine.sim.churn import Change, Schedule
from tests.diary_world import topic_id, topic_name, write_diaries
from tests.peer_world import WatchedRun, clock_of, crossing, nodes, watch

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
SYSTEM = "vitis-peers"  # it floods, and has relays


@pytest.fixture(scope="module")
def collected(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Collected:
    folder = tmp_path_factory.mktemp("live")
    clock = clock_of(loss=0.05, duplication=0.05, grace_s=0)
    done, run = watch(SYSTEM, crossing(), clock, schedule=COMING)
    write_diaries(run, SYSTEM, folder / "diaries")
    assert stage.spark is not None  # which the command then uses
    said = CliRunner().invoke(app, ["collect", str(folder / "diaries"), "--out", str(folder / "out"), "--json"])
    assert said.exit_code == 0, said.output
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


def rows_of(done: Simulation, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done.tables[table].to_pylist()
    return found
