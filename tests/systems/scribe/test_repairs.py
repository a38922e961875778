"""Trees of Scribe when nodes come and go, messages get lost, or the network falls apart (Scribe §III-D)."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from grapevine.systems.scribe.messages import Subscribe
from tests.scribe_world import SOME, Network, assert_tree


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("crash", [True, False], ids=["crash", "leave"])
def test_the_tree_heals_when_inner_nodes_go(seed: int, crash: bool) -> None:
    """Scribe §III-D: a child that hears nothing from its parent subscribes again."""
    network = Network({0: range(1, 80)}, nodes=200, seed=seed)
    gone = network.inner()[:6]
    for node in gone:
        (network.engine.crash if crash else network.engine.leave)(node)
    live = set(range(1, 80)) - set(gone)
    network.publish()
    network.run(80 if crash else 2)  # heartbeat and time-out to notice, another time-out for each hop that is gone too
    assert network.who_got(1) < live
    network.publish()
    network.run(2)
    assert network.who_got(2) == live
    network.run(60)
    assert_tree(network, sorted(live))


def test_a_crash_is_noticed_after_a_heartbeat_and_a_time_out() -> None:
    network = Network({0: range(1, 80)}, nodes=200)
    node = network.inner()[0]
    child = next(iter(network.tree().successors(node)))
    network.run(60)
    network.engine.crash(node)
    asked = network.engine.counts[Subscribe]
    network.run(14)
    assert network.parent(child) == node
    network.run(33)
    assert network.parent(child) != node
    assert network.engine.counts[Subscribe] > asked


def test_dead_children_are_dropped() -> None:
    network = Network({0: SOME})
    for node in SOME:
        network.engine.crash(node)
    network.run(100)
    assert not network.last[0].trees
    assert not network.tree()


def test_a_node_that_is_back_receives_again_and_never_twice() -> None:
    network = Network({0: SOME})
    network.publish()
    network.run(5)
    node = network.inner()[0]
    network.engine.crash(node)
    network.run(5)
    network.start(node)  # before anybody has noticed
    network.run(100)
    network.publish()
    network.run(2)
    assert network.who_got(2) == set(SOME)
    assert_tree(network, SOME)


def test_the_publisher_comes_back_to_its_tree_and_numbers_its_events_on() -> None:
    network = Network({0: SOME})
    network.publish()
    network.run(2)
    network.engine.crash(0)
    network.run(200)
    assert nx.is_forest(network.tree())
    network.start(0)
    network.run(100)
    network.publish()
    network.run(2)
    assert network.who_got(2) == set(SOME)
    assert_tree(network, SOME)


@pytest.mark.parametrize("seed", range(4))
def test_trees_follow_nodes_that_come_and_go(seed: int) -> None:
    """Half of the nodes come one by one, others go; once all is quiet, trees are whole and lean again."""
    network = Network({0: range(1, 60), 1: range(40, 100)}, nodes=150, publishers=(0, 149), seed=seed, start=False)
    random = np.random.default_rng(seed)
    for node in random.permutation(150).tolist():
        if node not in network.engine.peers:
            network.start(node)
        network.run(float(random.exponential(2)))
        if random.random() < 0.3:
            victim = int(random.choice(list(network.engine.peers)))
            (network.engine.crash if random.random() < 0.5 else network.engine.leave)(victim)
    for publisher in (0, 149):
        if publisher not in network.engine.peers:
            network.start(publisher)
    network.run(200)
    network.publish(0)
    network.publish(1)
    network.run(3)
    for topic, members in enumerate([range(1, 60), range(40, 100)]):
        live = [node for node in members if node in network.engine.peers]
        assert network.who_got(1, topic) == set(live)
        assert_tree(network, live, topic)


@pytest.mark.parametrize("seed", range(4))
def test_loss_and_duplication_cost_events_but_never_deliver_one_twice(seed: int) -> None:
    """Scribe is best effort (§III-D): what a link loses is lost below it."""
    network = Network({0: SOME}, nodes=100, seed=seed, loss=0.05, duplication=0.2)
    network.run(100)
    for _ in range(100):
        network.publish()
        network.run(10)
    got = sum(len(network.who_got(sequence)) for sequence in range(1, 101))
    assert got > 0.75 * 100 * len(SOME)
    assert set(SOME) <= set(network.tree())


def test_a_parted_network_is_whole_again_after_it_heals() -> None:
    network = Network({0: SOME}, nodes=100)
    network.engine.part([range(50), range(50, 100)])
    network.run(200)
    network.engine.heal()
    network.run(100)
    network.publish()
    network.run(2)
    assert network.who_got(1) == set(SOME)
    assert_tree(network, SOME)


def test_a_child_that_its_parent_has_forgotten_subscribes_again_at_the_next_heartbeat() -> None:
    network = Network({0: [1], 1: [1]}, nodes=2, publishers=(0, 0))
    network.last[0].trees[0].children.clear()
    network.run(30)
    assert_tree(network, [1])
    assert network.engine.counts[Subscribe] == 3


def test_a_suspect_is_asked_again_where_nobody_else_leads_to_the_root() -> None:
    """A time-out after the first question, not only when the suspicion ends."""
    network = Network({0: [1]}, nodes=2, start=False)
    network.engine.part([[0], [1]])
    network.start(0)
    network.start(1)
    network.run(10)
    network.engine.heal()
    network.run(5)
    assert not network.tree().edges
    network.run(2)
    assert_tree(network, [1])
