"""The kernels build the same overlay, link by link, as the plain Python of `tests/naive_rounds.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from grapevine import synthetic
from grapevine.blocks.network import Network
from grapevine.blocks.small_world import lookup
from grapevine.blocks.views import NOBODY
from grapevine.model.workload import Workload
from grapevine.sim.dissemination import EVENT_FIELDS, Publications, disseminate, no_totals
from grapevine.sim.rounds import medium_now
from grapevine.systems.contracts.configs import GossipConfig
from grapevine.systems.contracts.rounds import RoundSystem
from grapevine.systems.registry import system_named
from grapevine.systems.vitis.rounds import MOST_ELECTION_ROUNDS, Vitis
from tests import naive_rounds
from tests.naive_rounds import Entry, NaiveNetwork, Proposal, Select
from tests.worlds import node_number

ROUNDS = 24
CHECKS = 3, 9, 15, ROUNDS


class Case(NamedTuple):
    """A system with its parameters, and the same selection in plain Python."""

    system: str
    parameters: dict[str, Any]
    select: Select
    ring_slots: int = 2


CASES = {
    "vitis": Case("vitis", {}, naive_rounds.vitis(15, 3)),
    "vitis with small tables": Case(
        "vitis",
        {
            "table_size": 5,
            "ring_and_long_links": 4,
            "gateway_reach": 3,
            "sample_size": 12,
            "ring_backups": 1,
            "settle_rounds": 3,
        },
        naive_rounds.vitis(5, 4),
    ),
    "vitis without long links or backups": Case(
        "vitis",
        {"ring_and_long_links": 2, "ring_backups": 0, "settle_rounds": 0, "max_age": 10},
        naive_rounds.vitis(15, 2),
    ),
    "rvr": Case("rvr", {}, naive_rounds.rvr(15)),
    "rvr with small tables": Case(
        "rvr", {"table_size": 5, "sample_size": 12, "max_age": 5, "ring_backups": 0}, naive_rounds.rvr(5)
    ),
    "opt": Case("opt", {"table_size": 10, "max_age": 8}, naive_rounds.opt(10, 3), ring_slots=0),
    "vitis with a bound": Case("vitis", {"table_size": 8, "most_links": 10}, naive_rounds.vitis(8, 3)),
    "rvr with a bound": Case("rvr", {"table_size": 6, "most_links": 9, "ring_backups": 0}, naive_rounds.rvr(6)),
    "opt without bound": Case("opt", {"table_size": None, "coverage": 2}, naive_rounds.opt(None, 2), ring_slots=0),
}


def low_correlation(seed: int) -> Workload:
    return synthetic.generate(
        "vitis-low", nodes=44, topics=60, subscriptions_per_node=10, buckets=10, buckets_per_node=5, seed=seed
    )


def unequal_rates(seed: int) -> Workload:
    return synthetic.generate(
        "vitis-random", nodes=44, topics=24, subscriptions_per_node=4, rate_exponent=1.0, seed=seed
    )


def uneven(seed: int) -> Workload:
    """Node p has p % 7 topics, some have none; topic 29 has no subscribers."""
    random = np.random.default_rng(seed)
    pairs = [(p, topic) for p in range(42) for topic in random.choice(29, p % 7, replace=False)]
    nodes, topics = np.array(pairs).T
    return Workload.from_pairs(nodes, topics, node_count=42, topic_count=30)


WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "low correlation": low_correlation,
    "unequal rates": unequal_rates,
    "uneven": uneven,
}


class Fast:
    """The kernels, driven as a simulation does."""

    def __init__(self, workload: Workload, case: Case, *, seed: int, threads: int = 1) -> None:
        self.system_type = system_named(case.system).round_facet()
        config = self.system_type.config_type(**case.parameters)
        assert isinstance(config, GossipConfig)
        self.config = config
        self.ring_backups: int = getattr(self.config, "ring_backups", 0)
        self.settle_rounds: int = getattr(self.config, "settle_rounds", 0)
        self.network = Network(
            workload,
            sample_size=self.config.sample_size,
            ring_backups=self.ring_backups,
            settle_rounds=self.settle_rounds,
            seed=seed,
            threads=threads,
        )
        self.system: RoundSystem = self.system_type(self.config, self.network)

    def round(self) -> None:
        self.system.round()

    def settle(self) -> int:
        topics = len(self.network.topic_ids)
        return max(self.system.settle((0, topics // 3)), self.system.settle((topics // 3, topics)))

    def links(self) -> list[list[Entry | None]]:
        views = self.network.views
        rows = zip(views.starts, views.starts[1:], strict=False)
        return [entries(views.links[a:b], views.heard[a:b]) for a, b in rows]

    def caches(self) -> list[list[Entry | None]]:
        views = self.network.views
        return [entries(*row) for row in zip(views.cache, views.cache_heard, strict=True)]

    def backups(self) -> list[list[int | None]]:
        return [[None if q == NOBODY else q for q in row] for row in self.network.views.backups.tolist()]

    def members(self) -> Iterator[tuple[int, NDArray[np.int32], slice]]:
        """Topics with their subscribers and the place of these in arrays over all (topic, subscriber)."""
        rows = self.network.topic_nodes
        for topic in range(len(self.network.topic_ids)):
            yield topic, rows.row(topic), slice(rows.starts[topic], rows.starts[topic + 1])

    def proposals(self) -> dict[tuple[int, int], Proposal]:
        assert isinstance(self.system, Vitis)
        told = self.system.proposals
        return {
            (topic, int(nodes[i])): (int(nodes[gateway]), int(nodes[parent]), int(hops))
            for topic, nodes, at in self.members()
            for i, (gateway, parent, hops) in enumerate(
                zip(told.gateway[at], told.parent[at], told.hops[at], strict=True)
            )
            if gateway != NOBODY
        }

    def gateways(self) -> list[set[int]]:
        chosen = self.system.delivery().gateways
        return [set(nodes[chosen[at]].tolist()) for _, nodes, at in self.members()]

    def publish(
        self,
        topics: NDArray[np.int32],
        publishers: NDArray[np.int32],
        weights: NDArray[np.int64],
        counted: set[int],
        fresh: int,
    ) -> tuple[list[dict[str, int]], list[list[int]]]:
        network, medium = self.network, medium_now(self.network, self.system, fresh)
        asked = np.zeros(network.size, np.bool_)
        asked[list(counted)] = True
        events, totals = np.full((len(topics), len(EVENT_FIELDS)), -7), no_totals(network.size)
        publications = Publications(topics, publishers, weights, asked)
        disseminate((0, len(topics)), publications, medium, events, totals)
        return [dict(zip(EVENT_FIELDS, row, strict=True)) for row in events.tolist()], totals.load.tolist()


def entries(nodes: NDArray[np.int32], heard: NDArray[np.int32]) -> list[Entry | None]:
    return [None if node == NOBODY else (int(node), int(when)) for node, when in zip(nodes, heard, strict=True)]


def filled_up(row: Sequence[Entry | None], size: int) -> list[Entry | None]:
    return [*row, *[None] * (size - len(row))]


class Pair:
    """Both networks, doing the same."""

    def __init__(self, workload: Workload, case: Case, seed: int) -> None:
        self.case, self.fast = case, Fast(workload, case, seed=seed)
        self.topic_ids: list[int] = workload.topic_ids.tolist()
        self.slow = NaiveNetwork(
            workload.node_ids.tolist(),
            [set(workload.topics_of(p).tolist()) for p in range(workload.node_count)],
            workload.rates.tolist(),
            seed=seed,
            sample_size=self.fast.config.sample_size,
            ring_backups=self.fast.ring_backups,
            settle_rounds=self.fast.settle_rounds,
            most_links=self.fast.network.most_links,
        )

    def run(self) -> Iterator[int]:
        """All rounds. Some nodes leave early and some late, a third with a goodbye; some are back soon, some later."""
        fast, slow, size = self.fast, self.slow, self.fast.network.size
        numbers = np.arange(size, dtype=np.int32)
        opening, new, early, late = numbers[:-4], numbers[-4:], numbers[3:-4:9], numbers[1:-4:9]
        leaves = {3: early, 8: late}
        joins = {9: late[::2], 14: np.concatenate([early[::2], new])}
        fast.network.open_at_once(opening)
        slow.open_at_once(opening.tolist())
        for now in range(1, ROUNDS + 1):
            fast.network.now = slow.now = now
            if now in leaves:
                fast.network.say_goodbye(leaves[now][::3])
                slow.say_goodbye(leaves[now][::3].tolist())
                fast.network.leave(leaves[now])
                fast.system.forget(leaves[now])
                slow.leave(leaves[now].tolist())
            if now in joins:
                fast.network.join(joins[now])
                fast.system.forget(joins[now])
                slow.join(joins[now].tolist())
            fast.round()
            slow.sample()
            slow.exchange(self.case.select, ring_slots=self.case.ring_slots, max_age=fast.config.max_age)
            yield now

    def elect(self, most_rounds: int) -> int:
        assert isinstance(self.fast.system, Vitis)
        reach = self.fast.system.config.gateway_reach
        return self.slow.elect(self.topic_ids, reach=reach, most_rounds=most_rounds)

    def gateways(self) -> list[set[int]]:
        if self.case.system == "opt":
            return [set() for _ in self.topic_ids]
        if self.case.system == "rvr":
            return [set(nodes) for nodes in self.slow.subscribers]
        held = self.slow.proposals.items()
        return [{i for (at, i), told in held if at == topic and told[0] == i} for topic in range(len(self.topic_ids))]


def assert_same_overlay(pair: Pair) -> None:
    nodes, links, rows = pair.slow.nodes, pair.fast.links(), pair.fast.network.neighbours()
    assert links == [filled_up(p.links, len(links[p.number])) for p in nodes]
    assert pair.fast.caches() == [filled_up(p.cache, pair.slow.sample_size) for p in nodes]
    assert pair.fast.backups() == [p.backups for p in nodes]
    assert [rows.row(p.number).tolist() for p in nodes] == pair.slow.neighbours()


def assert_same_elections(pair: Pair) -> None:
    """A round of gossip from where the last check left it, then an election from a fresh start."""
    if isinstance(pair.fast.system, Vitis):
        pair.fast.system.gossip()
        pair.elect(most_rounds=1)
        assert pair.fast.proposals() == pair.slow.proposals
        pair.slow.proposals.clear()
        assert pair.fast.settle() == pair.elect(MOST_ELECTION_ROUNDS)
        assert pair.fast.proposals() == pair.slow.proposals


def assert_same_paths(pair: Pair, fresh: int) -> None:
    network, room = pair.fast.network, np.empty(pair.fast.network.size, np.int32)
    for topic, key in enumerate(pair.topic_ids[:10]):
        for p in np.flatnonzero(network.alive).tolist()[::3]:
            visited = lookup(node_number(p), network.topic_ids[topic], fresh, network.ids, network.views, room)
            path = pair.slow.lookup(p, key, fresh)
            assert room[: abs(visited)].tolist() == path
            assert (visited > 0) == pair.slow.nodes[path[-1]].alive


def assert_same_events(pair: Pair, fresh: int) -> None:
    """An event by a subscriber on every topic, and where there are lookups one by an outsider; one node in four is not
    counted."""
    slow, gateways, near = pair.slow, pair.gateways(), pair.slow.neighbours()
    assert [chosen & set(slow.members(t)) for t, chosen in enumerate(pair.fast.gateways())] == [
        chosen & set(slow.members(t)) for t, chosen in enumerate(gateways)
    ]
    alive = [p.number for p in slow.nodes if p.alive]
    counted = {p for p in alive if p % 4}
    plan = []
    for topic in range(len(pair.topic_ids)):
        members = slow.members(topic)
        outside = [p for p in alive if p not in members and pair.case.ring_slots]
        plan += [(topic, some[topic % len(some)]) for some in (members, outside) if some]
    weights = [topic + 1 for topic in range(len(pair.topic_ids))]
    expected, load = [], [[0, 0, 0] for _ in slow.nodes]
    for topic, publisher in plan:
        key, floods = pair.topic_ids[topic], pair.case.system != "rvr"
        graph = slow.topic_graph(topic, key, publisher, near, floods=floods, gateways=gateways[topic], fresh=fresh)
        counts, received = slow.publish(topic, publisher, graph, counted)
        expected.append(counts)
        for p, kinds in received.items():
            load[p] = [before + weights[topic] * more for before, more in zip(load[p], kinds, strict=True)]
    topics, publishers = np.array(plan, np.int32).T.copy()
    found = pair.fast.publish(topics, publishers, np.array(weights), counted, fresh)
    assert found == (expected, load)


def every_case_on_every_workload() -> list[Any]:
    """Vitis on all workloads, the other cases on the one with unequal rates; on the others they are slow."""
    return [
        pytest.param(case, workload, marks=() if case == "vitis" or workload == "unequal rates" else pytest.mark.slow)
        for case in CASES
        for workload in WORKLOADS
    ]


@pytest.mark.parametrize(("case", "workload"), every_case_on_every_workload())
def test_every_link_cache_gateway_and_event_is_that_of_the_plain_rounds(case: str, workload: str) -> None:
    seed = 1 + list(CASES).index(case)
    pair = Pair(WORKLOADS[workload](seed), CASES[case], seed)
    for now in pair.run():
        assert_same_overlay(pair)
        if now in CHECKS:
            assert_same_elections(pair)
            for fresh in (0, now):  # with and without links to the dead
                assert_same_paths(pair, fresh)
                assert_same_events(pair, fresh)


def test_the_hash_decides_among_more_contacts_than_a_cache_can_hold() -> None:
    pair = Pair(low_correlation(1), Case("rvr", {"sample_size": 2}, naive_rounds.rvr(15)), 1)
    for _ in pair.run():
        assert_same_overlay(pair)


@pytest.mark.parametrize("case", CASES)
def test_the_number_of_threads_changes_nothing(case: str) -> None:
    workload = synthetic.generate(
        "vitis-low", nodes=500, topics=100, subscriptions_per_node=10, buckets=10, buckets_per_node=5, seed=3
    )
    one, three = (Fast(workload, CASES[case], seed=5, threads=threads) for threads in (1, 3))
    took = []
    for fast in (one, three):
        fast.network.open_at_once(np.arange(500, dtype=np.int32))
        for now in range(1, 13):
            fast.network.now = now
            fast.round()
        took.append(fast.settle())
    assert took[0] == took[1]
    assert one.links() == three.links()
    assert one.caches() == three.caches()
    assert one.backups() == three.backups()
    assert one.gateways() == three.gateways()
