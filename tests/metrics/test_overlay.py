"""Clusters of topics, judged by networkx; the ring, counted by hand."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.metrics.overlay import FIRST_TOPICS, ring_correctness, topic_clusters, topic_to_draw
from tests.worlds import topic_world


@given(st.integers(2, 25), st.floats(0.02, 0.4), st.integers(0, 2**32 - 1))
def test_clusters_agree_with_networkx(size: int, density: float, seed: int) -> None:
    world = topic_world(size, density, seed)
    counted = world.alive & (np.random.default_rng(seed).random(size) < 0.7)
    out = np.zeros((3, 3), np.int64)
    topic_clusters(0, 3, world.subscribers, world.links, world.alive, counted, out)
    for topic, members in enumerate(world.members):
        parts = nx.connected_components(world.online.subgraph(members))
        sizes = [size for part in parts if (size := sum(counted[node] for node in part))]
        assert out[topic].tolist() == [sum(sizes), len(sizes), max(sizes, default=0)]


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


@pytest.mark.parametrize(
    ("topics", "chosen"),
    [
        ([(90, 1, 90), (30, 2, 28), (40, 3, 35)], 2),
        ([(90, 1, 90), (10, 4, 5), (60, 2, 55)], 1),
        ([(9, 2, 5), (61, 2, 50), (30, 5, 20), (30, 1, 30)], 1),
        ([(20, 20, 1), (25, 25, 1), (25, 25, 1)], 1),
        ([(70, 1, 70)] * FIRST_TOPICS + [(30, 2, 20)], 0),
        ([(0, 0, 0)], 0),
    ],
    ids=["most outside", "bounds and ties", "none of them", "no clusters", "the first hundred", "nobody there"],
)
def test_the_topic_to_draw_has_few_clusters_and_can_be_read(topics: list[tuple[int, int, int]], chosen: int) -> None:
    """Each topic: online subscribers, clusters, subscribers in the largest."""
    assert topic_to_draw(*np.array(topics, np.int64).T) == chosen
