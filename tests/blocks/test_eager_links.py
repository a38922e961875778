"""Eager and lazy links of a topic: judged by networkx, and by what Plumtree promises."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from grapevine.blocks.eager_links import LAZY_LINKS, grow_tree, prune_relays, split_links
from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns, Starts
from tests.worlds import both_ways

SIZE, MEMBERS = 60, 40  # nodes from MEMBERS on are relays


class Planted:
    """The trees of a random graph whose first nodes are members, as the block makes them."""

    def __init__(self, seed: int, keep: int = 0) -> None:
        self.graph = nx.gnp_random_graph(SIZE, 0.06, seed=seed)
        rows = both_ways({p: list(self.graph[p]) for p in self.graph}, SIZE)
        self.parent, self.hops = np.empty((2, SIZE), np.int32)
        roots = np.random.default_rng(seed).permutation(MEMBERS).astype(np.int32)
        grow_tree(roots, rows, self.parent, self.hops)
        self.grown = self.hops.copy()
        self.roots = [int(root) for root in roots if self.grown[root] == 0]
        prune_relays(MEMBERS, keep, self.parent, self.hops)
        self.eager, self.lazy = split_links(7, rows, self.parent, self.hops)
        self.kept = set(np.flatnonzero(self.hops != NOBODY).tolist())


def pairs(rows: tuple[Starts, Columns]) -> list[tuple[int, int]]:
    starts, edges = rows
    return [(p, int(q)) for p in range(SIZE) for q in edges[starts[p] : starts[p + 1]]]


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_has_the_fewest_hops_from_its_root(seed: int) -> None:
    planted, reached = Planted(seed), set[int]()
    for root in planted.roots:
        found = nx.single_source_shortest_path_length(planted.graph.subgraph(set(planted.graph) - reached), root)
        assert {p: int(planted.grown[p]) for p in found} == found
        reached |= set(found)
    assert reached == set(np.flatnonzero(planted.grown != NOBODY).tolist())


@pytest.mark.parametrize("seed", range(8))
def test_eager_links_join_the_same_members_without_circles_and_no_relay_is_left_over(seed: int) -> None:
    planted, keep = Planted(seed, keep=MEMBERS + 1), MEMBERS + 1
    tree = nx.Graph(pairs(planted.eager))
    tree.add_nodes_from(planted.kept)
    assert nx.is_forest(tree) and set(pairs(planted.eager)) == {(q, p) for p, q in pairs(planted.eager)}
    joined = [set(part) & set(range(MEMBERS)) for part in nx.connected_components(planted.graph)]
    assert sorted(map(sorted, filter(None, joined))) == sorted(
        sorted(members) for part in nx.connected_components(tree) if (members := set(part) & set(range(MEMBERS)))
    )
    assert all(tree.degree(p) >= 2 for p in planted.kept if p >= MEMBERS and p != keep)


@pytest.mark.parametrize("seed", range(8))
def test_ids_come_on_few_other_links_from_those_that_are_nearest_to_the_root(seed: int) -> None:
    planted = Planted(seed)
    eager, lazy = set(pairs(planted.eager)), pairs(planted.lazy)
    assert len(lazy) == len(set(lazy))
    for p in range(SIZE):
        others = (
            {q for q in planted.graph[p] if (p, q) not in eager and q in planted.kept} if p in planted.kept else set()
        )
        tellers = {q for q, told in lazy if told == p}
        assert tellers <= others and len(tellers) == min(LAZY_LINKS, len(others))
        if tellers < others:
            assert max(planted.hops[q] for q in tellers) <= min(planted.hops[q] for q in others - tellers)
