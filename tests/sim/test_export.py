"""Overlays as networkx reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import networkx as nx
import pytest

from grapevine import Simulation, Workload, simulate
from grapevine.model.errors import UsageError
from grapevine.sim.churn import mass_failure
from grapevine.sim.export import export_links, overlay_of
from grapevine.synthetic import generate


@pytest.fixture(scope="module")
def workload() -> Workload:
    return generate("vitis-high", nodes=80, topics=40, subscriptions_per_node=8, buckets=4, seed=4)


@pytest.fixture(scope="module")
def tables(workload: Workload) -> Simulation:
    """Of Vitis, whose links have a direction; some nodes are gone, and have none."""
    gone = mass_failure(80, share=0.1, round=6)
    return simulate("vitis", workload, rounds=30, threads=1, table_size=6, schedule=gone)


@pytest.fixture(scope="module")
def connections(workload: Workload) -> Simulation:
    return simulate("spidercast", workload, rounds=20, threads=1)


def as_rows(run: Simulation) -> set[tuple[int, int, str]]:
    return {(link["source"], link["target"], link["kind"]) for link in run.links.to_pylist()}


@pytest.mark.parametrize("name", ["o.graphml", "o.edges"])
def test_links_are_exported_with_what_they_are_for(tables: Simulation, tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    assert export_links(tables, target).directed
    graph: Any
    if name == "o.graphml":
        graph = nx.read_graphml(target)
        assert sorted(map(int, graph)) == list(range(80)), "those without links, too"
    else:
        graph = cast(Any, nx.read_edgelist)(target, create_using=nx.DiGraph, data=[("kind", str)])
    assert {(int(a), int(b), kind) for a, b, kind in graph.edges(data="kind")} == as_rows(tables)
    assert {kind for _, _, kind in as_rows(tables)} == {"successor", "predecessor", "long", "friend"}
    with pytest.raises(UsageError, match="exists already"):
        export_links(tables, target)
    with pytest.raises(UsageError, match="cannot tell the format"):
        export_links(tables, tmp_path / "o.txt")


def test_connections_have_no_direction_and_are_there_once(connections: Simulation, tmp_path: Path) -> None:
    written = export_links(connections, tmp_path / "o.graphml")
    graph = nx.read_graphml(tmp_path / "o.graphml")
    assert not graph.is_directed() and not written.directed
    assert len(graph.edges) == len(written.links) == connections.links.num_rows / 2
    both = {(int(a), int(b)) for a, b in graph.edges} | {(int(b), int(a)) for a, b in graph.edges}
    assert both == {(a, b) for a, b, _ in as_rows(connections)}


def test_nodes_have_the_names_of_their_workload(tables: Simulation, tmp_path: Path) -> None:
    names = [f"<{node}> & co" for node in range(80)]
    export_links(tables, tmp_path / "o.graphml", names=names)
    assert nx.get_node_attributes(nx.read_graphml(tmp_path / "o.graphml"), "name") == {
        str(node): name for node, name in enumerate(names)
    }
    with pytest.raises(UsageError, match="the workload has 3 nodes, the run 80"):
        export_links(tables, tmp_path / "x.graphml", names=["a", "b", "c"])


def test_a_run_is_a_graph_of_networkx(tables: Simulation, connections: Simulation) -> None:
    graph, undirected = tables.to_networkx(), connections.to_networkx()
    assert graph.is_directed() and {(a, b, kind) for a, b, kind in graph.edges(data="kind")} == as_rows(tables)
    assert not undirected.is_directed() and len(undirected) == 80
    assert len(overlay_of(connections).links) == undirected.number_of_edges()
