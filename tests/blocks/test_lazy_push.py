"""Payload once: what eager and lazy links make of a flood, on networks of peers that do nothing else."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from grapevine.blocks.lazy_push import MOST_BEARERS, MOST_KEPT, MOST_MISSING, Actions, LazyPush, Name
from tests.effort import examples

TOPIC = 3
NODES = 12


class Flood:
    """Nodes on a graph that exchange one topic's events; messages take a second, give or take a bit."""

    def __init__(self, graph: nx.Graph[int], seed: int = 1) -> None:
        self.graph, self.random, self.now = graph, Random(seed), 0.0
        self.had: dict[int, set[Name]] = {node: set() for node in graph}
        self.push = {
            node: LazyPush[Name](
                lambda topic, node=node: dict.fromkeys(self.graph[node], True), ids_s=0.5, graft_s=3.0, shortcut_hops=2
            )
            for node in graph
        }
        self.wire: list[tuple[float, int, int, str, object]] = []
        self.payloads: Counter[Name] = Counter()
        self.lost: set[tuple[int, int]] = set()  # links that lose payloads
        self._hops: dict[tuple[int, Name], int] = {}
        self._sequence = 0

    def publish(self, node: int) -> Name:
        self._sequence += 1
        name = Name(TOPIC, node, self._sequence)
        self.had[node].add(name)
        self._hops[node, name] = 0
        self._do(node, self.push[node].publish(self.now, name, name, 10))
        return name

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while True:
            due = {node: at for node, push in self.push.items() if (at := push.due()) is not None}
            times = [at for at, *_ in self.wire] + list(due.values())
            if not times or min(times) > until:
                self.now = until
                return
            self.now = max(self.now, min(times))
            for node, at in due.items():
                if at <= self.now:
                    self._do(node, self.push[node].expire(self.now))
            arrived = sorted((m for m in self.wire if m[0] <= self.now), key=lambda m: m[:4])
            self.wire = [m for m in self.wire if m[0] > self.now]
            for _, sender, to, kind, what in arrived:
                self._take(sender, to, kind, what)

    def _send(self, sender: int, to: int, kind: str, what: object) -> None:
        self.wire.append((self.now + self.random.uniform(0.9, 1.1), sender, to, kind, what))

    def _do(self, node: int, actions: Actions[Name]) -> None:
        for to, name in actions.events:
            self.payloads[name] += 1
            if (node, to) not in self.lost:
                self._send(node, to, "event", (name, self._hops[node, name]))
        for to, topics in actions.prunes.items():
            self._send(node, to, "prune", topics)
        for to in {*actions.grafts, *actions.joins}:
            self._send(node, to, "graft", (actions.grafts.get(to, []), actions.joins.get(to, set())))
        for to, ids in actions.ids.items():
            self._send(node, to, "ids", ids)

    def _take(self, sender: int, to: int, kind: str, what: object) -> None:
        push, had = self.push[to], self.had[to]
        match kind, what:
            case "event", (name, hops):
                assert isinstance(name, Name)
                if name in had:
                    self._do(to, push.again(name, sender))
                else:
                    had.add(name)
                    self._hops[to, name] = hops + 1
                    self._do(to, push.take(self.now, name, name, hops + 1, 10, sender))
            case "prune", set() as topics:
                push.on_prune(topics, sender)
            case "graft", (names, topics):
                self._do(to, push.on_graft(names, topics, sender))
            case "ids", list() as ids:
                self._do(to, push.on_ids(self.now, sender, ids, had.__contains__))

    def eager(self) -> nx.DiGraph[int]:
        found: nx.DiGraph[int] = nx.DiGraph()
        for node, push in self.push.items():
            found.add_edges_from((node, other) for other in self.graph[node] if push.is_eager(TOPIC, other, True))
        return found

    def reached(self, name: Name) -> set[int]:
        return {node for node, had in self.had.items() if name in had}


def connected(seed: int) -> nx.Graph[int]:
    graph: nx.Graph[int] = nx.gnp_random_graph(NODES, 0.35, seed=seed)
    parts = [min(part) for part in nx.connected_components(graph)]
    graph.add_edges_from(pairwise(parts))
    return graph


@examples(1)
@given(seed=st.integers(0, 10_000))
def test_after_an_event_or_two_a_payload_reaches_everybody_once(seed: int) -> None:
    flood = Flood(connected(seed), seed)
    for _ in range(3):
        flood.publish(0)
        flood.run(60)
    name = flood.publish(0)
    flood.run(60)
    assert flood.reached(name) == set(flood.graph)
    assert flood.payloads[name] == NODES - 1
    tree = flood.eager().to_undirected(reciprocal=True)
    assert nx.is_tree(tree) and set(tree) == set(flood.graph)
    other = flood.publish(NODES - 1)
    flood.run(60)
    assert flood.reached(other) == set(flood.graph)


@examples(1)
@given(seed=st.integers(0, 10_000), losses=st.integers(1, 4))
def test_what_does_not_come_is_asked_of_those_who_said_that_they_have_it(seed: int, losses: int) -> None:
    """Some links lose payloads in one direction; whoever another way leads to has every event all the same."""
    flood = Flood(connected(seed), seed)
    for _ in range(2):
        flood.publish(0)
        flood.run(60)
    both = [edge for a, b in flood.graph.edges for edge in ((a, b), (b, a))]
    flood.lost = set(flood.random.sample(both, min(losses, len(both))))
    name = flood.publish(0)
    flood.run(120)
    without = nx.DiGraph([edge for edge in both if edge not in flood.lost])
    without.add_nodes_from(flood.graph)
    told = {node for node in flood.graph if nx.has_path(without, 0, node)}
    missed = told - flood.reached(name)
    for node in missed:  # only those whose neighbours, all that have it, could send nothing that arrives
        assert all((other, node) in flood.lost for other in flood.graph[node] if other in flood.reached(name))


def test_a_link_that_the_overlay_takes_into_its_tree_is_eager_again() -> None:
    words = {1: True, 2: True}
    push = LazyPush[str](lambda topic: words, ids_s=0.5, graft_s=1.0, shortcut_hops=3)
    push.on_prune([TOPIC], 1)
    assert not push.is_eager(TOPIC, 1, True)
    assert not push.is_eager(TOPIC, 1, False), "the overlay now says the same"
    words[1] = False
    push.on_graft([], [TOPIC], 1)
    assert push.is_eager(TOPIC, 1, False)


def test_a_much_shorter_way_replaces_the_one_that_an_event_came_by() -> None:
    words = {1: True, 2: False}
    push = LazyPush[str](lambda topic: words, ids_s=0.5, graft_s=1.0, shortcut_hops=3)
    name = Name(TOPIC, 9, 1)
    push.take(0.0, name, "news", 8, 4, 1)
    longer = push.on_ids(0.1, 2, [(name, 6)], lambda _: True)
    assert not longer.joins and not longer.prunes
    shorter = push.on_ids(0.2, 2, [(name, 4)], lambda _: True)
    assert dict(shorter.joins) == {2: {TOPIC}} and dict(shorter.prunes) == {1: {TOPIC}}
    assert push.is_eager(TOPIC, 2, False) and not push.is_eager(TOPIC, 1, True)
    words[3] = False
    again = push.on_ids(0.3, 3, [(name, 4)], lambda _: True)
    assert not again.joins and not again.prunes, "one shorter way is enough"


def test_a_message_that_was_doubled_prunes_nothing() -> None:
    push = LazyPush[str](lambda topic: {1: True}, ids_s=0.5, graft_s=1.0, shortcut_hops=3)
    name = Name(TOPIC, 9, 1)
    push.take(0.0, name, "news", 1, 4, 1)
    assert not push.again(name, 1).prunes
    assert push.is_eager(TOPIC, 1, True)


def test_memory_is_bounded_whatever_neighbours_tell() -> None:
    push = LazyPush[str](lambda topic: dict.fromkeys(range(10), True), ids_s=0.5, graft_s=1.0, shortcut_hops=3)
    for first in range(0, MOST_MISSING + 1_000, 100):
        ids = [(Name(TOPIC, 9, sequence), 1) for sequence in range(first, first + 100)]
        for node in range(6):
            push.on_ids(0.0, node, ids, lambda _: False)
    assert len(push._missing) == MOST_MISSING
    assert all(len(missing.bearers) <= MOST_BEARERS for missing in push._missing.values())
    for sequence in range(2 * MOST_KEPT):
        push.publish(0.0, Name(TOPIC, 0, sequence), "news", 4)
    assert len(push._kept) == MOST_KEPT


def test_nobody_is_asked_who_is_no_neighbour_of_the_topic() -> None:
    push = LazyPush[str](lambda topic: {1: True} if topic == TOPIC else {}, ids_s=0.5, graft_s=1.0, shortcut_hops=3)
    push.on_ids(0.0, 2, [(Name(TOPIC, 9, 1), 1)], lambda _: False)
    push.on_ids(0.0, 1, [(Name(TOPIC + 1, 9, 1), 1)], lambda _: False)
    assert push.due() is None
