"""Mending a shadow set (OMen Algorithm 1): the same edges, in the same order, as the plain version."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.blocks.overlay_design import SIGHTS, mend
from grapevine.blocks.profiles import make_profiles
from grapevine.blocks.views import NOBODY
from tests import naive_backups, naive_designs
from tests.effort import examples
from tests.naive_designs import Edge

TOPICS = 3


class Overlay(NamedTuple):
    topics: list[set[int]]
    edges: set[Edge]  # lower end first
    dead: set[int]  # others still have links to them; they have none


@st.composite
def overlays(draw: st.DrawFn) -> Overlay:
    """Drawn at random as a whole: what is drawn piece by piece mostly has too little in common to be mended."""
    nodes, share = draw(st.integers(2, 14)), draw(st.sampled_from([0.1, 0.2, 0.3]))
    least, most = draw(st.sampled_from([(0, 2), (1, 1), (1, 2), (1, 3)]))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    sizes = random.integers(least, most + 1, nodes)
    topics = [set(random.choice(TOPICS, size, replace=False).tolist()) for size in sizes]
    edges = {pair for pair in combinations(range(nodes), 2) if random.random() < share}
    return Overlay(topics, edges, {v for v in range(nodes) if random.random() < 0.2})


def mended(
    overlay: Overlay, shadow: list[int], wanted: set[int], degree: list[int], *, sight: str, rho: float, seed: int
) -> list[Edge]:
    """The kernel's edges. Rows have a free place at each end, as tables have."""
    topics, edges, dead = overlay
    starts = np.cumsum([0, *map(len, topics)]).astype(np.int64)
    columns = np.array([t for mine in topics for t in sorted(mine)], np.int32)
    rows: list[list[int]] = [[] for _ in topics]
    for p, q in sorted(edges):
        rows[p].append(q)
        rows[q].append(p)
    rows = [[NOBODY] if v in dead else [NOBODY, *row, NOBODY] for v, row in enumerate(rows)]
    profiles = make_profiles(np.arange(len(topics)).astype(np.uint64), starts, columns, np.ones(TOPICS))
    table = np.cumsum([0, *map(len, rows)]).astype(np.int64), np.concatenate(rows).astype(np.int32)
    *made, _ = mend(
        seed,
        rho,
        SIGHTS[sight],
        np.array(shadow, np.int32),
        np.array(sorted(wanted), np.int32),
        profiles,
        table,
        np.array(degree, np.int32),
    )
    return list(zip(*(ends.tolist() for ends in made), strict=True))


@examples(2)
@given(
    overlay=overlays(),
    sight=st.sampled_from(sorted(SIGHTS)),
    rho=st.sampled_from([1.0, 1.5, 3.0]),
    seed=st.integers(0, 2**63 - 1),
)
def test_every_edge_is_that_of_the_plain_version_and_the_shadow_set_is_connected(
    overlay: Overlay, sight: str, rho: float, seed: int
) -> None:
    topics, edges, dead = overlay
    random = np.random.default_rng(seed)
    living = [v for v in range(len(topics)) if v not in dead]
    shadow = [v for v in living if random.random() < 0.45]
    wanted = {topic for topic in range(TOPICS) if random.random() < 0.9}
    elsewhere = random.integers(0, random.choice([1, 3, 40]), len(topics)).tolist()
    degree = [links + sum(v in edge for edge in edges) for v, links in enumerate(elsewhere)]
    found = mended(overlay, shadow, wanted, degree, sight=sight, rho=rho, seed=seed)
    there = [edge for edge in sorted(edges) if not dead & set(edge)]
    assert found == naive_backups.mend(topics, shadow, wanted, there, degree, sight=sight, rho=rho, seed=seed)
    assert all(p < q and {p, q} <= set(shadow) and topics[p] & topics[q] & wanted for p, q in found)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(living)
    graph.add_edges_from(there)
    if sight == "shadow":
        graph = nx.Graph(graph.subgraph(shadow))
    graph.add_edges_from(found)
    for topic in wanted:
        part = graph.subgraph(v for v in graph if topic in topics[v])
        assert len({frozenset(nx.node_connected_component(part, v)) for v in shadow if v in part}) < 2


@given(overlays(), st.sampled_from([1.0, 3.0]), st.integers(0, 99))
def test_everybody_and_every_topic_is_the_design_itself(overlay: Overlay, rho: float, seed: int) -> None:
    topics, edges = overlay.topics, sorted(overlay.edges)
    degree = [sum(v in edge for edge in edges) for v in range(len(topics))]
    whole = Overlay(topics, overlay.edges, set())
    for sight in SIGHTS:
        found = mended(whole, list(range(len(topics))), set(range(TOPICS)), degree, sight=sight, rho=rho, seed=seed)
        assert found == naive_designs.design(topics, "lowoda", rho=rho, seed=seed, existing=edges)


def test_links_outside_the_shadow_set_count_as_far_as_the_coordinator_sees() -> None:
    """0 and 1 are joined through their neighbour 2; 3 and 4 through 5 and 6, which are not each other's concern."""
    edges = {(0, 2), (1, 2), (3, 5), (5, 6), (4, 6)}
    overlay = Overlay([{0}] * 7, edges, set())
    shadow, degree = [0, 1, 3, 4], [1] * 7
    counts = {
        sight: len(mended(overlay, shadow, {0}, degree, sight=sight, rho=3.0, seed=1)) for sight in sorted(SIGHTS)
    }
    assert counts == {"shadow": 3, "neighbours": 2, "overlay": 1}


@pytest.mark.parametrize("sight", SIGHTS)
def test_nothing_is_joined_through_the_dead_or_those_without_the_topic(sight: str) -> None:
    dead = Overlay([{0}] * 3, {(0, 2), (1, 2)}, {2})
    assert mended(dead, [0, 1], {0}, [1, 1, 0], sight=sight, rho=3.0, seed=1) == [(0, 1)]
    other = Overlay([{0, 1}, {0, 1}, {1}], {(0, 2), (1, 2)}, set())
    assert mended(other, [0, 1], {0}, [1, 1, 2], sight=sight, rho=3.0, seed=1) == [(0, 1)]
    assert mended(other, [0, 1], {2}, [1, 1, 2], sight=sight, rho=3.0, seed=1) == []


def test_nodes_with_many_links_elsewhere_are_spared() -> None:
    """All want the same topic; node 0 has a hundred links to nodes that are not here."""
    topics = [{0}] * 5
    found = mended(
        Overlay(topics, set(), set()), [0, 1, 2, 3, 4], {0}, [100, 0, 0, 0, 0], sight="shadow", rho=3.0, seed=4
    )
    assert len(found) == 4 and sum(0 in edge for edge in found) == 1 and 0 in found[-1]


def test_a_hub_is_used_where_it_is_worth_more_than_rho_times_the_others() -> None:
    """Node 0 shares three topics with node 1, the others one with each other."""
    topics = [{0, 1, 2}, {0, 1, 2}, {3}, {3}]
    for rho, first in ((1.0, (0, 1)), (3.0, (2, 3))):
        found = mended(
            Overlay(topics, set(), set()), [0, 1, 2, 3], {0, 1, 2, 3}, [9, 0, 0, 0], sight="shadow", rho=rho, seed=1
        )
        assert found[0] == first


def test_an_empty_shadow_set_is_nothing_to_mend() -> None:
    for shadow in ([], [1]):
        overlay = Overlay([{0}, {0}], set(), set())
        assert mended(overlay, shadow, {0}, [0, 0], sight="overlay", rho=3.0, seed=1) == []
