"""Trellis message by message: the bound at every moment, everybody reached, healing, quiet, and rounds beside peers."""

from __future__ import annotations

from typing import Any

import pytest

from grapevine import Workload, simulate
from grapevine.sim.round_run import RunConfig
from grapevine.synthetic import generate
from grapevine.systems.registry import system_named
from grapevine.systems.trellis.peer.messages import Update
from grapevine.systems.trellis.peer.plain import rank_of
from tests.peer_world import clock_of, workload_of
from tests.trellis_world import Network, payloads

NODES, TOPICS, LINKS = 24, 8, 6
PUBLISHING = clock_of(hours=0.15, publish_from_s=250)


@pytest.fixture(scope="module")
def workload() -> Workload:
    return generate("vitis-high", nodes=NODES, topics=TOPICS, subscriptions_per_node=4, buckets=4, seed=2)


def test_the_bound_holds_at_every_moment_while_messages_are_lost_and_a_third_crashes(workload: Workload) -> None:
    """Messages are lost, doubled and overtake each other; a third crashes, and comes back a minute later."""
    network = Network(workload, loss=0.03, duplication=0.03, most_links=LINKS)
    network.start(*range(NODES))
    network.run(60)
    gone = list(range(1, NODES, 3))
    for node in gone:
        network.engine.crash(node)
    network.run(60)
    assert not any(set(gone) & set(peer.links.neighbours) for peer in network.peers.values())
    network.start(*gone)
    network.run(60)
    assert network.engine.most_seen == LINKS, "and it is used"
    network.engine.disturb()
    network.run(20)
    network.everybody_is_reached()


def test_once_it_is_quiet_clusters_have_one_root_and_payloads_come_once(workload: Workload) -> None:
    network = Network(workload, most_links=LINKS)
    network.start(*range(NODES))
    network.run(90)
    network.everybody_is_reached()
    for topic in range(TOPICS):
        wanting = network.wanting(topic)
        for node in wanting:
            own = network.peers[node].topics.own[topic]
            beside = {other for other in network.peers[node].links.neighbours if other in wanting}
            assert {network.peers[other].topics.own[topic].root for other in beside} <= {own.root}
            assert rank_of(topic, own.root) <= rank_of(topic, node)
    for topic in range(TOPICS):
        wanting = network.wanting(topic)
        for _ in range(2):  # from here, these find out which links are not needed
            network.publish(topic, max(wanting))
        before = payloads(network)
        assert network.publish(topic, max(wanting)) == wanting - {max(wanting)}
        carrying = {node for node, peer in network.peers.items() if len(peer.topics.edges(topic)) > 1}
        assert payloads(network) - before <= len(wanting | carrying) - 1


def test_a_third_may_crash_without_messages_being_lost(workload: Workload) -> None:
    """Half a minute later everybody who is left is reached, and nobody remembers the dead."""
    network = Network(workload, most_links=LINKS)
    network.start(*range(NODES))
    network.run(60)
    for node in range(0, NODES, 3):
        network.engine.crash(node)
    network.run(30)
    network.everybody_is_reached()


def test_who_is_not_in_a_topic_publishes_in_it(workload: Workload) -> None:
    network = Network(workload, most_links=LINKS)
    network.start(*range(NODES))
    network.run(60)
    for topic in range(TOPICS):
        stranger = min(set(network.peers) - network.wanting(topic))
        assert network.publish(topic, stranger) == network.wanting(topic)


def test_subscribers_without_a_common_link_are_joined_by_nodes_that_do_not_want_the_topic() -> None:
    """Thirty nodes with topics of their own; one topic is wanted by few that nothing else brings together."""
    few, nodes = [2, 9, 17, 26], 30
    own = {node: [1 + node % 5] + ([0] if node in few else []) for node in range(nodes)}
    network = Network(workload_of(own, nodes=nodes, publishers=[2, 0, 1, 2, 3, 4]), most_links=5, spare_value=0.0)
    network.start(*range(nodes))
    network.run(120)
    for publisher in few:
        assert network.publish(0, publisher) == set(few) - {publisher}


def test_who_has_nothing_to_say_is_quiet(workload: Workload) -> None:
    """While nothing changes only signs of life are sent, and turns become as rare as they may."""
    network = Network(workload, most_links=LINKS, most_turn_s=32)
    network.start(*range(NODES))
    network.run(240)
    before = network.engine.counts
    network.run(64)
    sent = network.engine.counts - before
    turns = [peer.turns.turn_s for peer in network.peers.values()]
    assert sorted(turns)[len(turns) // 2] == 32
    links = sum(len(peer.links.neighbours) for peer in network.peers.values())
    assert sent[Update] <= links * 64 / (0.7 * network.config.heartbeat_s)
    assert sum(sent.values()) - sent[Update] < 0.2 * sent[Update]
    node = next(iter(network.peers))
    network.engine.do(node, network.peers[node].subscribe(network.engine.now, TOPICS - 1))
    assert network.peers[node].turns.turn_s == network.config.turn_s, "and back at once"


@pytest.mark.slow
@pytest.mark.skipif("rounds" not in system_named("trellis").facets, reason="trellis has no rounds to compare with")
def test_peers_do_as_well_as_rounds_without_churn() -> None:
    """The same workload and bound: degree, relays and hops are comparable, and both reach everybody."""
    made = generate("vitis-high", nodes=40, topics=12, subscriptions_per_node=4, buckets=3, seed=2)
    peers: Any = simulate("trellis", made, driver="peers", clock=PUBLISHING, most_links=8).summary
    how = RunConfig(rounds=120, measure_topics=12)
    rounds: Any = simulate("trellis", made, driver="rounds", run=how, most_links=8).summary
    assert peers["hit_ratio"] == rounds["hit_ratio"] == 1.0
    assert peers["degree_max"] <= 8 and rounds["degree_max"] <= 8
    for name in ("degree", "hops", "relays_per_event"):
        assert abs(peers[name] - rounds[name]) < 1, name
