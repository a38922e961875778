"""Vitis against the paper: its worked example, and what Algorithms 4 and 5 promise."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from grapevine.blocks.profiles import Profiles, make_profiles, mark, new_marks, utility
from grapevine.kernels.ring import ring_distance
from grapevine.model.errors import UsageError
from grapevine.model.ids import distance
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate
from grapevine.systems.vitis.config import VitisConfig
from grapevine.systems.vitis.rounds import Vitis

SMALL = {"topics": 100, "subscriptions_per_node": 10, "buckets": 10}


def profiles_of(*interests: set[int], rates: list[float]) -> Profiles:
    starts = np.cumsum([0, *map(len, interests)]).astype(np.int64)
    topics = np.concatenate([sorted(wanted) for wanted in interests]).astype(np.int32)
    return make_profiles(np.arange(len(interests), dtype=np.uint64), starts, topics, np.array(rates))


def utility_of(profiles: Profiles, p: int, q: int) -> float:
    marks = new_marks(profiles)
    mark(p, profiles, marks)
    return utility(p, q, profiles, marks)


def test_the_papers_worked_example() -> None:
    """§III-A2: p wants A B C, q wants C D, r wants C … H."""
    a, b, c, d, e, f, g, h = range(8)
    profiles = profiles_of({a, b, c}, {c, d}, {c, d, e, f, g, h}, rates=[1.0] * 8)
    p, q, r = range(3)
    assert utility_of(profiles, p, q) == utility_of(profiles, q, p) == 0.25
    assert utility_of(profiles, p, r) == 0.125
    assert utility_of(profiles, q, r) == pytest.approx(1 / 3)


def test_topics_that_never_publish_do_not_count_and_hot_ones_do() -> None:
    """§III-A2: a rate that goes to zero makes its topic invisible."""
    profiles = profiles_of({0, 1}, {0, 2}, {1, 3}, rates=[0.0, 1.0, 1.0, 1.0])
    assert utility_of(profiles, 0, 1) == 0.0
    assert utility_of(profiles, 0, 2) == pytest.approx(0.5)
    hot = profiles_of({0, 1}, {0, 2}, {1, 3}, rates=[8.0, 1.0, 1.0, 1.0])
    assert utility_of(hot, 0, 1) == pytest.approx(0.8) and utility_of(hot, 0, 2) == pytest.approx(0.1)


def settled(**parameters: Any) -> Rounds:
    workload = generate("vitis-low", nodes=300, seed=5, **SMALL)
    rounds = Rounds("vitis", workload, VitisConfig(table_size=8, **parameters), seed=3)
    for _ in range(60):
        rounds.step()
    rounds.settle((0, workload.topic_count))
    return rounds


def test_ideal_friends_are_the_best_of_all_nodes() -> None:
    rounds = settled(friends="ideal")
    network = rounds.network
    for p in range(0, network.size, 7):
        row = network.views.links[network.views.starts[p] : network.views.starts[p + 1]].tolist()
        values = {q: utility_of(network.profiles, p, q) for q in range(network.size) if q != p and q not in row[:3]}
        best = sorted(values.values(), reverse=True)[:5]
        assert [values[q] for q in row[3:]] == pytest.approx(best)


def test_ideal_friends_cannot_be_bounded() -> None:
    with pytest.raises(UsageError, match="most_links=20: ideal friends are not asked"):
        make_config("vitis", {"friends": "ideal", "most_links": 20})


@pytest.mark.parametrize("reach", [2, 3, 5, 20])
def test_every_member_is_within_reach_of_its_gateway(reach: int) -> None:
    """Algorithm 5, line 10: a member is fewer than d hops from the gateway it proposes, along members."""
    rounds = settled(gateway_reach=reach)
    network, system = rounds.network, rounds.system
    assert isinstance(system, Vitis)
    neighbours = network.neighbours()
    overlay = nx.Graph((p, q) for p in range(network.size) for q in neighbours.row(p).tolist())
    for topic in range(0, len(network.topic_ids), 10):
        members = network.topic_nodes.row(topic)
        first = network.topic_nodes.starts[topic]
        graph = overlay.subgraph(members.tolist())
        for i, member in enumerate(members.tolist()):
            gateway = int(members[system.proposals.gateway[first + i]])
            hops = int(system.proposals.hops[first + i])
            assert hops < reach
            assert nx.shortest_path_length(graph, member, gateway) <= hops
            key = network.topic_ids[topic]
            assert ring_distance(network.ids[gateway], key) <= ring_distance(network.ids[member], key)


def test_with_a_long_reach_each_cluster_has_one_gateway_its_member_nearest_to_the_topic() -> None:
    rounds = settled(gateway_reach=100)
    network, gateways = rounds.network, rounds.system.delivery().gateways
    neighbours = network.neighbours()
    overlay = nx.Graph((p, q) for p in range(network.size) for q in neighbours.row(p).tolist())
    for topic in range(len(network.topic_ids)):
        members, first = network.topic_nodes.row(topic), network.topic_nodes.starts[topic]
        chosen = {int(m) for i, m in enumerate(members) if gateways[first + i]}
        key = int(network.topic_ids[topic])
        parts = nx.connected_components(overlay.subgraph(members.tolist()))
        assert chosen == {min(part, key=lambda node: distance(int(network.ids[node]), key)) for part in parts}


def test_the_table_keeps_ring_long_links_and_the_most_similar() -> None:
    """Algorithm 4: friends are at least as useful as what peer sampling offers at random."""
    rounds = settled()
    table = rounds.network.views.links.reshape(300, 8)
    assert rounds.ring_correctness() == 1.0
    profiles = rounds.network.profiles
    friends = np.mean([utility_of(profiles, p, int(q)) for p in range(100) for q in table[p, 3:]])
    anyone = np.mean([utility_of(profiles, p, (p + 1 + i) % 300) for p in range(100) for i in range(5)])
    assert friends > 1.5 * anyone
    for row in table:
        assert len(set(row.tolist())) == 8
