"""Scribe over Pastry, rooted at publishers (Rappel §6.4), message by message in virtual time."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapevine.model.errors import UsageError
from grapevine.systems.contracts.peer import Effects, LinkDown, LinkUp, Send
from grapevine.systems.scribe.messages import Ack, Event, Heartbeat, Leave, Subscribe
from tests.scribe_world import SOME, Network, assert_tree


@pytest.mark.parametrize("nodes", [40, 300])
def test_every_subscriber_gets_every_event_exactly_once(nodes: int) -> None:
    network = Network({0: SOME, 1: range(20, 40)}, nodes=nodes, publishers=(0, 21))
    for _ in range(3):
        network.publish(0)
        network.publish(1)
        network.run(2)
    assert all(network.who_got(sequence) == set(SOME) for sequence in (1, 2, 3))
    assert all(network.who_got(sequence, topic=1) == set(range(20, 40)) for sequence in (1, 2, 3))
    assert set(network.receipts.values()) == {1}


@given(st.integers(1, 10**6), st.integers(2, 80), st.data())
@settings(max_examples=25)
def test_trees_have_the_publisher_as_root_and_no_cycles(seed: int, nodes: int, data: st.DataObject) -> None:
    publisher = data.draw(st.integers(0, nodes - 1))
    members = sorted(data.draw(st.sets(st.integers(0, nodes - 1), min_size=1)) - {publisher})
    network = Network({0: members}, nodes=nodes, publishers=(publisher,), seed=seed)
    network.publish()
    network.run(2)
    assert network.who_got(1) == set(members)
    if members:
        assert_tree(network, members)
        tree = network.tree()
        assert {node for node in tree if not tree.out_degree(node)} <= set(members)  # all others forward


def test_parents_are_the_next_hops_of_pastry() -> None:
    """Scribe §III: the tree is made of the routes to the root; the nearest in the network is asked first."""
    network = Network({0: SOME}, nodes=300)
    key = int(network.system.world.workload.node_ids[0])
    for child in set(network.tree()) - {0}:
        expected = network.system._overlay.next_hop(network.engine.now, child, key, ())
        assert list(network.tree().predecessors(child)) == [expected]


def test_forwarders_that_do_not_subscribe_receive_events_and_deliver_none() -> None:
    """Rappel §6.4: Scribe is not noiseless."""
    network = Network({0: range(1, 31)}, nodes=400)
    network.publish()
    network.run(2)
    relays = set(network.tree()) - set(range(31))
    assert relays
    assert {node for node, *_ in network.receipts} == set(range(1, 31)) | relays
    assert network.who_got(1) == set(range(1, 31))
    for node in relays:
        peer = network.last[node]
        assert [place.topic for place in network.system.places(peer)] == [0]
        assert {*chain(*network.system.neighbours(peer).values())} == {"parent", "child"}


def test_neighbours_have_a_role_for_every_tree_that_they_share() -> None:
    network = Network({0: [1], 1: [1], 2: [0]}, nodes=2, publishers=(0, 0, 1))
    assert network.system.neighbours(network.last[1]) == {0: ["parent", "parent", "child"]}
    assert network.system.neighbours(network.last[0]) == {1: ["child", "child", "parent"]}
    assert [tuple(place)[:4] for place in network.system.places(network.last[0])] == [
        *((0, None, None, 1), (1, None, None, 1), (2, 1, None, 0)),
    ]


def test_a_forwarder_without_children_leaves_and_so_do_those_above_it() -> None:
    network = Network({0: range(1, 31)}, nodes=400)
    for node in range(2, 31):
        network.unsubscribe(node)
    network.run(2)
    assert_tree(network, [1])
    tree = network.tree()
    assert [node for node in tree if tree.out_degree(node) == 0] == [1]  # a path is all that is left
    network.unsubscribe(1)
    network.run(2)
    assert not network.tree()


def test_who_unsubscribes_but_has_children_goes_on_to_forward() -> None:
    network = Network({0: SOME})
    node = next(node for node in network.inner() if node in SOME)
    network.unsubscribe(node)
    network.run(2)
    network.publish()
    network.run(2)
    assert network.who_got(1) == set(SOME) - {node}
    assert network.receipts[node, 0, 1] == 1


def test_a_late_subscriber_gets_what_is_published_from_then_on() -> None:
    network = Network({0: SOME})
    network.publish()
    network.run(20)
    network.subscribe(50)
    network.subscribe(50)
    network.run(2)
    network.publish()
    network.run(2)
    assert network.who_got(1) == set(SOME)
    assert network.who_got(2) == {*SOME, 50}
    assert_tree(network, [*SOME, 50])


def test_a_publisher_that_subscribes_delivers_its_own_events_and_sends_itself_none() -> None:
    network = Network({0: [0, 7]})
    network.publish()
    network.run(2)
    assert network.who_got(1) == {0, 7}
    assert not network.receipts[0, 0, 1]


def test_others_than_the_publisher_cannot_publish() -> None:
    network = Network({0: SOME})
    with pytest.raises(UsageError, match="node 7: events of topic 0 come from its publisher, node 0"):
        network.engine.peers[7].publish(0.0, 0, b"")


def test_one_heartbeat_serves_all_trees_of_two_nodes_and_is_answered() -> None:
    network = Network({0: [1], 1: [1], 2: [0]}, nodes=2, publishers=(0, 0, 1))
    network.run(60)
    assert network.engine.counts[Heartbeat] == 4  # two periods, both ways
    assert network.engine.counts[Ack] == 4
    assert network.engine.counts[Subscribe] == 3


def test_a_quiet_network_sends_heartbeats_alone() -> None:
    network = Network({0: SOME}, nodes=100)
    network.run(40)
    before = dict(network.engine.counts)
    network.run(300)
    edges = network.tree().number_of_edges()
    assert {kind: count - before[kind] for kind, count in network.engine.counts.items() if count != before[kind]} == {
        Heartbeat: 10 * edges,
        Ack: 10 * edges,
    }


def test_links_are_open_to_neighbours_and_closed_once_no_tree_needs_them() -> None:
    network = Network({0: SOME}, nodes=100, start=False)
    links: dict[int, set[int]] = {node: set() for node in range(100)}
    carry_out = network.engine.do

    def watched(node: int, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, LinkUp):
                assert effect.peer not in links[node]
                links[node].add(effect.peer)
            elif isinstance(effect, LinkDown):
                links[node].remove(effect.peer)
        carry_out(node, effects)

    network.engine.do = watched  # type: ignore[method-assign]
    for node in range(100):
        network.start(node)
    network.run(200)
    assert {node: set(network.system.neighbours(peer)) for node, peer in network.last.items()} == links
    for node in SOME:
        network.unsubscribe(node)
    network.run(100)
    assert not any(links.values())


def test_a_run_depends_on_the_seed_alone() -> None:
    def counts() -> tuple[object, ...]:
        network = Network({0: SOME}, loss=0.1)
        network.publish()
        network.run(100)
        return network.engine.counts, network.engine.sent, sorted(network.tree().edges), network.deliveries

    assert counts() == counts()


def test_messages_from_strangers_do_no_harm() -> None:
    peer = Network({0: SOME}).last[40]
    assert peer.on_message(9.0, 3, Subscribe(99)) == []
    assert peer.on_message(9.0, 3, Leave(99)) == []
    assert peer.on_message(9.0, 3, Event(0, 5, b"")) == [Send(3, Leave(0))]
    assert peer.on_message(9.0, 3, Heartbeat((0,))) == [Send(3, Ack()), Send(3, Leave(0))]
    assert peer.on_message(9.0, 3, "garbage") == peer.on_timer(9.0, "garbage") == []
    assert not peer.trees
