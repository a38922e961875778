"""A finished run can be stored, read, shown, and handed to networkx."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from grapevine import Simulation, simulate
from grapevine.metrics.traffic import HOPS
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
    html = run._repr_html_()
    rows = [[cell.text or "" for cell in row] for row in ElementTree.fromstring(html).iter("tr")]
    groups = [row[0] for row in rows if len(row) == 1]
    assert groups == ["Delivery", "Traffic", "Overlay", "Effort", "Also measured"]
    facts = dict(row for row in rows if len(row) == 2)
    assert facts["hit ratio"] == "100.00%"
    assert facts["hops"] == HOPS.shown(run.summary["hops"]) + " hops"
    assert facts["bytes per event"].endswith(" kB") and facts["wall time"].endswith(" s")
    assert "80 nodes, 30 rounds, seed 1" in html
    assert "delay, median" not in html, "what was not measured is not there"


def test_names_of_workloads_are_no_markup(run: Simulation) -> None:
    assert "on &lt;i&gt;w" in replace(run, workload="<i>w")._repr_html_()


def test_tables_are_data_frames(run: Simulation) -> None:
    for name in ("events", "nodes", "topics", "links", "rounds"):
        frame, table = getattr(run, f"{name}_df")(), getattr(run, name)
        assert list(frame.columns) == table.column_names
        assert len(frame) == table.num_rows > 0
    assert run.nodes_df()["degree"].mean() == pytest.approx(run.summary["degree"])


def test_a_picture_shows_the_course_degrees_and_load(run: Simulation) -> None:
    figure = run.plot()
    course, degrees, load = figure.axes
    lines = {str(line.get_label()): np.asarray(line.get_xydata()).tolist() for line in course.get_lines()}
    assert lines["hit ratio"] == [[row["round"], 100 * row["hit_ratio"]] for row in run.rounds.to_pylist()]
    assert lines["overhead"] == [[row["round"], 100 * row["overhead"]] for row in run.rounds.to_pylist()]
    assert course.get_xlabel() == "round"
    bars = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in degrees.patches}  # type: ignore[attr-defined]
    assert bars == {degree: run.nodes["degree"].to_pylist().count(degree) for degree in bars}
    assert sum(bars.values()) == 80
    tops = np.asarray(load.collections[-1].get_paths()[0].vertices)[:, 1]
    received = [sum(row[kind] for kind in ("wanted", "duplicate", "unwanted")) for row in run.nodes.to_pylist()]
    assert tops.max() == pytest.approx(max(received))
    assert run.plot()._repr_png_().startswith(b"\x89PNG")


def test_a_picture_of_a_run_that_measured_nothing_on_the_way_says_so() -> None:
    workload = generate("vitis-high", nodes=80, topics=40, subscriptions_per_node=8, buckets=4, seed=4)
    run = simulate("vitis", workload, threads=1, run=RunConfig(rounds=10, measure_topics=0), table_size=6)
    assert [line.get_label() for line in run.plot().axes[0].get_lines()] == [
        "hit ratio (not measured on the way)",
        "overhead (not measured on the way)",
    ]


def test_many_degrees_and_nodes_are_taken_together(run: Simulation) -> None:
    nodes = run.nodes_df()
    many = pd.concat([nodes] * 20, ignore_index=True).assign(node=range(1_600), degree=range(1_600))
    table = pa.Table.from_pandas(many, schema=run.nodes.schema, preserve_index=False)
    _, degrees, load = replace(run, tables=run.tables | {"node_load": table}).plot().axes
    heights = [bar.get_height() for bar in degrees.patches]  # type: ignore[attr-defined]
    assert heights == [40] * 40 and degrees.get_xlabel() == "neighbours, 40 numbers a bar"
    assert len(np.asarray(load.collections[0].get_paths()[0].vertices)) < 1_600


PLAIN = """
import sys
import grapevine
from grapevine.synthetic import generate
run = grapevine.simulate("vitis", generate("vitis-random", nodes=40, topics=4, subscriptions_per_node=2), rounds=2)
print(sorted({"matplotlib", "rich"} & set(sys.modules)))
"""


def test_a_run_imports_neither_plotting_nor_a_display() -> None:
    done = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


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
