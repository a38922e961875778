"""A protocol from outside of the package: the program as it is run, and whether it does what it says."""

from __future__ import annotations

import sys
from collections import defaultdict
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from grapevine import simulate
from grapevine.synthetic import generate
from grapevine.systems import registry
from tests.examples.programs import EXAMPLES, started

HIGH = generate("vitis-high", nodes=120, topics=200, subscriptions_per_node=10, buckets=20)


@pytest.fixture
def kindred(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example as a module; its system is known for one test."""
    monkeypatch.setattr(registry, "_registered", dict(registry.all_systems()))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = spec_from_file_location("own_protocol", EXAMPLES / "own_protocol.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "own_protocol", module)
    spec.loader.exec_module(module)
    return module


def test_the_table_has_a_row_for_each_system_and_everybody_is_reached(tmp_path: Path) -> None:
    with started("own_protocol.py", "--nodes", "200", "--rounds", "20", folder=tmp_path) as program:
        assert program.finish() == 0
        assert all(line.startswith("compiling kernels") for line in program.complaints().splitlines())
        assert program.lines[1].split() == ["system", "hit", "ratio", "overhead", "hops", "degree"]
        rows = {line.split()[0]: line.split()[1] for line in program.lines[2:]}
        assert rows == {"kindred": "100.00%", "vitis": "100.00%", "rvr": "100.00%"}
        assert not program.left_behind()


def test_too_few_nodes_are_one_line(tmp_path: Path) -> None:
    with started("own_protocol.py", "--nodes", "5", folder=tmp_path) as program:
        assert program.finish() == 1
        assert program.complaints().startswith("error: vitis-high: has 5 nodes, too few for table_size=15")


@pytest.mark.usefixtures("kindred")
def test_it_depends_on_the_seed_alone_and_its_links_are_kindred() -> None:
    runs = [simulate("kindred", HIGH, rounds=15, threads=threads) for threads in (1, 2)]
    assert runs[0].links.equals(runs[1].links)
    assert not simulate("kindred", HIGH, rounds=15, seed=2).links.equals(runs[0].links)
    shared = defaultdict[str, list[int]](list)
    for link in runs[0].links.to_pylist():
        ends = HIGH.topics_of(link["source"]), HIGH.topics_of(link["target"])
        shared[link["kind"]].append(len(np.intersect1d(*ends)))
    assert np.mean(shared["kindred"]) > 2 * np.mean(shared["successor"])


def test_every_island_has_a_speaker_and_a_speaker_has_no_neighbour_that_is_nearer(kindred: Any) -> None:
    links = nx.gnm_random_graph(HIGH.node_count, 200, seed=1)
    rows = [sorted(links[node]) for node in range(HIGH.node_count)]
    starts = np.cumsum([0, *map(len, rows)])
    topics = HIGH.topic_nodes.starts, HIGH.topic_nodes.columns
    neighbours = starts.astype(np.int64), np.concatenate(rows).astype(np.int32)
    speaks = kindred.find_speakers(HIGH.node_ids, HIGH.topic_ids, topics, neighbours)
    for topic in range(HIGH.topic_count):
        members = HIGH.subscribers_of(topic).tolist()
        steps = {p: (int(HIGH.node_ids[p]) - int(HIGH.topic_ids[topic])) % 2**64 for p in members}
        away = {p: min(steps[p], 2**64 - steps[p]) for p in members}
        island = links.subgraph(members)
        found = {p for p, speaking in zip(members, speaks[topics[0][topic] :], strict=False) if speaking}
        assert found == {p for p in members if all(away[q] > away[p] for q in island[p])}
        assert all(found & part for part in nx.connected_components(island))
