"""The steps of a network run in chunks; what connects nodes both ways is judged by networkx."""

from __future__ import annotations

import threading

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.blocks.neighbours import both_ways, online_links
from grapevine.blocks.network import Network
from grapevine.blocks.views import NOBODY
from grapevine.model.workload import Workload

LISTS = st.lists(st.integers(0, 50), max_size=40)


def network_of(threads: int) -> Network:
    return Network(Workload.from_pairs([0], [0], node_count=1, topic_count=1), sample_size=1, seed=1, threads=threads)


def chunks_of(sizes: list[int] | None, count: int, threads: int) -> list[tuple[int, int]]:
    """The ranges that work is called for, in their order."""
    chunks, lock = list[tuple[int, int]](), threading.Lock()

    def work(first: int, last: int) -> None:
        with lock:
            chunks.append((first, last))

    network_of(threads).in_chunks(work, count, None if sizes is None else np.array(sizes, np.int64))
    return sorted(chunks)


@given(LISTS, st.booleans(), st.integers(1, 3))
def test_chunks_cover_everything_once(sizes: list[int], by_size: bool, threads: int) -> None:
    chunks = chunks_of(sizes if by_size else None, len(sizes), threads)
    assert [i for first, last in chunks for i in range(first, last)] == list(range(len(sizes)))


@given(LISTS)
def test_no_chunk_is_more_than_its_share_by_more_than_the_largest(sizes: list[int]) -> None:
    for first, last in chunks_of(sizes, len(sizes), 2):
        assert sum(sizes[first:last]) <= sum(sizes) / 8 + max(sizes)


def test_one_popular_topic_does_not_take_others_along() -> None:
    assert max(last - first for first, last in chunks_of([1000, *[1] * 80], 81, 2)) == 80
    assert (0, 1) in chunks_of([1000, *[1] * 80], 81, 2)


def test_a_mistake_in_a_chunk_is_raised() -> None:
    def work(first: int, last: int) -> None:
        raise ValueError(f"{first} … {last}")

    with pytest.raises(ValueError, match="…"):
        network_of(2).in_chunks(work, 5)


@given(st.integers(2, 15), st.integers(0, 2**32 - 1))
def test_neighbours_are_those_of_the_graph_of_all_links_between_online_nodes(size: int, seed: int) -> None:
    """Tables hold free slots and links to the dead; what two nodes choose of each other counts once."""
    random = np.random.default_rng(seed)
    rows = [random.permutation(size)[: random.integers(0, size)] for _ in range(size)]
    tables = [np.where((row == p) | (random.random(len(row)) < 0.2), NOBODY, row) for p, row in enumerate(rows)]
    alive = random.random(size) < 0.8
    starts = np.concatenate([[0], np.cumsum([len(row) for row in tables])]).astype(np.int64)
    found, columns = both_ways(*online_links(starts, np.concatenate(tables).astype(np.int32), alive))
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(
        (p, int(q)) for p, row in enumerate(tables) for q in row if q != NOBODY and alive[p] and alive[q]
    )
    assert [columns[found[p] : found[p + 1]].tolist() for p in range(size)] == [sorted(graph[p]) for p in range(size)]
