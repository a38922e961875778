"""Topics of SpiderCast and its rivals as scipy and networkx see them, and the events that travel through them."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from grapevine import Simulation, Workload, simulate
from grapevine.sim.churn import ChurnConfig, from_sessions
from grapevine.sim.round_run import RunConfig
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.sim.snapshot import draw_topic, links_of
from grapevine.synthetic import generate, generate_churn
from tests.spidercast_world import QUICK, graph_of, workload_of
from tests.worlds import medium_of, publish

# Topics as others see them


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
    schedule = from_sessions(churn, 900, ChurnConfig(round_s=0.5, rejoin="new", graceful=True))
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
            if len(parts) > 1:
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
