import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapevine.kernels.csr import from_pairs
from grapevine.kernels.graph import breadth_first, core_numbers, with_followees
from grapevine.kernels.rng import priorities
from tests import naive

edges = st.sets(st.tuples(st.integers(0, 24), st.integers(0, 24)), min_size=1, max_size=60)


@given(edges, st.integers(1, 25), st.integers(1, 4), st.integers(0, 99))
def test_the_search_agrees_with_the_obvious_one(
    wanted: set[tuple[int, int]], users: int, at_once: int, seed: int
) -> None:
    rows, columns = (np.array(side, np.int32) for side in zip(*sorted(wanted), strict=True))
    starts, targets = from_pairs(rows, columns, 25, 25)
    rank = priorities(seed, 1, 25)
    roots = np.unique(rows)
    kept = breadth_first(starts, targets, rank, roots, at_once, users)
    followed = [targets[starts[v] : starts[v + 1]].tolist() for v in range(25)]
    assert set(np.flatnonzero(kept).tolist()) == naive.breadth_first(
        followed, rank.tolist(), roots.tolist(), at_once, users
    )


def test_one_root_reaches_its_descendants_level_by_level() -> None:
    tree = nx.balanced_tree(2, 4, create_using=nx.DiGraph)
    rows, columns = (np.array(side, np.int32) for side in zip(*tree.edges, strict=True))
    starts, targets = from_pairs(rows, columns, len(tree), len(tree))
    kept = breadth_first(starts, targets, priorities(1, 1, len(tree)), np.array([0], np.int32), 1, 7)
    near = nx.single_source_shortest_path_length(tree, 0, cutoff=2)
    assert set(np.flatnonzero(kept).tolist()) == set(near)


@given(edges, st.integers(1, 25), st.integers(0, 99))
def test_roots_with_whom_they_follow_agree_with_the_obvious_search(
    wanted: set[tuple[int, int]], users: int, seed: int
) -> None:
    rows, columns = (np.array(side, np.int32) for side in zip(*sorted(wanted), strict=True))
    starts, targets = from_pairs(rows, columns, 25, 25)
    rank, roots = priorities(seed, 1, 25), np.unique(rows)
    kept = with_followees(starts, targets, rank, roots, users)
    followed = [targets[starts[v] : starts[v + 1]].tolist() for v in range(25)]
    assert set(np.flatnonzero(kept).tolist()) == naive.with_followees(followed, rank.tolist(), roots.tolist(), users)


@given(edges)
def test_core_numbers_are_those_of_networkx(pairs: set[tuple[int, int]]) -> None:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(25))
    graph.add_edges_from((a, b) for a, b in pairs if a != b)
    both = sorted({(a, b) for edge in graph.edges for a, b in (edge, edge[::-1])})
    rows, columns = (np.array([pair[side] for pair in both], np.int32) for side in (0, 1))
    assert core_numbers(*from_pairs(rows, columns, 25, 25)).tolist() == list(nx.core_number(graph).values())
