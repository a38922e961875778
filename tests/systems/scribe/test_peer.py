"""Scribe over Pastry, rooted at publishers (Rappel §6.4), message by message in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapevine.model.errors import UsageError
from grapevine.model.workload import Workload
from grapevine.sim.events import Events
from grapevine.systems.contracts.peer import Deliver, Effects, LinkDown, LinkUp, Send, World
from grapevine.systems.scribe.config import ScribeConfig
from grapevine.systems.scribe.messages import Ack, Event, Heartbeat, Leave, Subscribe
from grapevine.systems.scribe.peer import ScribePeer
from grapevine.systems.scribe.peers import Scribe
from grapevine.systems.scribe.tree import Window


class Network:
    """Nodes with Scribe, their network, and what they received."""

    def __init__(
        self,
        subscribers: Mapping[int, Sequence[int]],
        *,
        nodes: int = 60,
        publishers: Sequence[int] = (0,),
        seed: int = 1,
        config: Mapping[str, Any] | None = None,
        start: bool = True,
        loss: float = 0.0,
        duplication: float = 0.0,
    ) -> None:
        pairs = [(node, topic) for topic, members in subscribers.items() for node in members]
        workload = Workload.from_pairs(
            [node for node, _ in pairs],
            [topic for _, topic in pairs],
            node_count=nodes,
            topic_count=len(publishers),
            publishers=publishers,
        )
        delays = np.random.default_rng(seed).uniform(0.01, 0.2, (nodes, nodes))
        self.system = Scribe(
            ScribeConfig(**(config or {})), World(workload, publishers, lambda a, b: float(delays[a, b]), seed)
        )
        self.engine = Events(
            lambda _, a, b: float(delays[a, b]), seed=seed, loss=loss, duplication=duplication, observer=self
        )
        self.publishers = publishers
        self.last: dict[int, ScribePeer] = {}
        self.deliveries: Counter[tuple[int, int, int]] = Counter()  # (node, topic, sequence)
        self.receipts: Counter[tuple[int, int, int]] = Counter()
        if start:
            for node in range(nodes):
                self.start(node)
            self.run(5)

    def start(self, node: int) -> None:
        self.last[node] = self.system.peer(node, self.last.get(node))
        self.engine.start(node, self.last[node])

    def run(self, seconds: float) -> None:
        self.engine.run(self.engine.now + seconds)

    def publish(self, topic: int = 0) -> None:
        publisher = self.publishers[topic]
        self.engine.do(publisher, self.engine.peers[publisher].publish(self.engine.now, topic, b"news"))

    def subscribe(self, node: int, topic: int = 0) -> None:
        self.engine.do(node, self.engine.peers[node].subscribe(self.engine.now, topic))

    def unsubscribe(self, node: int, topic: int = 0) -> None:
        self.engine.do(node, self.engine.peers[node].unsubscribe(self.engine.now, topic))

    def sent(self, *_: Any) -> None: ...

    def received(self, now: float, node: int, sender: int, message: Event) -> None:
        self.receipts[node, message.topic, message.sequence] += 1

    def delivered(self, now: float, node: int, event: Deliver) -> None:
        self.deliveries[node, event.topic, event.sequence] += 1

    def who_got(self, sequence: int, topic: int = 0) -> set[int]:
        assert max(self.deliveries.values(), default=1) == 1, "an event was delivered twice"
        return {node for node, *event in self.deliveries if event == [topic, sequence]}

    def tree(self, topic: int = 0) -> nx.DiGraph[int]:
        """Edges from parents to children, as the children see it."""
        graph: nx.DiGraph[int] = nx.DiGraph()
        for node, peer in self.engine.peers.items():
            assert isinstance(peer, ScribePeer)
            if topic in peer.trees:
                graph.add_node(node)
                if (parent := self.parent(node, topic)) is not None:
                    graph.add_edge(parent, node)
        return graph

    def parent(self, node: int, topic: int = 0) -> int | None:
        """From whom the node gets the topic's events."""
        return {place.topic: place.parent for place in self.system.places(self.last[node])}[topic]

    def agrees(self, topic: int = 0) -> bool:
        """Whether parents and children name each other."""
        peers = {node: peer for node, peer in self.engine.peers.items() if isinstance(peer, ScribePeer)}
        down = {(n, child) for n, peer in peers.items() if topic in peer.trees for child in peer.trees[topic].children}
        return down == set(self.tree(topic).edges)

    def inner(self, topic: int = 0) -> list[int]:
        """Nodes with a parent and children, those with most below them first."""
        tree = self.tree(topic)
        found = [node for node in tree if tree.in_degree(node) and tree.out_degree(node)]
        return sorted(found, key=lambda node: -len(nx.descendants(tree, node)))


def assert_tree(network: Network, members: Sequence[int], topic: int = 0) -> None:
    tree = network.tree(topic)
    assert nx.is_arborescence(tree)
    assert tree.in_degree(network.publishers[topic]) == 0
    assert set(members) <= set(tree)
    assert network.agrees(topic)


SOME = range(5, 35)


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


@given(st.lists(st.integers(1, 200)), st.integers(1, 300))
def test_a_window_tells_new_events_from_old(sequences: list[int], size: int) -> None:
    window, seen = Window(size), list[int]()
    for sequence in sequences:
        latest = max(seen, default=0)
        assert window.is_new(sequence) == (sequence not in seen and sequence > latest - size)
        seen.append(sequence)


@pytest.mark.parametrize("setting", [{"digit_bits": 3}, {"leaf_size": 5}, {"heartbeat_s": 0}])
def test_settings_that_make_no_overlay_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(setting))):
        ScribeConfig(**setting)
