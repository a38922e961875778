"""Labels whose parents are never a circle, and which agree with the clusters at rest: the claims of `labels`."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from grapevine.systems.trellis.peer.labels import OwnLabel
from grapevine.systems.trellis.peer.messages import Label, Wanted
from grapevine.systems.trellis.peer.plain import rank_of
from tests.effort import examples

TOPIC, NODES = 5, 9


class Cluster:
    """Members of a topic, the links between them, and what was said over each and has not come yet, in order."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.graph: nx.Graph[int] = nx.gnp_random_graph(NODES, 0.3, seed=seed)
        self.own = {node: OwnLabel(TOPIC, node, 0.0) for node in self.graph}
        self.heard: dict[int, dict[int, Label]] = {node: {} for node in self.graph}
        self.asked: dict[int, dict[int, Wanted]] = {node: {} for node in self.graph}
        self.wire: dict[tuple[int, int], list[tuple[Label, Wanted | None]]] = {}
        self.said: dict[tuple[int, int], tuple[Label, Wanted | None]] = {}
        for node in self.graph:
            self.revise(node)

    def revise(self, node: int) -> None:
        own, heard, asked = self.own[node], self.heard[node], self.asked[node]
        own.make_tick(node, asked.values())
        own.revise(0.0, node, heard)
        wants = own.wants(node, heard, asked.values())
        for other in self.graph[node]:
            said = (
                own.tells(other, heard.get(other, Label(TOPIC, other))),
                (wants[1] if wants is not None and wants[0] == other else None),
            )
            if self.said.get((node, other)) != said:
                self.said[node, other] = said
                self.wire.setdefault((node, other), []).append(said)

    def deliver(self) -> bool:
        waiting = sorted(key for key, messages in self.wire.items() if messages)
        if not waiting:
            return False
        sender, to = self.random.choice(waiting)
        label, wanted = self.wire[sender, to].pop(0)
        self.heard[to][sender] = label
        self.asked[to].pop(sender, None)
        if wanted is not None:
            self.asked[to][sender] = wanted
        self.revise(to)
        return True

    def cut(self, a: int, b: int) -> None:
        self.graph.remove_edge(a, b)
        for one, other in ((a, b), (b, a)):
            for table in (self.wire, self.said):
                table.pop((one, other), None)
            self.heard[one].pop(other, None)
            self.asked[one].pop(other, None)
            self.revise(one)

    def link(self, a: int, b: int) -> None:
        self.graph.add_edge(a, b)
        self.revise(a)
        self.revise(b)

    def crash(self, node: int) -> None:
        for other in list(self.graph[node]):
            self.cut(node, other)

    def parents_are_no_circle(self) -> None:
        for start, label in self.own.items():
            node, steps = start, 0
            while self.own[node].root == label.root and (parent := self.own[node].parent) is not None:
                node, steps = parent, steps + 1
                assert steps <= NODES, f"the parents of {start} are a circle"


@examples(2)
@given(seed=st.integers(0, 2**32), changes=st.integers(0, 12))
def test_parents_are_never_a_circle_and_labels_agree_with_the_clusters_at_rest(seed: int, changes: int) -> None:
    world = Cluster(seed)
    random = world.random
    for _ in range(changes):
        for _ in range(random.randrange(40)):
            world.deliver()
            world.parents_are_no_circle()
        a, b = random.sample(range(NODES), 2)
        if random.random() < 0.2:
            world.crash(a)
        elif world.graph.has_edge(a, b):
            world.cut(a, b)
        else:
            world.link(a, b)
        world.parents_are_no_circle()
    steps = 0
    while world.deliver():
        world.parents_are_no_circle()
        steps += 1
        assert steps < 20_000, "labels do not come to rest"
    for cluster in nx.connected_components(world.graph):
        root = min(cluster, key=lambda node: rank_of(TOPIC, node))
        assert {world.own[node].root for node in cluster} == {root}
        away = nx.single_source_shortest_path_length(world.graph.subgraph(cluster), root)
        assert all(world.own[node].hops >= away[node] for node in cluster)


def test_without_changes_hops_are_the_fewest() -> None:
    for seed in range(20):
        world = Cluster(seed)
        while world.deliver():
            pass
        for cluster in nx.connected_components(world.graph):
            root = min(cluster, key=lambda node: rank_of(TOPIC, node))
            away = nx.single_source_shortest_path_length(world.graph.subgraph(cluster), root)
            assert {node: world.own[node].hops for node in cluster} == dict(away)


def test_a_root_that_is_gone_is_forgotten_after_as_many_steps_as_the_tree_is_deep() -> None:
    """On a line no label counts up: each member parts with the dead root once."""
    world = Cluster(1)
    for a, b in list(world.graph.edges):
        world.cut(a, b)
    order = sorted(range(NODES), key=lambda node: rank_of(TOPIC, node))
    for a, b in pairwise(order):
        world.link(a, b)
    while world.deliver():
        pass
    assert {own.root for own in world.own.values()} == {order[0]}
    world.crash(order[0])
    deepest = 0
    while world.deliver():
        deepest = max(deepest, *(world.own[node].hops for node in order[1:]))
    assert {world.own[node].root for node in order[1:]} == {order[1]}
    assert deepest < NODES
