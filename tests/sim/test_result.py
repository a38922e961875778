"""A finished run can be stored, read, shown, and handed to networkx."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

from grapevine import Simulation, simulate
from grapevine.model.errors import UsageError
from grapevine.sim.churn import flash_crowd
from grapevine.sim.round_run import RunConfig
from grapevine.synthetic import generate
from tests.memory_store import MemoryLocation, MemoryStore


@pytest.fixture(scope="module")
def run() -> Simulation:
    workload = generate("vitis-high", nodes=80, topics=40, subscriptions_per_node=8, buckets=4, seed=4)
    return simulate("vitis", workload, rounds=30, threads=1, table_size=6)


@pytest.mark.parametrize("where", ["path", "store"])
def test_what_is_saved_is_what_is_loaded(run: Simulation, tmp_path: Path, where: str) -> None:
    home = tmp_path if where == "path" else MemoryLocation(MemoryStore(renames_at_once=False), "home")
    run.save(home / "run")
    back = Simulation.load(home / "run")
    assert (back.system, back.config, back.settings, back.seed) == (run.system, run.config, run.settings, run.seed)
    assert back.summary == run.summary
    for name, table in run.tables.items():
        assert back.tables[name].equals(table), name
    with pytest.raises(UsageError, match="exists already"):
        run.save(home / "run")


def test_it_shows_itself_in_a_line_and_in_a_notebook(run: Simulation) -> None:
    assert repr(run).startswith("Simulation(vitis on vitis-high: hit ratio 100.00%, overhead ")
    assert "<table>" in run._repr_html_()


def test_degrees_count_each_neighbour_once(run: Simulation) -> None:
    graph = nx.Graph((link["source"], link["target"]) for link in run.links.to_pylist())
    assert dict(zip(run.nodes["node"].to_pylist(), run.nodes["degree"].to_pylist(), strict=True)) == dict(graph.degree)


def test_churn_is_followed_round_by_round() -> None:
    workload = generate("vitis-high", nodes=80, topics=40, subscriptions_per_node=8, buckets=4, seed=4)
    schedule = flash_crowd(80, share=0.5, round=20)
    settings = RunConfig(rounds=40, measure_every=5, measure_topics=10)
    done = simulate("vitis", workload, threads=1, schedule=schedule, run=settings, table_size=6)
    rows = done.rounds.to_pylist()
    assert [row["round"] for row in rows] == list(range(5, 45, 5))
    assert [row["online"] for row in rows] == [40] * 3 + [80] * 5
    assert [row["joined"] for row in rows] == [40, 0, 0, 40, 0, 0, 0, 0]
    assert set(done.events["round"].to_pylist()) == set(range(5, 45, 5)) - {5}  # nobody counts before the grace time
