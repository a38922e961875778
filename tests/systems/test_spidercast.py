"""SpiderCast and its rivals: link by link as in the plain Python of `tests/naive_connections.py`, and as promised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from grapevine import Simulation, Workload, simulate
from grapevine.blocks.connections import MESSAGES
from grapevine.blocks.views import NOBODY
from grapevine.model.errors import UsageError
from grapevine.sim.churn import Change, Schedule, everyone, from_sessions, mass_failure
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import RunConfig, make_config
from grapevine.sim.snapshot import draw_topic, links_of
from grapevine.synthetic import generate, generate_churn
from grapevine.systems.spidercast import ConnectionSystem
from tests.naive_connections import NaiveConnections
from tests.worlds import medium_of, publish

ROUNDS = 24
QUICK = RunConfig(measure_topics=0)


def workload_of(
    nodes: int, topics: int, least: int, most: int, *, exponent: float = 0.5, popularity: str = "zipf", seed: int = 1
) -> Workload:
    sizes = {"min_subscriptions": least, "max_subscriptions": most}
    return generate(
        "spidercast", nodes=nodes, topics=topics, popularity=popularity, exponent=exponent, seed=seed, **sizes
    )


def int32(numbers: Sequence[int]) -> NDArray[np.int32]:
    return np.array(numbers, np.int32)


# The kernels and the plain rounds


class Case(NamedTuple):
    system: str
    parameters: dict[str, Any]
    workload: dict[str, Any]


CASES = {
    "greedy (3, 0)": Case("spidercast", {}, {"nodes": 100, "topics": 30, "least": 3, "most": 8}),
    "greedy and random (3, 1)": Case(
        "spidercast",
        {"random_coverage": 1},
        {"nodes": 80, "topics": 40, "least": 5, "most": 5, "popularity": "uniform"},
    ),
    "adaptive, skewed": Case(
        "spidercast", {"adaptive": True}, {"nodes": 100, "topics": 12, "least": 8, "most": 8, "exponent": 2.0}
    ),
    "no margin": Case(
        "spidercast",
        {"greedy_coverage": 1, "margin": 0},
        {"nodes": 100, "topics": 40, "least": 1, "most": 6, "exponent": 1.0},
    ),
    "small margin": Case(
        "spidercast",
        {"greedy_coverage": 1, "random_coverage": 1, "margin": 1, "quarantine_rounds": 0},
        {"nodes": 100, "topics": 40, "least": 1, "most": 6, "exponent": 1.0},
    ),
    "partial view": Case(
        "spidercast",
        {"random_coverage": 1, "view_share": 0.2, "max_age": 1},
        {"nodes": 120, "topics": 30, "least": 4, "most": 6},
    ),
    "ties in a common order": Case(
        "spidercast",
        {"greedy_coverage": 2, "ties": "order"},
        {"nodes": 80, "topics": 20, "least": 2, "most": 6, "exponent": 1.0},
    ),
    # Nobody is missed before the end, so those who come back find neighbours that still count on them.
    "slow to miss": Case(
        "spidercast",
        {"greedy_coverage": 2, "random_coverage": 1, "margin": 2, "max_age": 30},
        {"nodes": 60, "topics": 20, "least": 2, "most": 5},
    ),
    "similarity (4, 2)": Case(
        "similarity",
        {"similar": 4, "random": 2, "margin": 1},
        {"nodes": 80, "topics": 30, "least": 3, "most": 8},
    ),
    "random (5), skewed": Case(
        "similarity",
        {"similar": 0, "random": 5, "margin": 1},
        {"nodes": 80, "topics": 10, "least": 3, "most": 8, "exponent": 2.0},
    ),
}
EVERY = list(CASES)


class Story(NamedTuple):
    """What happens to the nodes, by round."""

    first: list[int]
    joins: dict[int, list[int]]
    leaves: dict[int, list[int]]
    crashes: dict[int, list[int]]
    wishes: dict[int, list[tuple[int, int, bool]]]  # node, topic, wanted or not

    def schedule(self) -> Schedule:
        rounds = sorted({*self.joins, *self.leaves, *self.crashes})
        changes = {
            now: Change(*(int32(some.get(now, [])) for some in (self.joins, self.leaves, self.crashes)))
            for now in rounds
        }
        return Schedule(int32(self.first), changes)


def quiet(workload: Workload) -> Story:
    return Story(list(range(workload.node_count)), {}, {}, {}, {})


def eventful(workload: Workload) -> Story:
    """Some crash, some leave, in round 16 both; half of them come back later than they are missed; five are new.

    Interests change in two rounds, also of those who are away; one node loses all of them and gets others.
    """
    old, new = list(range(workload.node_count - 5)), list(range(workload.node_count - 5, workload.node_count))
    crashed, left, last = old[3::9], old[4::9], old[5::9]
    topics = {p: workload.topics_of(p).tolist() for p in (*old, *new)}
    changed = [(p, topics[p][0], False) for p in old[1::8]]
    changed += [(p, (7 * p) % workload.topic_count, True) for p in old[1::6]]
    emptied = [(0, topic, False) for topic in topics[0]]
    refilled = [(0, topic, True) for topic in topics[2]]
    return Story(
        old,
        joins={11: crashed[::2] + new, 15: left[::2], 16: crashed[1::2]},
        leaves={7: left, 16: last[::2]},
        crashes={5: crashed, 16: last[1::2]},
        wishes={9: changed + emptied, 13: [(p, t, True) for p, t, _ in changed[:5]] + refilled},
    )


class State(NamedTuple):
    """One node in one task."""

    neighbours: list[int]
    target: int
    redirect: int
    k: int


class Pair:
    """Kernels and plain rounds, doing the same."""

    def __init__(self, case: Case, *, churn: bool, seed: int = 9) -> None:
        workload = workload_of(**case.workload)
        config = make_config(case.system, case.parameters)
        self.story = eventful(workload) if churn else quiet(workload)
        self.fast = Rounds(case.system, workload, config, seed=seed, schedule=self.story.schedule())
        given = config.as_dict()
        known = ("margin", "view_share", "quarantine_rounds", "max_age", "ties", "adaptive")
        wishes = [("greedy", "greedy_coverage"), ("random", "random_coverage")]
        if case.system == "similarity":
            wishes = [("similar", "similar"), ("stranger", "random")]
        self.slow = NaiveConnections(
            [set(workload.topics_of(p).tolist()) for p in range(workload.node_count)],
            [(rule, given[parameter]) for rule, parameter in wishes],
            seed=seed,
            **{name: given[name] for name in known if name in given},
        )
        self.slow.join(self.story.first)

    def run(self) -> Iterator[int]:
        for now in range(1, ROUNDS + 1):
            self.slow.leave(self.story.leaves.get(now, []))
            self.slow.crash(self.story.crashes.get(now, []))
            self.slow.join(self.story.joins.get(now, []))
            for node, topic, wanted in self.story.wishes.get(now, []):
                (self.fast.subscribe if wanted else self.fast.unsubscribe)(node, topic)
                (self.slow.nodes[node].topics.add if wanted else self.slow.nodes[node].topics.discard)(topic)
            self.fast.step()
            self.slow.round()
            yield now

    def slow_states(self) -> dict[tuple[int, int], State]:
        return {
            (p.number, i): State(
                sorted(task.neighbours), task.target, NOBODY if task.redirect is None else task.redirect, task.k
            )
            for p in self.slow.nodes
            if p.alive
            for i, task in enumerate(p.tasks)
        }

    def sent(self) -> dict[str, int]:
        return {kind: self.slow.sent[kind] for kind in MESSAGES}


def system_of(engine: Rounds) -> ConnectionSystem:
    assert isinstance(engine.system, ConnectionSystem)
    return engine.system


def states(engine: Rounds) -> dict[tuple[int, int], State]:
    """Of the nodes that are there."""
    system, views, found = system_of(engine), engine.network.views, {}
    for p in np.flatnonzero(engine.network.alive).tolist():
        row = slice(views.starts[p], views.starts[p + 1])
        links, roles = views.links[row], system.roles[row]
        for i, task in enumerate(system.tasks):
            near = sorted(links[(links != NOBODY) & (roles & task.role != 0)].tolist())
            found[p, i] = State(near, int(task.target[p]), int(task.redirect[p]), int(task.k[p]))
    return found


def sent_by(engine: Rounds) -> dict[str, int]:
    return {kind: sent.messages for kind, sent in engine.system.messages().items()}


@pytest.mark.parametrize("churn", [False, True], ids=["quiet", "eventful"])
@pytest.mark.parametrize("name", EVERY)
def test_every_neighbour_target_and_message_is_that_of_the_plain_rounds(name: str, churn: bool) -> None:
    pair = Pair(CASES[name], churn=churn)
    for _ in pair.run():
        assert states(pair.fast) == pair.slow_states()
        assert sent_by(pair.fast) == pair.sent()


def test_small_margins_make_every_kind_of_message_needed() -> None:
    """So the comparison above has seen them all; nobody says goodbye here, so a LEAVE is that of a full node."""
    pair = Pair(CASES["small margin"], churn=False)
    for _ in pair.run():
        assert sent_by(pair.fast) == pair.sent()
    assert min(pair.sent().values()) > 0


def test_skewed_interests_raise_the_random_coverage_of_some_nodes_and_never_above_four() -> None:
    """§3.3.1: K_r is raised while it is 3 or less."""
    pair = Pair(CASES["adaptive, skewed"], churn=False)
    reached = [{state.k for (_, i), state in states(pair.fast).items() if i == 1} for _ in pair.run()]
    assert reached[0] == {0}
    assert set.union(*reached) == {0, 1, 2, 3, 4}


def test_who_is_back_before_being_missed_is_answered_by_the_neighbour_it_had() -> None:
    """Both ask each other in round 1. In round 4 node 1 is back and asks 0, which is full, but with node 1."""
    workload = Workload.from_pairs([0, 1], [0, 0], node_count=2, topic_count=1)
    config = make_config("spidercast", {"greedy_coverage": 1, "margin": 0})
    changes = {3: Change(crashes=int32([1])), 4: Change(joins=int32([1]))}
    engine = Rounds("spidercast", workload, config, schedule=Schedule(int32([0, 1]), changes))
    seen = []
    for _ in range(4):
        engine.step()
        seen.append({p: state.neighbours for (p, i), state in states(engine).items() if i == 0})
    assert seen == [{0: [1], 1: [0]}, {0: [1], 1: [0]}, {0: [1]}, {0: [1], 1: [0]}]
    sent = {kind: count for kind, count in sent_by(engine).items() if count}
    assert sent == {"connect": 3, "connect-ok": 3}


# What the tables promise


def one_sided(engine: Rounds) -> list[tuple[int, int, int]]:
    """Neighbours (p, q) in a task such that q is there and does not count p."""
    found = states(engine)
    return [
        (p, q, i) for (p, i), state in found.items() for q in state.neighbours
        if (q, i) in found and p not in found[q, i].neighbours
    ]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_links_have_two_ends_and_degrees_their_limit_when_nobody_crashes(name: str) -> None:
    case = CASES[name]
    workload = workload_of(**case.workload)
    story = eventful(workload)._replace(crashes={}, wishes={})
    joins = {now: [p for p in some if p % 9 == 4 or p not in story.first] for now, some in story.joins.items()}
    config = make_config(case.system, case.parameters)
    engine = Rounds(case.system, workload, config, seed=2, schedule=story._replace(joins=joins).schedule())
    margin = system_of(engine).config.margin
    for _ in range(ROUNDS):
        engine.step()
        assert one_sided(engine) == []
        for (p, i), state in states(engine).items():
            task = system_of(engine).tasks[i]
            assert len(state.neighbours) == task.degree[p] <= task.limit[p] + margin


def test_a_crash_too_short_to_be_noticed_leaves_no_link_of_one_end() -> None:
    workload = workload_of(100, 30, 3, 8)
    gone = int32(range(0, 100, 10))
    schedule = Schedule(int32(range(100)), {10: Change(crashes=gone), 11: Change(joins=gone)})
    engine = Rounds("spidercast", workload, make_config("spidercast", {}), schedule=schedule)
    for _ in range(30):
        engine.step()
    assert one_sided(engine) == []


# Topics as others see them


def graph_of(source: Sequence[int], target: Sequence[int], nodes: int) -> nx.Graph[int]:
    graph: nx.Graph[int] = nx.empty_graph(nodes)
    graph.add_edges_from(zip(source, target, strict=True))
    return graph


def components_by_scipy(done: Simulation, workload: Workload) -> list[int]:
    """The number of pieces of every topic's subscribers."""
    source, target = (done.links[name].to_numpy() for name in ("source", "target"))
    overlay = csr_array((np.ones(len(source), np.int8), (source, target)), shape=(workload.node_count,) * 2)
    members = (workload.subscribers_of(topic) for topic in range(workload.topic_count))
    return [int(connected_components(overlay[some][:, some], directed=False)[0]) for some in members if len(some)]


def test_three_greedy_links_connect_every_topic_of_a_thousand_nodes() -> None:
    """§3.3: RSS popularity, 10 of 100 topics. scipy and networkx judge."""
    workload = generate("spidercast", nodes=1_000, seed=4)
    done = simulate("spidercast", workload, rounds=40, run=QUICK)
    assert components_by_scipy(done, workload) == [1] * 100
    graph = graph_of(done.links["source"].to_pylist(), done.links["target"].to_pylist(), 1_000)
    for topic in range(0, 100, 20):
        assert nx.is_connected(graph.subgraph(workload.subscribers_of(topic).tolist()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("popularity", "exponent"), [("zipf", 0.5), ("zipf", 1.0), ("zipf", 2.0), ("exponential", 0.5), ("uniform", 0.5)]
)
def test_ten_thousand_nodes_are_connected_as_scipy_sees_it(popularity: str, exponent: float) -> None:
    """§3.3.1, §3.4. Of a topic with few subscribers, two groups of K + 1 may be covered and apart."""
    workload = generate("spidercast", nodes=10_000, popularity=popularity, exponent=exponent, seed=1)
    done = simulate("spidercast", workload, rounds=40, run=QUICK, adaptive=True)
    pieces = components_by_scipy(done, workload)
    sizes = [n for n in np.diff(workload.topic_nodes.starts).tolist() if n]
    assert pieces == [n for n in done.topics["clusters"].to_pylist() if n]
    assert {n for n, size in zip(pieces, sizes, strict=True) if size > 20} == {1}


def test_partial_views_and_churn_are_measured_as_scipy_would() -> None:
    """§3.7, §3.8: views of 5 %, everybody comes and goes, newcomers do not count for 10 rounds, a window of topics."""
    workload = generate("spidercast", nodes=900, topics=40, min_subscriptions=4, max_subscriptions=6, seed=3)
    churn = generate_churn("spidercast-churn", nodes=250, mean_up_s=60.0, duration_s=100.0, seed=3)
    schedule = from_sessions(churn, 900, round_s=0.5, rejoin="new", graceful=True)
    engine = Rounds("spidercast", workload, make_config("spidercast", {"view_share": 0.1}), schedule=schedule)
    shares = set()
    for now in range(1, 121):
        engine.step()
        if now % 15:
            continue
        network, links = engine.network, links_of(engine)
        counted = network.alive & (network.now - network.joined >= 10)
        overlay = csr_array((np.ones(len(links["source"])), (links["source"], links["target"])), shape=(900, 900))
        whole = []
        for topic in range(5, 35):
            some = workload.subscribers_of(topic)
            some = some[network.alive[some]]  # newcomers connect others, though they do not count
            parts = connected_components(overlay[some][:, some], directed=False)[1][counted[some]]
            if len(parts):
                whole.append(len(set(parts.tolist())) == 1)
        assert engine.connected_topics((5, 35), grace_rounds=10) == np.mean(whole)
        shares.add(float(np.mean(whole)))
    assert min(shares) < 1.0  # with so few known, something is in pieces at some time, or this would test nothing


def test_owners_of_topics_count_as_interested() -> None:
    """§2.1: who will publish on a topic gets links for it, without being counted as a subscriber of its events."""
    nodes = np.repeat(np.arange(1, 30), 2)
    topics = np.tile([0, 1], 29)
    workload = Workload.from_pairs(nodes, topics, node_count=30, topic_count=2, publishers=[0, 5])
    run = RunConfig(publish_from="owner", measure_topics=0)
    for system in ("spidercast", "similarity", "ring-per-topic", "opt"):
        events = simulate(system, workload, rounds=25, run=run).events.to_pylist()
        assert [event["publisher"] for event in events] == [0, 5]
        assert [event["subscribers"] for event in events] == [29, 28]
        assert all(event["reached"] == event["subscribers"] for event in events)
    without = simulate("spidercast", workload, rounds=25, run=QUICK)
    assert without.nodes["degree"][0].as_py() == 0  # node 0 publishes nothing here, and wants nothing


def test_what_similarity_leaves_in_pieces_is_counted_as_scipy_counts_it() -> None:
    workload = workload_of(300, 40, 3, 5, seed=2)
    done = simulate("similarity", workload, rounds=20, run=QUICK, similar=4)
    pieces = components_by_scipy(done, workload)
    assert max(pieces) > 1
    assert [n for n in done.topics["clusters"].to_pylist() if n] == pieces


def test_diameters_in_the_table_are_those_of_networkx() -> None:
    workload = workload_of(150, 20, 2, 4)
    done = simulate("spidercast", workload, rounds=25, run=RunConfig(measure_topics=0, diameter_topics=6))
    graph = graph_of(done.links["source"].to_pylist(), done.links["target"].to_pylist(), 150)
    shown = {topic: far for topic, far in enumerate(done.topics["diameter"].to_pylist()) if far is not None}
    assert len(shown) == 6
    for topic, far in shown.items():
        assert far == nx.diameter(graph.subgraph(workload.subscribers_of(topic).tolist()))


# Events


@pytest.mark.parametrize(
    ("system", "parameters"), [("spidercast", {}), ("similarity", {"similar": 2, "random": 1})], ids=["whole", "pieces"]
)
def test_a_spanning_tree_reaches_the_same_nodes_without_duplicates(system: str, parameters: dict[str, Any]) -> None:
    workload = workload_of(100, 20, 3, 5)
    flood, tree = (
        simulate(system, workload, rounds=20, run=QUICK, dissemination=way, **parameters) for way in ("flood", "tree")
    )
    assert tree.links.equals(flood.links)
    for column in ("topic", "publisher", "subscribers", "reached", "wanted"):
        assert tree.events[column].equals(flood.events[column])
    assert sum(flood.events["duplicate"].to_pylist()) > 0 == sum(tree.events["duplicate"].to_pylist())


@pytest.mark.parametrize(
    ("system", "parameters"), [("spidercast", {}), ("similarity", {"similar": 2, "random": 1})], ids=["whole", "pieces"]
)
def test_the_links_that_carry_a_topic_are_a_tree_of_each_of_its_parts(system: str, parameters: dict[str, Any]) -> None:
    workload = workload_of(100, 20, 3, 5)
    engine = Rounds(system, workload, make_config(system, {**parameters, "dissemination": "tree"}))
    for _ in range(20):
        engine.step()
    links = links_of(engine)
    overlay, parts_of = graph_of(links["source"].tolist(), links["target"].tolist(), 100), []
    for topic in range(20):
        members = workload.subscribers_of(topic).tolist()
        _, drawn = draw_topic(engine, topic)
        tree = graph_of(drawn["source"], drawn["target"], 100).subgraph(members)
        parts = sorted(map(sorted, nx.connected_components(tree)))
        assert nx.is_forest(tree)
        assert parts == sorted(map(sorted, nx.connected_components(overlay.subgraph(members))))
        assert all(overlay.has_edge(p, q) for p, q in tree.edges)
        parts_of.append(len(parts))
    assert (max(parts_of) > 1) == (system == "similarity")


#   0 --- 1
#   |     |
#   3 --- 2 --- 4     published by 4
SQUARE = {0: [1, 3], 1: [2], 2: [3, 4]}
IDS = [10, 20, 30, 40, 50]


def test_a_flood_over_a_square_crosses_its_last_edge_both_ways() -> None:
    """2 after one hop, 1 and 3 after two, 0 after three from 1; then 0 and 3 tell each other what they know."""
    event, load = publish(medium_of(SQUARE, range(5), ids=IDS), 4)
    assert (event["reached"], event["wanted"], event["duplicate"]) == (4, 4, 2)
    assert (event["hops_sum"], event["hops_p50"], event["hops_max"]) == (1 + 2 + 2 + 3, 2, 3)
    assert load[:, 1].tolist() == [1, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("topic_id", "hops"),
    [
        (11, [3, 2, 1, 4]),  # root 0: 0-1, 0-3, 1-2, 2-4
        (31, [3, 2, 1, 2]),  # root 2: 2-1, 2-3, 2-4, 1-0
        (41, [3, 4, 1, 2]),  # root 3: 3-0, 3-2, 0-1, 2-4
    ],
)
def test_a_tree_grows_from_the_member_nearest_to_the_topic(topic_id: int, hops: list[int]) -> None:
    """Of two ways of the same length the tree takes that over the smaller number."""
    event, load = publish(medium_of(SQUARE, range(5), ids=IDS, topic_id=topic_id, spanning=True), 4)
    assert (event["reached"], event["wanted"], event["duplicate"]) == (4, 4, 0)
    assert (event["hops_sum"], event["hops_max"]) == (sum(hops), max(hops))
    assert load.tolist() == [[1, 0, 0]] * 4 + [[0, 0, 0]]


def test_nodes_that_are_dead_or_do_not_subscribe_are_no_part_of_the_tree() -> None:
    """Without 1, what remains of the square is the line 0 - 3 - 2 - 4; without 3 as well, 0 is alone."""
    line, _ = publish(medium_of(SQUARE, range(5), ids=IDS, topic_id=11, spanning=True, dead=[1]), 4)
    assert (line["reached"], line["hops_sum"], line["duplicate"]) == (3, 1 + 2 + 3, 0)
    pair, load = publish(medium_of(SQUARE, [0, 2, 4], ids=IDS, topic_id=11, spanning=True), 4)
    assert (pair["subscribers"], pair["reached"], pair["hops_sum"], pair["unwanted"]) == (2, 1, 1, 0)
    assert load[:, 0].tolist() == [0, 0, 1, 0, 0]


# Ring per topic


def test_rings_on_a_small_workload_are_those_drawn_by_hand() -> None:
    """Six nodes, named here by their places in the order of ids; 0-2 and 2-3 serve two rings and are there once."""
    at = np.argsort(Workload.from_pairs([0], [0], node_count=6, topic_count=1).node_ids).tolist()
    rings = {0: [0, 2, 3, 5], 1: [0, 2, 3], 2: [1, 4], 3: [1]}  # topic 4 has nobody
    nodes, topics = zip(*((at[place], topic) for topic, ring in rings.items() for place in ring), strict=True)
    workload = Workload.from_pairs(nodes, topics, node_count=6, topic_count=5)
    done = simulate("ring-per-topic", workload, rounds=2, run=QUICK)
    links = zip(done.links["source"].to_pylist(), done.links["target"].to_pylist(), strict=True)
    hand = {(0, 2), (2, 3), (3, 5), (5, 0), (3, 0), (1, 4), (4, 1)}
    assert sorted(links) == sorted((at[a], at[b]) for a, b in hand)
    degree = done.nodes["degree"].to_pylist()
    assert [degree[node] for node in at] == [3, 1, 2, 3, 1, 2]


def test_the_rings_of_those_who_are_there_and_no_other_links_make_the_overlay() -> None:
    workload = workload_of(80, 25, 3, 6)
    engine = Rounds(
        "ring-per-topic", workload, make_config("ring-per-topic", {}), schedule=mass_failure(80, share=0.3, round=2)
    )
    for _ in range(3):
        engine.step()
    expected: set[frozenset[int]] = set()
    for topic in range(25):
        there = [p for p in workload.subscribers_of(topic).tolist() if engine.network.alive[p]]
        ring = sorted(there, key=lambda p: int(workload.node_ids[p]))
        expected |= {frozenset(pair) for pair in pairwise([*ring, *ring[:1]]) if len(ring) > 1}
    links = links_of(engine)
    pairs = list(zip(links["source"].tolist(), links["target"].tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    assert {frozenset(pair) for pair in pairs} == expected
    assert engine.network.neighbours().sizes().sum() == 2 * len(expected)


# Mistakes, and threads


@pytest.mark.parametrize(
    ("system", "parameters", "line"),
    [
        (
            "spidercast",
            {"greedy_coverage": 0, "random_coverage": 0},
            "greedy_coverage=0, random_coverage=0: nobody would look for neighbours; give one of them",
        ),
        (
            "spidercast",
            {"greedy_coverage": 0, "random_coverage": 1, "adaptive": True},
            "adaptive=true: needs greedy_coverage of 1 or more to adapt to",
        ),
        ("spidercast", {"margin": -1}, "margin=-1: needs at least 0"),
        ("spidercast", {"view_share": 0}, "view_share=0: needs at least 0.001"),
        ("spidercast", {"view_share": 1.5}, "view_share=1.5: needs at most 1"),
        ("spidercast", {"dissemination": "gossip"}, "dissemination='gossip': choose one of flood, tree"),
        (
            "similarity",
            {"similar": 0, "random": 0},
            "similar=0, random=0: nobody would look for neighbours; give one of them",
        ),
    ],
)
def test_parameters_that_make_no_sense_are_answered_with_one_line(
    system: str, parameters: dict[str, Any], line: str
) -> None:
    with pytest.raises(UsageError) as error:
        simulate(system, workload_of(40, 10, 2, 3), **parameters)
    assert str(error.value) == line


@pytest.mark.parametrize("name", ["small margin", "partial view", "similarity (4, 2)"])
def test_the_number_of_threads_changes_neither_links_nor_messages(name: str) -> None:
    case = CASES[name]
    workload = workload_of(**case.workload)
    one, three = (
        simulate(
            case.system,
            workload,
            threads=threads,
            schedule=mass_failure(workload.node_count, share=0.2, round=8),
            rounds=20,
            **case.parameters,
        )
        for threads in (1, 3)
    )
    assert one.links.equals(three.links)
    assert one.tables["messages"].equals(three.tables["messages"])
    assert sum(one.tables["messages"]["count"].to_pylist()) > 0


def test_without_a_change_the_overlay_comes_to_rest() -> None:
    """Once all is covered and nobody can do with less, no link comes or goes (§2.3)."""
    workload = workload_of(80, 30, 3, 6)
    engine = Rounds("spidercast", workload, make_config("spidercast", {}), schedule=everyone(80))
    for _ in range(60):
        engine.step()
    before = {key: state.neighbours for key, state in states(engine).items()}
    for _ in range(10):
        engine.step()
    assert {key: state.neighbours for key, state in states(engine).items()} == before
