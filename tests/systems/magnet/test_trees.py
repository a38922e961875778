"""Magnet's trees (DEBS 2010 §3.3, Algorithm 2): greedy routes from the home, whatever the order of the joins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine import Workload
from grapevine.blocks.views import NOBODY
from grapevine.kernels.topic_graph import new_scratch
from grapevine.sim.event_graph import Medium, build_graph
from grapevine.sim.rounds import Rounds
from tests.magnet_world import BOTH
from tests.naive import WORD
from tests.naive_magnet import Edge, greedy_route, tree_of_joins
from tests.worlds import medium_of

anywhere = st.integers(0, WORD - 1)


class Overlay(NamedTuple):
    """Nodes in a ring at any ids, with other links as it comes; one topic."""

    ids: list[int]
    links: dict[int, list[int]]
    subscribers: list[int]
    home: int
    publisher: int


@st.composite
def overlays(draw: st.DrawFn) -> Overlay:
    ids = draw(st.lists(anywhere | st.integers(0, 30), min_size=2, max_size=14, unique=True))
    node = st.integers(0, len(ids) - 1)
    order = sorted(range(len(ids)), key=lambda p: ids[p])
    links = {}
    for p, after in pairwise([*order, order[0]]):
        links[p] = [after, *sorted(draw(st.sets(node, max_size=4)) - {p, after})]
    subscribers = draw(st.lists(node, min_size=1, unique=True))
    return Overlay(ids, links, subscribers, draw(node), draw(node | st.sampled_from(subscribers)))


class Tree(NamedTuple):
    """What carries a topic."""

    nodes: set[int]
    edges: set[Edge]  # parent, child
    graph: nx.Graph[int]


def tree_in(medium: Medium, topic: int, publisher: int) -> Tree:
    """The graph that events on the topic travel through."""
    count = len(medium.ids)
    nodes, up = np.empty((2, count), np.int32)
    found = build_graph(topic, publisher, medium, new_scratch(count), nodes, up)
    names: list[int] = found.nodes.tolist()
    assert len(set(names)) == len(names)
    parents = [NOBODY if i == NOBODY else names[i] for i in up[: len(names)].tolist()]
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(names)
    for i, p in enumerate(names):
        row = found.edges[found.starts[i] : found.starts[i + 1]].tolist()
        assert len(set(row)) == len(row)
        graph.add_edges_from((p, names[j]) for j in row)
    return Tree(set(names), {(a, b) for a, b in zip(parents, names, strict=True) if a != NOBODY}, graph)


def routed(
    home: int, targets: Iterable[int], ids: Sequence[int], links: Mapping[int, Iterable[int]], dead: Iterable[int] = ()
) -> tuple[set[Edge], set[int]]:
    """The union of the greedy routes to the targets, and who is reached; the dead swallow what is sent to them."""
    edges, arrived = set[Edge](), set[int]()
    for target in targets:
        route = greedy_route(home, target, ids, links)
        if route[-1] == target and not set(route) & set(dead):
            edges |= set(pairwise(route))
            arrived.add(target)
    return edges, arrived


@given(overlays())
def test_the_tree_is_made_of_the_greedy_routes_from_home(world: Overlay) -> None:
    """§3.3: the path to each subscriber is the greedy route; one parent each, no cycles, and no branch for nothing."""
    medium = medium_of(world.links, world.subscribers, ids=world.ids, floods=False, home=world.home)
    tree = tree_in(medium, 0, world.publisher)
    assert nx.is_tree(tree.graph)
    assert {world.home, world.publisher, *world.subscribers} <= tree.nodes
    above = {child: parent for parent, child in tree.edges}
    assert len(above) == len(tree.edges) and set(above) == tree.nodes - {world.home}
    assert {frozenset(edge) for edge in tree.edges} == {frozenset(edge) for edge in tree.graph.edges}
    for target in {*world.subscribers, world.publisher}:
        path = nx.shortest_path(tree.graph, world.home, target)
        assert path == greedy_route(world.home, target, world.ids, world.links)
    leaves = {p for p, degree in tree.graph.degree if degree <= 1}
    assert leaves <= {world.home, world.publisher, *world.subscribers}


@given(overlays(), st.integers(0, 99))
def test_grafting_subscribers_in_any_order_makes_the_same_tree(world: Overlay, seed: int) -> None:
    """Algorithm 2: each joins through a random subscriber that is in the tree, whatever the order."""
    random = Random(seed)
    order = random.sample(world.subscribers, len(world.subscribers))
    medium = medium_of(world.links, world.subscribers, ids=world.ids, floods=False, home=world.home)
    tree = tree_in(medium, 0, order[-1])
    assert tree.edges == tree_of_joins(order, world.home, world.ids, world.links, random.choice)


def test_grafting_as_printed_would_leave_the_greedy_routes() -> None:
    """Lines 8-11 of Algorithm 2 take 2 as the grafting point of 12, as 2's next hop to 12 is its child 3. But home has
    a link to 10 that 2 does not have: the greedy route from home is 0, 10, 11, 12. Grafting as printed gives 10 two
    parents, so "easy to see" (§3.3) asks for a grafting point on the greedy route, as §1 says."""
    ids = [100 * p for p in range(13)]
    links = {p: [(p + 1) % 13] for p in range(13)} | {0: [1, 10]}
    order, first = [11, 3, 12], {3: 11, 12: 3}
    through = iter(first.values())
    printed = tree_of_joins(order, 0, ids, links, lambda joined: next(through), as_printed=True)
    assert {(0, 10), (9, 10)} <= printed
    tree = tree_in(medium_of(links, order, ids=ids, floods=False, home=0), 0, 3)
    assert tree.edges == {(0, 1), (1, 2), (2, 3), (0, 10), (10, 11), (11, 12)}


@given(overlays(), st.data())
def test_the_dead_swallow_routes_and_silent_links_are_not_used(world: Overlay, data: st.DataObject) -> None:
    node = st.integers(0, len(world.ids) - 1)
    dead = data.draw(st.sets(node, max_size=3)) - {world.home, world.publisher}
    medium = medium_of(world.links, world.subscribers, ids=world.ids, floods=False, home=world.home, dead=sorted(dead))
    views = medium.views
    heard = data.draw(st.lists(st.sampled_from([5, 5, 5, 4]), min_size=len(views.heard), max_size=len(views.heard)))
    views.heard[:] = heard
    usable = {
        p: [q for q, last in zip(*row, strict=True) if last == 5 and q != NOBODY]
        for p in world.links
        for row in [[cells[views.starts[p] : views.starts[p + 1]].tolist() for cells in (views.links, views.heard)]]
    }
    tree = tree_in(medium._replace(fresh=5), 0, world.publisher)
    alive = [p for p in world.subscribers if p not in dead]
    edges, arrived = routed(world.home, [*alive, world.publisher], world.ids, usable, dead)
    assert tree.edges == edges
    assert nx.is_forest(tree.graph)
    assert nx.node_connected_component(tree.graph, world.home) == {world.home, *(p for edge in edges for p in edge)}
    assert arrived <= tree.nodes


@pytest.mark.parametrize("system", BOTH)
def test_converged_trees_are_greedy_routes_and_what_grafting_makes(
    system: str, grown: Callable[[str], Rounds], correlated: Workload
) -> None:
    engine = grown(system)
    assert engine.ring_correctness() == 1.0
    views, medium, ids = engine.network.views, engine.medium(), engine.network.ids.tolist()
    links = {
        p: [q for q in row.tolist() if q != NOBODY] for p, row in enumerate(np.split(views.links, views.starts[1:-1]))
    }
    random = Random(1)
    for topic in range(0, 200, 7):
        members = correlated.subscribers_of(topic).tolist()
        if not members:
            continue
        home, publisher = int(medium.homes[topic]), random.choice(members)
        tree = tree_in(medium, topic, publisher)
        edges, arrived = routed(home, members, ids, links)
        assert arrived == set(members)
        assert tree.edges == edges
        assert nx.is_tree(tree.graph)
        order = random.sample(members, len(members))
        assert tree_of_joins(order, home, ids, links, random.choice) == edges
