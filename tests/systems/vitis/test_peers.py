"""Vitis message by message: the same overlay as by rounds, within what asynchrony may change."""

from __future__ import annotations

import pytest

from grapevine import Workload, simulate
from grapevine.model.ids import clockwise
from grapevine.sim.peers import PeerRun
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate
from grapevine.systems.vitis.peer.book import VitisBook
from grapevine.systems.vitis.peer.messages import Descriptor
from grapevine.systems.vitis.peer.peer import VitisPeer
from grapevine.systems.vitis.peers import VitisPeers
from tests.peer_world import clock_of

CONFIG = {"round_s": 8.0, "table_size": 8}
CLOCK = clock_of(hours=0.15, publish_from_s=360, publish_every_s=60, start_s=10)


@pytest.fixture(scope="module")
def workload() -> Workload:
    return generate("vitis-high", nodes=30, topics=15, subscriptions_per_node=6, buckets=5, seed=3)


@pytest.fixture(scope="module")
def run(workload: Workload) -> PeerRun:
    made = PeerRun("vitis", workload, make_config("vitis", CONFIG, "peers"), CLOCK, seed=1)
    made.engine.run(CLOCK.end_s)
    return made


def peers_of(run: PeerRun) -> dict[int, VitisPeer]:
    return {node: peer for node, peer in run.engine.peers.items() if isinstance(peer, VitisPeer)}


def test_the_ring_is_exact(run: PeerRun) -> None:
    """§III-A1: the first two links are the true neighbours on the ring."""
    peers = peers_of(run)
    ring_id = {node: int(run.workload.node_ids[node]) for node in peers}
    for node, peer in peers.items():
        others = [other for other in peers if other != node]
        assert peer.table[0] == min(others, key=lambda other: clockwise(ring_id[node], ring_id[other]))
        assert peer.table[1] == min(others, key=lambda other: clockwise(ring_id[other], ring_id[node]))


def test_members_of_a_cluster_agree_on_gateways_within_reach(run: PeerRun) -> None:
    """Algorithm 5: a proposal is the node itself, or what a neighbour that shares the topic proposes."""
    peers = peers_of(run)
    for node, peer in peers.items():
        for topic, made in peer.proposals.items():
            assert topic in peers[made.gateway].topics
            assert made.hops < peer.config.gateway_reach
            assert (made.parent == node) == (made.gateway == node) == (made.hops == 0)
            assert made.parent == node or made.parent in peer.neighbours(0.0)


def test_carriers_are_all_with_whom_a_topics_events_are_exchanged(run: PeerRun) -> None:
    """Of topics that a node only carries those are left out that lead nowhere any more."""
    assert isinstance(run.system, VitisPeers)
    now = run.engine.now
    for peer in peers_of(run).values():
        carriers = run.system.carriers(peer, now)
        assert peer.topics <= set(carriers) <= set(peer.carried(now))
        assert all(set(others) == set(peer.partners(now, topic)) for topic, others in carriers.items())


def test_events_cost_what_they_cost_by_rounds(workload: Workload, run: PeerRun) -> None:
    rounds = simulate("vitis", workload, rounds=60, table_size=8).summary
    events = run.recorder.event_columns()
    received = events["wanted"].sum() + events["duplicate"].sum() + events["unwanted"].sum()
    assert events["reached"].sum() == events["subscribers"].sum() > 0
    assert rounds["hit_ratio"] == 1.0
    assert events["unwanted"].sum() / received == pytest.approx(rounds["overhead"], abs=0.05)
    assert events["hops_sum"].sum() / events["reached"].sum() == pytest.approx(rounds["hops"], rel=0.2)


def test_a_node_settles_although_its_descriptor_is_never_sent_again() -> None:
    """What tells a newcomer is how long its session lasts, not how long ago somebody described it."""
    book = VitisBook(Descriptor(0, 5, 1, 1, 50.0), 1)
    book.learn(100.0, [Descriptor(7, 9, 1, 2, 1.0, 2.0)])  # began at 97
    book.hear(7, 140.0)
    assert not book.has_settled(7, 106.0, 10.0) and book.has_settled(7, 107.0, 10.0)
    (found,) = book.descriptors_of(150.0, [7])
    assert (found.up_s, found.age_s) == (43.0, 10.0)
    book.forget(7)
    assert book.descriptors_of(150.0, [7]) == () and not book.heard
