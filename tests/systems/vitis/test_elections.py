"""Elections in which only those are asked who may change their mind, against plain Python that asks everybody."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine import Workload
from grapevine.blocks.views import NOBODY
from grapevine.kernels.rng import absorb
from grapevine.kernels.topic_graph import Scratch
from grapevine.sim.rounds import Rounds
from grapevine.systems.vitis.config import VitisConfig
from grapevine.systems.vitis.elections import MANY_CHANGES, Electorate, find_due
from grapevine.systems.vitis.rounds import Vitis
from grapevine.systems.vitis.rules import Proposals, propose_gateways
from tests.systems.test_against_naive import CASES, WORKLOADS, Pair
from tests.worlds import both_ways


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("case", ["vitis", "vitis with small tables"])
def test_gossip_in_every_round_of_churn_is_that_of_the_plain_rounds(case: str, workload: str) -> None:
    pair = Pair(WORKLOADS[workload](4), CASES[case], 4)
    system = pair.fast.system
    assert isinstance(system, Vitis)
    for _ in pair.run():
        system.gossip()
        pair.elect(most_rounds=1)
        assert pair.fast.proposals() == pair.slow.proposals
        system.gossip()  # once more, on the same links
        pair.elect(most_rounds=1)
        assert pair.fast.proposals() == pair.slow.proposals


def test_who_is_back_in_the_same_round_begins_afresh_and_its_neighbours_notice() -> None:
    """Others keep their links to it, so nobody's neighbours change."""
    pair = Pair(WORKLOADS["unequal rates"](4), CASES["vitis"], 4)
    fast, slow = pair.fast, pair.slow
    assert isinstance(fast.system, Vitis)
    for now in pair.run():
        if now > 8:
            back = np.arange(now % 5, 40, 5, dtype=np.int32)
            back = back[fast.network.alive[back]]
            near = [set(row) for row in slow.neighbours()]
            links = [slow.nodes[p].links for p in back.tolist()]
            fast.network.leave(back)
            slow.leave(back.tolist())
            fast.network.alive[back] = True
            views = fast.network.views
            for p, row in zip(back.tolist(), links, strict=True):
                slow.nodes[p].alive, slow.nodes[p].links = True, row
                views.links[views.starts[p] : views.starts[p] + len(row)] = [link[0] if link else -1 for link in row]
            fast.network.links_changed()
            fast.system.forget(back)
            assert [set(row) for row in slow.neighbours()] == near
        fast.system.gossip()
        pair.elect(most_rounds=1)
        assert fast.proposals() == slow.proposals


def test_gossip_goes_on_where_subscriptions_change() -> None:
    """Rounds of gossip end where an election from a fresh start does."""
    workload = WORKLOADS["low correlation"](2)
    engine = Rounds("vitis", workload, VitisConfig(), always_gossip=True)
    for now in range(40):
        if now in (10, 11):
            engine.unsubscribe(3, int(workload.topics_of(3)[0]))
            engine.subscribe(5, int(workload.topics_of(3)[1]))
        engine.step()
    system = engine.system
    assert isinstance(system, Vitis)
    for _ in range(20):
        system.gossip()
    gossiped = [part.copy() for part in system.proposals]
    system.settle((0, workload.topic_count))
    assert [part.tolist() for part in system.proposals] == [part.tolist() for part in gossiped]


def test_a_new_interest_of_one_node_leaves_the_proposals_of_all_other_topics_alone() -> None:
    workload = WORKLOADS["low correlation"](2)
    engine = Rounds("vitis", workload, VitisConfig(), always_gossip=True)
    for _ in range(30):
        engine.step()
    system, topic = engine.system, int(workload.topics_of(3)[1])
    assert isinstance(system, Vitis)
    wanted = [set(row.tolist()) for row in (workload.topics_of(p) for p in range(workload.node_count))]
    joiner = next(p for p in range(workload.node_count) if topic not in wanted[p])
    left = int(workload.topics_of(5)[0])

    def told() -> dict[tuple[int, int], tuple[int, int, int]]:
        """Gateway, parent and hops by topic and member, all as nodes."""
        rows, proposals = engine.network.topic_nodes, system.proposals
        return {
            (t, int(p)): (
                int(rows.row(t)[proposals.gateway[at]]),
                int(rows.row(t)[proposals.parent[at]]),
                int(proposals.hops[at]),
            )
            for t in range(len(engine.network.topic_ids))
            for at, p in enumerate(rows.row(t), start=int(rows.starts[t]))
            if proposals.gateway[at] != NOBODY
        }

    before = told()
    engine.subscribe(joiner, topic)
    engine.unsubscribe(5, left)
    engine._apply_interests()
    after = told()
    assert len(before) == sum(map(len, wanted))
    assert {key: value for key, value in after.items() if key[0] not in (topic, left)} == {
        key: value for key, value in before.items() if key[0] not in (topic, left)
    }
    assert {key for key in before if key[0] == topic} == {key for key in after if key[0] == topic}  # not the joiner yet
    gone = {key for key, value in before.items() if key == (left, 5) or (key[0] == left and 5 in value[:2])}
    assert set(before) - set(after) == gone


@pytest.mark.parametrize("notices", ["at once", "by silence"])
def test_proposals_of_a_node_that_is_gone_count_until_it_is_noticed(notices: str) -> None:
    workload = WORKLOADS["low correlation"](2)
    engine = Rounds("vitis", workload, VitisConfig(notices=notices, max_age=5), always_gossip=True)
    for _ in range(30):
        engine.step()
    system, network = engine.system, engine.network
    assert isinstance(system, Vitis)
    gateways = network.topic_nodes.columns[system.delivery().gateways]
    victim = int(np.bincount(gateways).argmax())

    def followers() -> int:
        """Members that have a proposal from the victim itself."""
        rows, count = network.topic_nodes, 0
        for topic in range(workload.topic_count):
            members, at = rows.row(topic), slice(rows.starts[topic], rows.starts[topic + 1])
            told = zip(members, system.proposals.gateway[at], system.proposals.parent[at], strict=True)
            count += sum(members[parent] == victim != p for p, gateway, parent in told if gateway != NOBODY)
        return count

    assert followers() > 0
    network.leave(np.array([victim], np.int32))
    system.forget(np.array([victim], np.int32))
    engine.step()
    assert (followers() > 0) == (notices == "by silence")
    assert victim not in network.topic_nodes.columns[system.delivery().gateways]
    for _ in range(15):
        engine.step()
    assert followers() == 0


@given(st.integers(1, 40), st.floats(0, 1), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_a_proposal_is_the_best_of_those_that_count(size: int, density: float, d: int, seed: int) -> None:
    """Algorithm 5, lines 5 – 14, of whatever neighbours say: nearest gateway, fewest hops, smallest hash."""
    random = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(size, density, seed=seed)
    distance, ties = random.permutation(size).astype(np.uint64), random.integers(0, 2**63, size).astype(np.uint64)
    gateway, parent = (random.integers(0, size, size).astype(np.int32) for _ in range(2))
    parent = np.where(random.random(size) < 0.3, np.arange(size), parent).astype(np.int32)
    hops = random.integers(0, 6, size).astype(np.int32)
    asked = np.flatnonzero(random.random(size) < 0.7).astype(np.int32)
    out = Proposals(*(np.empty(size, np.int32) for _ in range(3)))
    scratch = Scratch(np.empty(0, np.int32), *both_ways({i: list(graph[i]) for i in graph}, size))
    propose_gateways(asked, d, distance, ties, Proposals(gateway, parent, hops), scratch, out)
    for at, i in enumerate(asked.tolist()):
        options = [(int(distance[i]), 0, 0, i, i)]
        for j in graph[i]:
            counts = parent[j] == j or (parent[j] != i and parent[j] not in graph[i])
            if counts and hops[j] + 1 < d:
                tie = int(absorb(ties[i], j))
                options.append((int(distance[gateway[j]]), int(hops[j]) + 1, tie, int(gateway[j]), j))
        _, expected_hops, _, expected_gateway, expected_parent = min(options)
        assert (out.gateway[at], out.parent[at], out.hops[at]) == (expected_gateway, expected_parent, expected_hops)


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_due_is_who_got_or_lost_a_neighbour_in_the_topic_or_has_one_afresh(size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    wants = random.random((size, 5)) < 0.5
    nodes, topics = np.nonzero(wants)
    workload = Workload.from_pairs(nodes, topics, node_count=size, topic_count=5)
    engine = Rounds("vitis", workload, VitisConfig(table_size=4))
    old, new = (nx.gnp_random_graph(size, 0.4, seed=int(random.integers(2**31))) for _ in range(2))
    before, now = (both_ways({p: list(graph[p]) for p in graph}, size) for graph in (old, new))
    by_topic, alive = workload.topic_nodes, np.ones(size, np.bool_)
    everywhere, due, afresh = np.zeros(size, np.bool_), np.zeros(len(nodes), np.bool_), random.random(size) < 0.1
    among = Electorate(
        workload.node_ids, workload.topic_ids, by_topic.starts, by_topic.columns, *now, alive, alive, everywhere
    )
    find_due((0, size), before, afresh, among, engine.network.profiles, due)
    for p in range(size):
        same = set(old[p]) & set(new[p])
        changes = (set(old[p]) | set(new[p])) - {q for q in same if not afresh[p] and not afresh[q]}
        assert everywhere[p] == (len(changes) > MANY_CHANGES)
        for topic in np.flatnonzero(wants[p]).tolist():
            at = by_topic.starts[topic] + by_topic.row(topic).tolist().index(p)
            assert due[at] == (not everywhere[p] and any(wants[q, topic] for q in changes))
