"""Clusters and diameters of topics, judged by networkx; the ring, counted by hand."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.metrics.overlay import overlay_diameters, ring_correctness, topic_clusters, topic_diameters
from tests.worlds import both_ways


@given(st.integers(2, 25), st.floats(0.02, 0.4), st.integers(0, 2**32 - 1))
def test_clusters_and_diameters_agree_with_networkx(size: int, density: float, seed: int) -> None:
    graph = nx.gnp_random_graph(size, density, seed=seed)
    rng = np.random.default_rng(seed)
    wants = [np.flatnonzero(rng.random(size) < 0.5).astype(np.int32) for _ in range(3)]
    alive = rng.random(size) < 0.9
    counted = alive & (rng.random(size) < 0.7)
    starts = np.concatenate([[0], np.cumsum([len(members) for members in wants])]).astype(np.int64)
    online = graph.subgraph(np.flatnonzero(alive).tolist())
    links = both_ways({node: list(online[node]) for node in online}, size)
    out, far = np.zeros((3, 3), np.int64), np.zeros(3, np.int64)
    topic_clusters(0, 3, (starts, np.concatenate(wants)), links, alive, counted, out)
    topic_diameters(np.arange(3, dtype=np.int32), (starts, np.concatenate(wants)), links, alive, far)
    by_any = np.zeros(2, np.int64)
    overlay_diameters(np.array([2, 0], np.int32), (starts, np.concatenate(wants)), links, alive, by_any)
    hops = dict(nx.all_pairs_shortest_path_length(online))
    for at, topic in enumerate([2, 0]):
        members = wants[topic][alive[wants[topic]]].tolist()
        ways = [hops[p].get(q) for p in members for q in members]
        assert by_any[at] == (-1 if None in ways else max(filter(None, ways), default=0))
    for topic, members in enumerate(wants):
        parts = list(nx.connected_components(online.subgraph(members.tolist())))
        sizes = [size for part in parts if (size := sum(counted[node] for node in part))]
        assert out[topic].tolist() == [sum(sizes), len(sizes), max(sizes, default=0)]
        assert far[topic] == max((nx.diameter(online.subgraph(part)) for part in parts), default=0)


SHAPES: dict[str, Callable[[int], nx.Graph[int]]] = {
    "path": nx.path_graph,
    "cycle, which has no middle": nx.cycle_graph,
    "star": lambda size: nx.star_graph(size - 1),
    "complete": nx.complete_graph,
    "tree": lambda size: nx.full_rary_tree(2, size),
    "two paths, the second one longer": lambda size: nx.disjoint_union(nx.path_graph(size // 3), nx.path_graph(size)),
    "a path between two cliques": lambda size: nx.barbell_graph(size // 3 + 2, size // 3),
    "sparse": lambda size: nx.gnm_random_graph(size, 3 * size // 2, seed=size),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1, 2, 3, 10, 41, 150])
def test_a_diameter_needs_no_search_from_every_member(shape: str, size: int) -> None:
    graph: nx.Graph[int] = SHAPES[shape](size)
    count = len(graph)
    order = np.random.default_rng(size).permutation(count).tolist()
    links = both_ways({order[node]: [order[other] for other in graph[node]] for node in graph}, count)
    everyone, far = np.arange(count, dtype=np.int32), np.zeros(1, np.int64)
    subscribers = np.array([0, count], np.int64), everyone
    topic_diameters(np.zeros(1, np.int32), subscribers, links, np.ones(count, np.bool_), far)
    assert far[0] == max(nx.diameter(graph.subgraph(part)) for part in nx.connected_components(graph))


def test_ring_correctness_counts_nodes_with_both_true_neighbours() -> None:
    ids = np.array([30, 10, 20, 40, 50], np.uint64)  # round the ring: 1, 2, 0, 3, (4)
    alive = np.array([True, True, True, True, False])
    successor = np.array([3, 2, 0, 1, -1], np.int32)
    predecessor = np.array([2, 3, 1, 0, -1], np.int32)
    assert ring_correctness(ids, alive, successor, predecessor) == 1.0
    successor[2] = 3
    assert ring_correctness(ids, alive, successor, predecessor) == pytest.approx(0.75)
    predecessor[2] = 0  # wrong twice is one wrong node
    assert ring_correctness(ids, alive, successor, predecessor) == pytest.approx(0.75)
