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
    without = simulate("spidercast", workload, run=RunConfig(rounds=16, measure_every=8, measure_topics=5), threads=1)
    assert without.rounds["diameter"].to_pylist() == [None, None]


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
