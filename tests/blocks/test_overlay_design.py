"""Overlay designs: the same edges, in the same order, as the plain ones; every topic connected."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.blocks.overlay_design import GM, LOW_ODA, MINMAX_ODA, Design, add_edge, begin, connect_topics
from tests import naive_designs

RULES = {"gm": GM, "minmax-oda": MINMAX_ODA, "lowoda": LOW_ODA}
interests = st.lists(st.sets(st.integers(0, 5), max_size=5), min_size=1, max_size=9)
pairs = st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=5)


def begin_from(topics: list[set[int]], topic_count: int = 6) -> Design:
    starts = np.cumsum([0, *map(len, topics)]).astype(np.int64)
    columns = np.array([t for mine in topics for t in sorted(mine)], np.int32)
    return begin(starts, columns, topic_count)


def designed(
    topics: list[set[int]], rule: str, *, rho: float, seed: int, existing: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    design = begin_from(topics)
    for edge in existing:
        add_edge(*edge, design)
    sources, targets = connect_topics(seed, RULES[rule], rho, design)
    return list(zip(sources.tolist(), targets.tolist(), strict=True))


@given(
    topics=interests,
    made=pairs,
    rule=st.sampled_from(sorted(RULES)),
    rho=st.sampled_from([1.0, 1.5, 3.0]),
    seed=st.integers(0, 99),
)
def test_every_edge_is_that_of_the_plain_design(
    topics: list[set[int]], made: set[tuple[int, int]], rule: str, rho: float, seed: int
) -> None:
    existing = sorted({(min(e), max(e)) for e in made if max(e) < len(topics) and e[0] != e[1]})
    found = designed(topics, rule, rho=rho, seed=seed, existing=existing)
    assert found == naive_designs.design(topics, rule, rho=rho, seed=seed, existing=existing)
    overlay = nx.Graph([*existing, *found])
    overlay.add_nodes_from(range(len(topics)))
    for topic in range(6):
        members = [p for p, mine in enumerate(topics) if topic in mine]
        assert len(members) < 2 or nx.is_connected(overlay.subgraph(members))


def test_a_hub_is_cheap_and_the_low_rules_avoid_it() -> None:
    """Node 0 shares a topic of its own with each of six others: GM makes it a hub, nothing else is possible; with a
    seventh topic that all have, MinMaxODA leads it round the others."""
    star = [{0, 1, 2, 3, 4, 5}, *({t} for t in range(6))]
    assert sorted(designed(star, "gm", rho=3.0, seed=1, existing=[])) == [(0, p) for p in range(1, 7)]
    common = [{0, 1, 2, 3, 4}, *({0, t} for t in range(1, 5)), {0}, {0}, {0}]
    largest = {}
    for rule in RULES:
        edges = designed(common, rule, rho=1.0, seed=1, existing=[])
        largest[rule] = max(dict(nx.Graph(edges).degree).values())
    assert largest["minmax-oda"] <= largest["gm"]


@pytest.mark.parametrize("rule", RULES)
def test_contributions_are_up_to_date_after_every_edge(rule: str) -> None:
    random = np.random.default_rng(3)
    topics = [set(random.choice(6, random.integers(1, 5), replace=False).tolist()) for _ in range(12)]
    design = begin_from(topics)
    overlay: nx.Graph[int] = nx.Graph()
    overlay.add_nodes_from(range(12))
    for p, q in [(0, 1), (1, 2), (0, 2), (5, 7), (2, 5)]:
        add_edge(p, q, design)
        overlay.add_edge(p, q)
        for a in range(12):
            for b in range(a):
                assert design.contribution[a, b] == naive_designs.contribution(overlay, topics, (b, a))
