"""OMen: every topic connected again after up to L events at once, whoever is among those that go (claim O10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple, cast
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grapevine import Workload, simulate
from grapevine.blocks.backups import build_backups
from grapevine.sim.churn import Change, Schedule
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import RunConfig, make_config
from grapevine.synthetic import generate
from grapevine.systems.omen import SIGHTS, ChurnEvent, Omen
from tests import naive_backups
from tests.naive import draw
from tests.naive_designs import Edge

REPAIR_TIES = 22
LATER = 60  # rounds in which everything has to be mended


def int32(numbers: Iterable[int]) -> NDArray[np.int32]:
    return np.array(sorted(numbers), np.int32)


def workload_of(interests: Sequence[Iterable[int]], topic_count: int | None = None) -> Workload:
    pairs = np.array([(v, t) for v, mine in enumerate(interests) for t in sorted(mine)]).reshape(-1, 2)
    topic_count = topic_count or int(pairs[:, 1].max()) + 1
    return Workload.from_pairs(*pairs.T, node_count=len(interests), topic_count=topic_count)


class World:
    """A running network; what happens to it is decided as it goes."""

    def __init__(
        self, interests: Sequence[Iterable[int]], *, later: Iterable[int] = (), seed: int = 1, **parameters: Any
    ) -> None:
        """`later` are nodes that are not there from the start."""
        workload, first = workload_of(interests), int32(set(range(len(interests))) - set(later))
        config = make_config("omen", {"patience": 3} | parameters)
        self.engine = Rounds("omen", workload, config, seed=seed, schedule=Schedule(first, {}))
        self.network, self.system = self.engine.network, cast(Omen, self.engine.system)

    @property
    def now(self) -> int:
        return self.engine.now

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            self.engine.step()

    def plan(
        self, after: int = 1, *, joins: Iterable[int] = (), leaves: Iterable[int] = (), crashes: Iterable[int] = ()
    ) -> None:
        change = Change(joins=int32(joins), leaves=int32(leaves), crashes=int32(crashes))
        assert self.now + after not in self.engine.schedule.changes
        self.engine.schedule.changes[self.now + after] = change

    def happens(self, **change: Iterable[int]) -> None:
        """In the next round, which is run."""
        self.plan(**cast(Any, change))
        self.run(1)

    @property
    def online(self) -> list[int]:
        return [int(v) for v in np.flatnonzero(self.network.alive)]

    @property
    def ring(self) -> list[int]:
        """Everybody who is online, in the order of ids."""
        return sorted(self.online, key=lambda v: int(self.network.ids[v]))

    def successors(self, node: int, count: int) -> list[int]:
        """The next online nodes on the ring."""
        ids = self.network.ids
        around = sorted(self.online, key=lambda v: (int(ids[v]) - int(ids[node])) % 2**64)
        return [v for v in around if v != node][:count]

    def neighbours(self, node: int) -> list[int]:
        return [int(u) for u in self.network.neighbours().row(node)]

    @property
    def edges(self) -> set[Edge]:
        return {(p, q) for p in self.online for q in self.neighbours(p) if p < q}

    def two_inner_neighbours(self) -> tuple[int, int]:
        """Linked to each other, and each to somebody else."""
        inner = [v for v in self.online if len(self.neighbours(v)) > 1]
        return next((p, q) for p, q in product(inner, inner) if q in self.neighbours(p))

    def topics(self, node: int) -> set[int]:
        profiles = self.network.profiles
        return set(profiles.topics[profiles.starts[node] : profiles.starts[node + 1]].tolist())

    def parted(self) -> list[int]:
        """Topics whose online subscribers are not connected."""
        overlay: nx.Graph[int] = nx.Graph()
        overlay.add_nodes_from(self.online)
        overlay.add_edges_from(self.edges)
        members = {t: [v for v in self.online if t in self.topics(v)] for t in range(len(self.network.topic_ids))}
        return [t for t, some in members.items() if len(some) > 1 and not nx.is_connected(overlay.subgraph(some))]

    def open(self) -> list[tuple[str, int]]:
        return [(event.kind, event.node) for event in self.system._open]

    def queue(self, node: int) -> list[tuple[str, int]]:
        """What the node will handle itself, in order."""
        return [named(event) for event in self.system._desks[node].exe_q] if node in self.system._desks else []

    def standby(self, node: int) -> dict[tuple[str, int], int]:
        """What the node stands by for, and who it thinks handles it."""
        desk = self.system._desks.get(node)
        return {named(event): who for event, (_, who) in desk.standby.items()} if desk else {}

    def rows(self, node: int, kind: str | None = None) -> list[dict[str, Any]]:
        return [r for r in self.system.repairs() if r["node"] == node and kind in (None, r["kind"])]

    def is_mended(self) -> None:
        """Nothing is left to do, nothing was lost, and every topic is connected."""
        assert self.open() == []
        assert not self.system._departed
        assert [row for row in self.system.repairs() if row["coordinator"] is None] == []
        assert self.parted() == []
        gone = np.flatnonzero(~self.network.alive)
        assert not np.isin(self.network.views.links, gone).any()


def named(event: ChurnEvent) -> tuple[str, int]:
    return event.kind, event.node


def one_topic(nodes: int = 12) -> list[set[int]]:
    return [{0} for _ in range(nodes)]


def one_topic_and_own(nodes: int = 12) -> list[set[int]]:
    """All have topic 0, and one that nobody else has."""
    return [{0, 1 + v} for v in range(nodes)]


# Claim O10


class Pick(NamedTuple):
    """Somebody to whom something happens, near whom it happened before."""

    kind: str
    near: str
    number: int
    when: int


class Case(NamedTuple):
    seed: int
    nodes: int
    topics: int
    most: int  # topics of a node
    late: int
    warm_up: int
    parameters: dict[str, Any]
    picks: list[Pick]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Mostly as many events as are promised to be mended, and mostly few topics and backups: overlays that break."""
    resilience, rounds = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    pick = st.builds(
        Pick,
        st.sampled_from(["crash", "crash", "leave", "join"]),
        st.sampled_from(["link", "link", "ring", "anywhere"]),
        st.integers(0, 99),
        st.integers(1, rounds),
    )
    parameters = {
        "resilience": resilience,
        "coverage": draw(st.sampled_from([0, 1, 2, 5])),
        "backups": draw(st.sampled_from(["primal-dual", "greedy"])),
        "sight": draw(st.sampled_from(sorted(SIGHTS))),
        "max_age": draw(st.integers(1, 4)),
        "timeout": draw(st.sampled_from([2, 6, 20])),
    }
    return Case(
        draw(st.integers(0, 10**6)),
        draw(st.integers(10, 40)),
        draw(st.sampled_from([1, 2, 3, 6])),
        draw(st.sampled_from([1, 2, 6])),
        draw(st.integers(0, 4)),
        draw(st.integers(1, 6)),
        parameters,
        sorted(draw(st.lists(pick, min_size=max(resilience - 1, 1), max_size=resilience)), key=lambda pick: pick.when),
    )


def prepare(case: Case, **more: Any) -> tuple[World, Counter[tuple[str, int]]]:
    """The network after its first rounds with all that is going to happen planned, and what that is."""
    random = np.random.default_rng(case.seed)
    sizes = random.integers(1, min(case.topics, case.most) + 1, case.nodes)
    interests = [set(random.choice(case.topics, size, replace=False).tolist()) for size in sizes]
    late = random.choice(case.nodes, case.late, replace=False).tolist()
    world = World(interests, later=late, seed=case.seed, **case.parameters, **more)
    world.run(case.warm_up)
    there, ring = set(world.online), world.ring
    links = {v: world.neighbours(v) for v in ring}
    last = max(ring[: 1 + case.seed % len(ring)], key=lambda v: len(links[v]))  # to whom something happened last
    changes: dict[int, dict[str, list[int]]] = {}
    planned: Counter[tuple[str, int]] = Counter()
    for pick in case.picks:
        change = changes.setdefault(pick.when, {"join": [], "leave": [], "crash": []})
        touched = {v for some in change.values() for v in some}
        at = ring.index(last) if last in ring else pick.number
        near = {
            "link": [last, *sorted(links.get(last, ring), key=lambda v: -len(links[v]))][:4],
            "ring": [ring[(at + step) % len(ring)] for step in (1, 2, 3, 0, -1)],
            "anywhere": ring,
        }
        pool = sorted(set(range(case.nodes)) - there) if pick.kind == "join" else near[pick.near]
        pool = [v for v in pool if v not in touched and (v in there) != (pick.kind == "join")]
        if pool:
            last = pool[pick.number % len(pool)]
            change[pick.kind].append(last)
            there ^= {last}
            planned["join" if pick.kind == "join" else "leave", last] += 1
    for when, change in changes.items():
        world.plan(when, joins=change["join"], leaves=change["leave"], crashes=change["crash"])
    return world, planned


@pytest.mark.parametrize("view", ["partial", "global"])
@settings(max_examples=40)
@given(case=cases())
def test_up_to_l_concurrent_events_are_mended_whoever_they_happen_to(view: str, case: Case) -> None:
    world, planned = prepare(case, view=view)
    world.run(LATER)
    world.is_mended()
    handled = Counter((row["kind"], row["node"]) for row in world.system.repairs())
    assert planned <= handled


@pytest.mark.parametrize("view", ["partial", "global"])
def test_one_event_after_the_other_is_mended(view: str) -> None:
    """Simple churn events, far enough from each other: with L = 1 nothing is ever lost."""
    random = np.random.default_rng(3)
    interests = [set(random.choice(8, random.integers(1, 5), replace=False).tolist()) for _ in range(40)]
    world = World(interests, later=range(5), resilience=1, view=view)
    world.run(10)
    for turn in range(30):
        away = sorted(set(range(40)) - set(world.online))
        if turn % 2:
            world.happens(joins=[away[turn % len(away)]])
        elif turn % 4:
            world.happens(leaves=[int(random.choice(world.online))])
        else:
            world.happens(crashes=[int(random.choice(world.online))])
        world.run(12)
        world.is_mended()
    assert Counter(row["kind"] for row in world.system.repairs() if row["kind"] != "meet") == {"join": 15, "leave": 15}


@pytest.mark.parametrize("gap", [0, 1, 2])
@pytest.mark.parametrize("second", ["leaves", "crashes"])
@pytest.mark.parametrize("first", ["leaves", "crashes"])
def test_pieces_that_hang_on_two_neighbours_who_go_are_joined(first: str, second: str, gap: int) -> None:
    """Without backups the shadow set is neighbours alone, so those of both have to come together."""
    for seed in range(3):
        world = World(one_topic(), seed=seed, resilience=2, coverage=0)
        world.run(4)
        x, y = world.two_inner_neighbours()
        if gap == 0:
            both: dict[str, list[int]] = {first: [x]}
            both[second] = [*both.get(second, []), y]
            world.happens(**both)
        else:
            world.plan(1, **cast(Any, {first: [x]}))
            world.plan(1 + gap, **cast(Any, {second: [y]}))
        world.run(LATER)
        world.is_mended()


def test_a_whole_chain_of_neighbours_may_go_at_once() -> None:
    world = World(one_topic(30), resilience=6, coverage=0)
    world.run(4)
    overlay = nx.Graph(list(world.edges))
    ends = max(nx.all_pairs_shortest_path_length(overlay), key=lambda found: max(found[1].values()))[0]
    chain = max(nx.single_source_shortest_path(overlay, ends).values(), key=len)[1:7]
    assert len(chain) == 6
    world.happens(crashes=chain[::2])
    world.happens(leaves=chain[1::2])
    world.run(LATER)
    world.is_mended()


# Detection


@pytest.mark.parametrize("max_age", [1, 3, 6])
def test_a_crash_is_found_out_by_silence_and_a_leave_is_told(max_age: int) -> None:
    world = World(one_topic(), max_age=max_age, coverage=1)
    world.run(10)
    x = world.ring[4]
    (coordinator,) = world.successors(x, 1)
    world.happens(crashes=[x])
    world.run(max_age - 1)
    assert (world.network.views.links == x).any() and world.rows(x) == []
    world.run(1)
    assert not (world.network.views.links == x).any()
    (row,) = world.rows(x)
    assert (row["round"], row["finished"], row["coordinator"]) == (11, 11 + max_age, coordinator)
    y = world.ring[0]
    world.happens(leaves=[y])
    (row,) = world.rows(y)
    assert row["round"] == row["finished"] == world.now
    world.is_mended()


def test_who_comes_back_before_being_missed_starts_afresh() -> None:
    """Its neighbours drop the links they had to it; its leave and its join are both handled."""
    world = World(one_topic(), max_age=5)
    world.run(10)
    x = world.two_inner_neighbours()[0]
    world.happens(crashes=[x])
    assert (world.network.views.links == x).any()
    world.happens(joins=[x])
    world.run(LATER)
    world.is_mended()
    assert [row["kind"] for row in world.rows(x)] == ["leave", "join"]
    assert [row["round"] for row in world.rows(x)] == [12, 12]
    assert world.neighbours(x)


def test_who_leaves_again_before_its_first_departure_is_handled_is_mended_for_both() -> None:
    """Backup sets are not ready before round 30, so all three events wait."""
    world = World(one_topic(), coverage=50, patience=25)
    world.run(6)
    x = world.two_inner_neighbours()[0]
    had = set(world.neighbours(x))
    world.happens(leaves=[x])
    world.happens(joins=[x])
    world.happens(leaves=[x])
    assert world.open() == [("leave", x), ("join", x), ("leave", x)]
    assert had <= world.system._departed[x].neighbours
    world.run(LATER)
    world.is_mended()
    assert Counter(row["kind"] for row in world.rows(x)) == {"leave": 2, "join": 1}
    assert world.rows(x, "join")[0]["shadow"] == 0


# Failover (Algorithm 5)


def waiting(**parameters: Any) -> tuple[World, int, list[int]]:
    """A network whose backup sets are not ready for a long time, a node, and its next four successors."""
    world = World(one_topic(14), **{"coverage": 50, "patience": 25, "timeout": 100} | parameters)
    world.run(6)
    x = world.two_inner_neighbours()[0]
    return world, x, world.successors(x, 4)


def test_the_successors_of_a_node_are_told_and_the_first_coordinates() -> None:
    world, x, (a, b, c, d) = waiting(resilience=3)
    world.happens(leaves=[x])
    event = ("leave", x)
    assert world.queue(a) == [event] and world.standby(a) == {}
    assert world.queue(b) == world.queue(c) == [] and world.standby(b) == world.standby(c) == {event: a}
    assert d not in world.system._desks
    assert x in world.system._ring.listed and not world.system._ring.present[x]
    world.run(LATER)
    world.is_mended()
    assert [row["coordinator"] for row in world.rows(x)] == [a]
    assert world.system._desks == {}
    assert x not in world.system._ring.listed


def test_the_successor_of_a_dead_coordinator_takes_over_what_it_had_to_do() -> None:
    """Algorithm 5, handleChurnEvent, lines 3 and 4: in the round in which the crash is found out, not at a time-out."""
    world, x, (a, b, c, d) = waiting(resilience=3, max_age=3)
    first, second = ("leave", x), ("leave", a)
    world.happens(leaves=[x])
    world.happens(crashes=[a])
    world.run(2)
    assert world.queue(b) == [] and world.standby(b) == {first: a}
    world.run(1)
    assert world.queue(b) == [first, second] and world.standby(b) == {}
    assert world.standby(c) == {first: a, second: b}
    assert world.standby(d) == {second: b}
    world.run(LATER)
    world.is_mended()
    assert [row["coordinator"] for row in [*world.rows(x), *world.rows(a)]] == [b, b]


def test_a_coordinator_that_comes_back_has_forgotten_and_its_successor_takes_over() -> None:
    world, x, (a, b, _, _) = waiting(resilience=3, max_age=10)
    world.happens(leaves=[x])
    world.happens(crashes=[a])
    world.happens(joins=[a])
    assert ("leave", x) not in world.queue(a)
    assert world.queue(b)[:2] == [("leave", x), ("leave", a)]
    world.run(LATER)
    world.is_mended()
    assert [row["coordinator"] for row in world.rows(x)] == [b]


def test_who_stands_by_acts_when_its_time_is_up_and_the_others_drop_the_event() -> None:
    """The coordinator crashes in the round in which others find out about x, and is not missed yet at the time-out."""
    world = World(one_topic(14), resilience=3, max_age=3, timeout=2, coverage=1, seed=2)
    world.run(10)
    x = world.two_inner_neighbours()[0]
    a, b, c = world.successors(x, 3)
    world.happens(crashes=[x])
    world.run(2)
    world.happens(crashes=[a])
    assert world.standby(b) == world.standby(c) == {("leave", x): a}
    world.run(1)
    assert world.rows(x) == []
    world.run(1)
    (row,) = world.rows(x)
    assert row["finished"] == 16 and row["coordinator"] in (b, c)
    assert world.system._desks == {}
    world.run(LATER)
    world.is_mended()
    assert len(world.rows(x)) == 1


@pytest.mark.parametrize("kind", ["leave", "join"])
def test_who_waits_to_handle_an_event_drops_it_when_told_that_it_is_done(kind: str) -> None:
    """After the time-out all three have the event in their queues; the first that is ready handles it for all."""
    world, x, _ = waiting(resilience=3, timeout=2, later=[13])
    x = x if kind == "leave" else 13
    a, b, c = world.successors(x, 3)
    world.happens(**{"leaves" if kind == "leave" else "joins": [x]})
    world.run(2)
    assert world.queue(a) == world.queue(b) == world.queue(c) == [(kind, x)]
    while world.rows(x) == []:
        world.run(1)
    assert world.system._desks == {}
    world.run(LATER)
    world.is_mended()
    assert len(world.rows(x)) == 1


def test_events_are_handled_in_order_of_arrival() -> None:
    world, x, (a, b, _, _) = waiting(resilience=3)
    world.happens(leaves=[x])
    (before,) = [v for v in world.online if world.successors(v, 1) == [a]]
    world.happens(leaves=[before])
    assert world.queue(a) == [("leave", x), ("leave", before)]
    world.run(LATER)
    world.is_mended()
    assert [row["node"] for row in world.system.repairs()] == [x, before]
    assert {row["coordinator"] for row in world.system.repairs()} == {a}
    assert b not in world.system._desks


def test_a_newcomer_next_to_a_node_that_left_leaves_its_event_to_who_knows_of_it() -> None:
    """The newcomer is the coordinator now, but was never told."""
    interests = one_topic(30)
    for x in range(30):
        world = World(interests, later=range(15), coverage=50, patience=25, resilience=2, timeout=4)
        world.run(6)
        if x not in world.online:
            continue
        (a,) = world.successors(x, 1)
        ids = world.network.ids
        gap = (int(ids[a]) - int(ids[x])) % 2**64
        between = [v for v in range(15) if (int(ids[v]) - int(ids[x])) % 2**64 < gap]
        if between:
            break
    world.happens(leaves=[x])
    world.happens(joins=between[:1])
    assert world.system._backups.keeper[0, x] == between[0]
    assert world.queue(a)[0] == ("leave", x)
    world.run(LATER)
    world.is_mended()
    assert world.rows(x)[0]["coordinator"] == a


def test_a_join_is_asked_for_again_when_the_coordinator_is_gone() -> None:
    world = World(one_topic(14), later=[3], resilience=1, coverage=50, patience=25, max_age=3)
    world.run(6)
    a, b = world.successors(3, 2)
    world.happens(joins=[3])
    assert world.queue(a) == [("join", 3)]
    world.happens(crashes=[a])
    world.run(4)
    assert ("join", 3) in world.queue(b)
    world.run(LATER)
    assert world.rows(3)[0]["coordinator"] == b
    assert world.neighbours(3)


# Too much at once


def test_more_than_l_departures_at_once_are_reported_as_lost() -> None:
    """With L = 1 only the successor knows the neighbours of a node, and it crashes with it."""
    world = World(one_topic(14), resilience=1, coverage=1)
    world.run(10)
    x = world.ring[3]
    a, b = world.successors(x, 2)
    world.happens(crashes=[x, a])
    world.run(LATER)
    (lost,), (mended,) = world.rows(x), world.rows(a)
    assert lost["coordinator"] is None and lost["finished"] is None
    assert mended["coordinator"] == b
    assert world.system.findings()["lost_events"] == 1
    assert world.open() == [] and world.system._desks == {} and not world.system._departed
    assert sorted(world.system._ring.listed.tolist()) == world.online


def test_an_event_that_nobody_knows_of_any_more_is_lost_and_its_node_forgotten() -> None:
    world, x, (a, b, _, _) = waiting(resilience=1)
    world.happens(leaves=[x])
    world.happens(crashes=[a])
    (lost,) = world.rows(x)
    assert lost["coordinator"] is None
    assert world.open() == []
    assert sorted(world.system._ring.listed.tolist()) == sorted([*world.online, a])  # a is not missed yet
    world.run(LATER)
    assert [row["coordinator"] for row in world.rows(a)] == [b]


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from(["partial", "global"]))
def test_any_churn_is_survived(seed: int, view: str) -> None:
    """Far more than L at once, interests that change, nobody left at times: nothing breaks, nothing stays open."""
    random = np.random.default_rng(seed)
    nodes = int(random.integers(1, 13))
    interests = [set(random.choice(4, random.integers(5), replace=False).tolist()) for _ in range(nodes)]
    interests[0] |= {3}
    there = {v for v in range(nodes) if random.random() < 0.6}
    world = World(
        interests,
        later=set(range(nodes)) - there,
        view=view,
        resilience=int(random.integers(1, 4)),
        coverage=int(random.choice([0, 1, 3])),
        max_age=int(random.integers(1, 5)),
        timeout=int(random.choice([1, 3, 9])),
    )
    for _ in range(30):
        away = set(range(nodes)) - there
        gone = {v for v in there if random.random() < 0.1 or random.random() < 0.02 * len(there)}
        come = {v for v in away if random.random() < 0.2}
        loud = {v for v in gone if random.random() < 0.5}
        world.plan(joins=come, leaves=loud, crashes=gone - loud)
        there = (there - gone) | come
        if random.random() < 0.2:
            change = world.engine.subscribe if random.random() < 0.5 else world.engine.unsubscribe
            change(int(random.integers(nodes)), int(random.integers(4)))
        world.run(1)
        world.system.node_views()
    world.run(LATER)
    assert set(world.online) == there == set(world.system._ring.listed.tolist())
    assert world.open() == [] and world.system._desks == {} and not world.system._departed
    views, degree = world.network.views, np.zeros(nodes, int)
    for v in range(nodes):
        row = [u for u in views.links[views.starts[v] : views.starts[v + 1]].tolist() if u >= 0]
        assert len(set(row)) == len(row) and set(row) <= there - {v}
        degree[v] = len(row)
    assert world.system._degree.tolist() == degree.tolist()


def test_everybody_leaves_and_others_come_to_an_overlay_designed_anew() -> None:
    random = np.random.default_rng(5)
    interests = [set(random.choice(6, 3, replace=False).tolist()) for _ in range(24)]
    changes = {6: Change(leaves=int32(range(8)), crashes=int32(range(8, 12))), 9: Change(joins=int32(range(12, 24)))}
    edges = {}
    for system in ("omen", "lowoda"):
        schedule = Schedule(int32(range(12)), changes)
        engine = Rounds(system, workload_of(interests), make_config(system, {}), seed=4, schedule=schedule)
        for _ in range(20):
            engine.step()
        links = engine.network.neighbours()
        edges[system] = {(p, q) for p in range(24) for q in links.row(p).tolist() if p < q}
    assert edges["omen"] == edges["lowoda"] != set()
    assert {v for edge in edges["omen"] for v in edge} <= set(range(12, 24))


# Newcomers whose topics nobody is known for


def newcomers(count: int, **parameters: Any) -> World:
    """So many nodes come in the same round to a topic that nobody has."""
    interests = [{0} if v < count else {1} for v in range(16)]
    world = World(interests, later=range(count), **{"resilience": count} | parameters)
    world.run(4)
    world.happens(joins=range(count))
    return world


@pytest.mark.parametrize("coverage", [0, 1, 5])
@pytest.mark.parametrize("count", [2, 3])
def test_newcomers_of_a_new_topic_meet(count: int, coverage: int) -> None:
    for seed in range(4):
        world = newcomers(count, coverage=coverage, seed=seed)
        assert world.parted() == [0]
        world.run(LATER)
        world.is_mended()
        assert {row["kind"] for row in world.system.repairs()} == {"join", "meet"}


@pytest.mark.parametrize("coverage", [0, 1])
def test_newcomers_of_a_new_topic_do_not_end_up_in_pairs(coverage: int) -> None:
    """Each may meet another that is as new as itself, so having met λ does not suffice."""
    for seed in range(20):
        world = newcomers(6, coverage=coverage, seed=seed)
        world.run(40)
        world.is_mended()


def test_a_newcomer_whose_first_company_dies_before_they_are_linked_finds_another() -> None:
    """Three newcomers of a new topic; the one that both others have found crashes before anybody acts on it."""
    happened = 0
    for seed in range(8):
        world = newcomers(3, coverage=1, resilience=4, seed=seed)
        for _ in range(20):
            if Counter(kind for kind, _ in world.open())["meet"] == 3:
                break
            world.run(1)
        system = world.system
        found = {v: system._backups_of(v, int(system._backups.keeper[0, v])).tolist() for v in range(3)}
        common = [v for v in range(3) if all(v in found[u] for u in range(3) if u != v)]
        if common:
            happened += 1
            world.happens(crashes=common[:1])
            world.run(LATER)
            world.is_mended()
    assert happened > 2


def rare(seed: int, coverage: int) -> World:
    """Nodes 0 and 1 come together to a new topic, 0. Of their others, 2 and 3 are the only other subscribers."""
    interests = [{0, 1}, {0, 2}, {1}, {2}, *({3} for _ in range(36))]
    world = World(
        interests, later=[0, 1], seed=seed, coverage=coverage, resilience=4, sample_size=6, patience=9, max_age=3
    )
    world.run(20)
    world.happens(joins=[0, 1])
    return world


def test_a_lonely_topic_is_linked_though_the_company_for_another_is_gone() -> None:
    """What covers other topics says nothing about whether somebody was found for this one."""
    happened = 0
    for seed in range(24):
        world = rare(seed, coverage=1)
        for _ in range(20):
            world.run(1)
            if world.system._settled[:2].all():
                break
        if {0, 1} <= world.system._lonely.keys() and not world.open():
            happened += 1
            world.happens(crashes=[2, 3])
            world.run(2 * LATER)
            world.is_mended()
    assert happened > 0


def test_without_backups_newcomers_find_company_all_the_same() -> None:
    """λ = 0: what was not found for one topic is not forgotten when somebody is found for another."""
    for seed in range(8):
        world = rare(seed, coverage=0)
        world.run(2 * LATER)
        world.is_mended()


# Interests that change


def test_a_node_alone_may_change_its_interests_and_nothing_is_lost() -> None:
    world = World([{0}, {1}], later=[1])
    world.run(3)
    world.engine.subscribe(0, 1)
    world.run(3)
    assert world.open() == []
    assert world.system.findings()["lost_events"] == 0
    world.happens(joins=[1])
    world.run(LATER)
    assert world.edges == {(0, 1)}


@pytest.mark.parametrize("view", ["partial", "global"])
def test_interests_may_change_one_after_the_other(view: str) -> None:
    random = np.random.default_rng(8)
    interests = [set(random.choice(6, random.integers(1, 5), replace=False).tolist()) for _ in range(24)]
    world = World(interests, coverage=1, view=view, seed=3)
    world.run(10)
    for _ in range(20):
        v, topic = int(random.integers(24)), int(random.integers(6))
        had = topic in world.topics(v)
        (world.engine.unsubscribe if had else world.engine.subscribe)(v, topic)
        world.run(15)
        assert (topic in world.topics(v)) != had
        assert [row["round"] for row in world.rows(v, "change")][-1] == world.now - 14
        world.is_mended()


def test_who_gives_a_topic_up_and_goes_before_that_is_handled_leaves_no_gap() -> None:
    for then in ("leaves", "crashes"):
        world = World(one_topic_and_own(), coverage=1, patience=20)
        world.run(5)
        x = world.two_inner_neighbours()[0]
        world.engine.unsubscribe(x, 0)
        world.run(1)
        assert world.open() == [("change", x)]
        world.happens(**{then: [x]})
        world.run(LATER)
        world.is_mended()


def test_two_neighbours_may_give_a_topic_up_at_once() -> None:
    world = World(one_topic_and_own(), coverage=0)
    world.run(10)
    for node in world.two_inner_neighbours():
        world.engine.unsubscribe(node, 0)
    world.run(LATER)
    world.is_mended()


def test_a_neighbour_may_leave_while_a_topic_is_being_given_up() -> None:
    for gap in range(3):
        world = World(one_topic_and_own(), coverage=0, patience=20)
        world.run(10)
        x, y = world.two_inner_neighbours()
        world.engine.unsubscribe(x, 0)
        if gap == 0:
            world.happens(leaves=[y])
        else:
            world.run(gap)
            world.happens(crashes=[y])
        world.run(LATER)
        world.is_mended()


# What a repair touches


def some_interests(seed: int, nodes: int = 30) -> list[set[int]]:
    random = np.random.default_rng(seed)
    return [set(random.choice(9, random.integers(1, 6), replace=False).tolist()) for _ in range(nodes)]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("rho", [1.0, 3.0])
def test_the_first_overlay_is_that_of_lowoda(rho: float, seed: int) -> None:
    interests, edges = some_interests(seed), {}
    for system in ("omen", "lowoda"):
        engine = Rounds(system, workload_of(interests), make_config(system, {"rho": rho}), seed=seed)
        for _ in range(5):
            engine.step()
        links = engine.network.neighbours()
        edges[system] = {(p, q) for p in range(30) for q in links.row(p).tolist() if p < q}
    assert edges["omen"] == edges["lowoda"]
    assert len(edges["omen"]) > 20


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("coverage", [0, 2])
def test_a_leave_adds_the_edges_of_the_plain_repair_inside_the_shadow_set(sight: str, coverage: int) -> None:
    added = 0
    for seed in range(4):
        world = World(some_interests(seed), seed=seed, coverage=coverage, sight=sight, resilience=1)
        world.run(10)
        x = max(world.online, key=lambda v: len(world.neighbours(v)))
        (coordinator,) = world.successors(x, 1)
        backups = world.system._backups_of(x, coordinator).tolist()
        shadow, before = sorted({*backups, *world.neighbours(x)}), world.edges
        kept = {edge for edge in before if x not in edge}
        topics = [world.topics(v) for v in range(30)]
        world.happens(leaves=[x])
        expected = naive_backups.mend(
            topics,
            shadow,
            topics[x],
            sorted(kept),
            [sum(v in edge for edge in kept) for v in range(30)],
            sight=sight,
            rho=3.0,
            seed=draw(seed, world.now, x, REPAIR_TIES) >> 1,
        )
        assert world.edges == kept | set(expected)
        (row,) = world.rows(x)
        assert (row["coordinator"], row["shadow"], row["added"]) == (coordinator, len(shadow), len(expected))
        added += len(expected)
        world.is_mended()
    assert added > 3


@pytest.mark.parametrize("coverage", [0, 1, 5])
def test_a_join_links_the_newcomer_and_its_backups_and_nobody_else(coverage: int) -> None:
    for seed in range(4):
        world = World(some_interests(seed), later=[7], seed=seed, coverage=coverage)
        world.run(10)
        before = world.edges
        world.happens(joins=[7])
        while world.rows(7) == []:
            (coordinator,) = world.successors(7, 1)
            backups = world.system._backups_of(7, coordinator).tolist()
            world.run(1)
        new = world.edges - before
        assert before <= world.edges
        assert {v for edge in new for v in edge} <= {7, *backups}
        assert any(7 in edge for edge in new)
        (row,) = world.rows(7)
        assert (row["kind"], row["shadow"], row["added"]) == ("join", 1 + len(backups), len(new))


# Tables


def test_a_run_with_churn_writes_its_tables() -> None:
    nodes, resilience = 80, 2
    workload = generate("omen", nodes=nodes, topics=20, min_subscriptions=2, max_subscriptions=6, seed=3)
    random = np.random.default_rng(4)
    first = int32(random.permutation(nodes)[:70].tolist())
    there, changes, planned = set(first.tolist()), {}, []
    for turn, now in enumerate(range(20, 116, 8)):
        if turn % 3 == 2:
            v, kind = int(random.choice(sorted(set(range(nodes)) - there))), "join"
            changes[now] = Change(joins=int32([v]))
        else:
            v, kind = int(random.choice(sorted(there))), "leave"
            changes[now] = Change(crashes=int32([v])) if turn % 2 else Change(leaves=int32([v]))
        there ^= {v}
        planned.append((now, v, kind))
    run = RunConfig(rounds=140, measure_every=20, grace_rounds=0)
    done = simulate("omen", workload, schedule=Schedule(first, changes), run=run, threads=1, resilience=resilience)
    repairs, messages = done.tables["repairs"].to_pylist(), done.tables["messages"].to_pylist()
    met = [row for row in repairs if row["kind"] == "meet"]
    assert sorted((row["round"], row["node"], row["kind"]) for row in repairs if row not in met) == planned
    assert all(row["coordinator"] is not None and row["finished"] >= row["round"] for row in repairs)
    sent, carried = Counter[str](), Counter[str]()
    for row in messages:
        sent[row["kind"]] += row["count"]
        carried[row["kind"]] += row["descriptors"]
    assert {row["round"] for row in messages} == set(range(20, 160, 20))
    assert sent["join"] == sum(kind == "join" for _, _, kind in planned)
    assert sent["done"] == resilience * len(repairs)
    assert sent["notify"] == (resilience - 1) * len(repairs)
    assert carried["connect"] == 2 * sum(row["added"] for row in repairs)
    assert sent["gossip"] > 0 and carried["gossip"] > sent["gossip"]
    load = {name: done.nodes[name].to_numpy() for name in ("online", "view", "backups", "backup_of", "degree")}
    assert set(np.flatnonzero(load["online"]).tolist()) == there
    assert load["backups"].sum() == load["backup_of"].sum() > 0
    for name in ("view", "backups", "backup_of"):
        assert (load[name][~load["online"]] == 0).all()
    assert (load["view"][load["online"]] > 0).all()
    assert load["degree"].sum() == 2 * len({frozenset((a, b)) for a, b in links(done.links.to_pylist())})
    assert done.summary["connected_topics"] == 1.0
    assert done.summary["lost_events"] == 0.0 and (done.summary["repair_ms"] or 0) > 0


def links(rows: list[dict[str, Any]]) -> list[Edge]:
    return [(row["source"], row["target"]) for row in rows]


def test_with_full_knowledge_backups_are_counted_too() -> None:
    workload = generate("omen", nodes=60, topics=20, min_subscriptions=2, max_subscriptions=6, seed=3)
    done = simulate("omen", workload, rounds=10, threads=1, view="global", coverage=2)
    load = {name: done.nodes[name].to_numpy() for name in ("view", "backups", "backup_of")}
    assert set(load["view"]) == {60}
    assert load["backups"].sum() == load["backup_of"].sum() > 60
    assert done.tables["repairs"].num_rows == 0
    assert done.summary["lost_events"] == 0.0 and "repair_ms" not in done.summary


def test_full_knowledge_draws_its_backups_with_numbers_of_their_own() -> None:
    """Sets of one node and round that share their draws with peer sampling would not be random."""
    world = World(some_interests(1), view="global")
    world.run(5)
    with mock.patch("grapevine.systems.omen.build_backups", wraps=build_backups) as build:
        world.system._global_backups(3)
    state = int(build.call_args.args[3])
    assert state not in {draw(1, 5, 3), *(draw(1, 5, 3, salt) for salt in range(12))}


def test_a_run_that_ends_before_anything_was_mended_has_a_summary() -> None:
    """A newcomer crashes before it was linked: its join is closed without a repair, its leave not found out yet."""
    schedule = Schedule(int32(range(1, 12)), {3: Change(joins=int32([0])), 4: Change(crashes=int32([0]))})
    done = simulate("omen", workload_of(one_topic()), rounds=5, threads=1, schedule=schedule, coverage=20, patience=1)
    assert [row["kind"] for row in done.tables["repairs"].to_pylist()] == ["join"]
    assert done.summary["lost_events"] == 0.0
