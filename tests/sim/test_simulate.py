"""What a run measures when it is asked to."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from grapevine import simulate
from grapevine.metrics.distributions import Histogram
from grapevine.metrics.power_law import fit_power_law
from grapevine.sim.round_run import RunConfig
from grapevine.synthetic import generate


def test_diameters_on_the_way_are_the_mean_of_those_of_networkx() -> None:
    """The topics measured in round 16 are 5 … 9, the next five after those of round 8."""
    workload = generate("spidercast", nodes=60, topics=12, min_subscriptions=2, max_subscriptions=3, seed=2)
    settings = RunConfig(rounds=16, measure_every=8, measure_topics=5, measure_diameters=True)
    done = simulate("spidercast", workload, run=settings, threads=1)
    graph = nx.Graph(zip(done.links["source"].to_pylist(), done.links["target"].to_pylist(), strict=True))
    graph.add_nodes_from(range(60))
    far = []
    for topic in range(5, 10):
        members = graph.subgraph(workload.subscribers_of(topic).tolist())
        far.append(max(nx.diameter(members.subgraph(part)) for part in nx.connected_components(members)))
    assert len(set(far)) > 1
    assert done.rounds["diameter"].to_pylist()[-1] == pytest.approx(np.mean(far))
    assert done.rounds["diameter_max"].to_pylist()[-1] == max(far)
    without = simulate("spidercast", workload, run=RunConfig(rounds=16, measure_every=8, measure_topics=5), threads=1)
    assert without.rounds["diameter"].to_pylist() == [None, None]


def test_a_topic_in_pieces_has_no_diameter() -> None:
    """Those in one cluster count; with a single random link a node, most topics are in pieces."""
    workload = generate("spidercast", nodes=60, topics=12, min_subscriptions=2, max_subscriptions=3, seed=2)
    run = RunConfig(
        rounds=8, measure_every=8, measure_topics=12, measure_diameters=True, diameter_topics=12, overlay_diameters=True
    )
    done = simulate("similarity", workload, run=run, threads=1, similar=2, random=0)
    graph = nx.Graph(zip(done.links["source"].to_pylist(), done.links["target"].to_pylist(), strict=True))
    graph.add_nodes_from(range(60))
    topics = [graph.subgraph(workload.subscribers_of(topic).tolist()) for topic in range(12)]
    whole = [nx.diameter(topic) for topic in topics if nx.is_connected(topic)]
    assert 0 < len(whole) < 12
    assert done.rounds["diameter"].to_pylist() == [pytest.approx(np.mean(whole))]
    assert done.rounds["diameter_max"].to_pylist() == [max(whole)]
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    ways = [[hops[p].get(q) for p in topic for q in topic] for topic in topics]
    far = [max(way for way in some if way is not None) for some in ways if None not in some]
    assert done.summary["overlay_diameter"] == (pytest.approx(np.mean(far)) if far else None)
    assert done.summary["overlay_diameter_max"] == (max(far) if far else None)


def test_a_workload_is_described_when_asked_for() -> None:
    """Vitis Fig. 9: users, mean and largest degrees, exponents of both. The mean is over all nodes."""
    workload = generate("twitter-like", nodes=400, mean_degree=20.0, seed=3)
    found = simulate(
        "ring-per-topic", workload, run=RunConfig(rounds=1, measure_topics=0, describe_workload=True)
    ).summary
    rows = [workload.topics_of(node) for node in range(400)]
    followers = np.bincount(np.concatenate(rows), minlength=400)
    assert found["workload_nodes"] == 400
    assert found["subscriptions_mean"] == followers.sum() / 400
    assert found["workload_subscriptions_max"] == max(map(len, rows))
    assert found["workload_subscribers_max"] == followers.max()
    whole = fit_power_law(Histogram.of(followers), tail_start=1)
    tail = fit_power_law(Histogram.of(np.array([len(row) for row in rows])))
    assert whole is not None and tail is not None
    assert found["workload_subscribers_whole_exponent"] == whole.exponent
    assert found["workload_subscriptions_exponent"] == tail.exponent
    assert (
        "workload_nodes" not in simulate("ring-per-topic", workload, run=RunConfig(rounds=1, measure_topics=0)).summary
    )


def test_the_exponent_of_popularity_is_that_of_a_fit_to_the_subscribers_of_topics() -> None:
    """Magnet Fig. 7. Without being asked for there is none, nor where a fit has too few topics."""
    workload = generate("spidercast", nodes=300, topics=150, exponent=1.0, seed=2)
    popularity = [len(workload.subscribers_of(topic)) for topic in range(150)]
    expected = fit_power_law(Histogram.of(np.array(popularity)))
    asked = RunConfig(rounds=1, measure_topics=0, fit_popularity=True)
    assert expected is not None
    assert simulate("ring-per-topic", workload, run=asked).summary["popularity_exponent"] == expected.exponent
    silent = simulate("ring-per-topic", workload, run=RunConfig(rounds=1, measure_topics=0))
    assert silent.summary["popularity_exponent"] is None
    few = generate("spidercast", nodes=60, topics=12, min_subscriptions=2, max_subscriptions=3, seed=2)
    assert simulate("ring-per-topic", few, run=asked).summary["popularity_exponent"] is None
