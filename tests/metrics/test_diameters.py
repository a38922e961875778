"""Diameters of topics, judged by networkx."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.metrics.diameters import overlay_diameters, topic_diameters
from tests.worlds import TopicWorld, both_ways, topic_world


def inside(world: TopicWorld, topics: list[int]) -> list[int]:
    """The longest of the shortest paths inside the clusters of each topic, by networkx."""
    graphs = [world.online.subgraph(world.members[topic]) for topic in topics]
    return [
        max((nx.diameter(graph.subgraph(part)) for part in nx.connected_components(graph)), default=0)
        for graph in graphs
    ]


def by_way_of_any(world: TopicWorld, topics: list[int]) -> list[int]:
    """The longest of the shortest paths between members of each topic by way of anybody, by networkx."""
    hops = dict(nx.all_pairs_shortest_path_length(world.online))
    ways = [[hops[p].get(q) for p in world.members[topic] for q in world.members[topic]] for topic in topics]
    return [-1 if None in lengths else max(filter(None, lengths), default=0) for lengths in ways]


def measured(world: TopicWorld, topics: list[int]) -> tuple[list[int], list[int]]:
    found = np.full((2, len(topics)), 7, np.int64)
    for measure, out in zip((topic_diameters, overlay_diameters), found, strict=True):
        measure(np.array(topics, np.int32), world.subscribers, world.links, world.alive, out)
    return found[0].tolist(), found[1].tolist()


@given(st.integers(2, 25), st.floats(0.02, 0.4), st.integers(0, 2**32 - 1))
def test_diameters_of_small_worlds_agree_with_networkx(size: int, density: float, seed: int) -> None:
    world = topic_world(size, density, seed)
    assert measured(world, [2, 0]) == (inside(world, [2, 0]), by_way_of_any(world, [2, 0]))


@pytest.mark.parametrize("links", [2.0, 3.0, 6.0, 12.0])
def test_diameters_of_more_nodes_than_a_word_has_bits_agree_with_networkx(links: float) -> None:
    for seed in range(3):
        world = topic_world(260, links / 260, seed)
        assert measured(world, [0, 1, 2]) == (inside(world, [0, 1, 2]), by_way_of_any(world, [0, 1, 2]))


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
def test_diameters_of_shapes_agree_with_networkx(shape: str, size: int) -> None:
    graph: nx.Graph[int] = SHAPES[shape](size)
    count = len(graph)
    order = np.random.default_rng(size).permutation(count).tolist()
    links = both_ways({order[node]: [order[other] for other in graph[node]] for node in graph}, count)
    everyone, far = np.arange(count, dtype=np.int32), np.zeros(1, np.int64)
    subscribers = np.array([0, count], np.int64), everyone
    topic_diameters(np.zeros(1, np.int32), subscribers, links, np.ones(count, np.bool_), far)
    assert far[0] == max(nx.diameter(graph.subgraph(part)) for part in nx.connected_components(graph))
