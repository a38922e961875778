"""OMen: how churn events are found out and handed over (§5, Algorithm 5), and what happens beyond L at once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.sim.churn import Change, Schedule
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from tests.effort import examples
from tests.omen_world import LATER, World, int32, one_topic, workload_of

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
    assert had <= world.system.churn.departed[x].neighbours
    world.run(LATER)
    world.is_mended()
    assert Counter(row["kind"] for row in world.rows(x)) == {"leave": 2, "join": 1}
    assert world.rows(x, "join")[0]["shadow"] == 0


# Failover (Algorithm 5)


def waiting(**parameters: Any) -> tuple[World, int, list[int]]:
    """A network whose backup sets are not ready for a long time, a node, and its next four successors."""
    slow: dict[str, Any] = {"coverage": 50, "patience": 25, "timeout": 100}
    world = World(one_topic(14), **slow | parameters)
    world.run(6)
    x = world.two_inner_neighbours()[0]
    return world, x, world.successors(x, 4)


def test_the_successors_of_a_node_are_told_and_the_first_coordinates() -> None:
    world, x, (a, b, c, d) = waiting(resilience=3)
    world.happens(leaves=[x])
    event = ("leave", x)
    assert world.queue(a) == [event] and world.standby(a) == {}
    assert world.queue(b) == world.queue(c) == [] and world.standby(b) == world.standby(c) == {event: a}
    assert d not in world.system.desks.of
    assert x in world.system.local.ring.listed and not world.system.local.ring.present[x]
    world.run(LATER)
    world.is_mended()
    assert [row["coordinator"] for row in world.rows(x)] == [a]
    assert world.system.desks.of == {}
    assert x not in world.system.local.ring.listed


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
    assert world.system.desks.of == {}
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
    assert world.system.desks.of == {}
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
    assert [row["node"] for row in world.system.mender.repairs] == [x, before]
    assert {row["coordinator"] for row in world.system.mender.repairs} == {a}
    assert b not in world.system.desks.of


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
    assert world.system.local.backups.keeper[0, x] == between[0]
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
    assert world.open() == [] and world.system.desks.of == {} and not world.system.churn.departed
    assert sorted(world.system.local.ring.listed.tolist()) == world.online


def test_an_event_that_nobody_knows_of_any_more_is_lost_and_its_node_forgotten() -> None:
    world, x, (a, b, _, _) = waiting(resilience=1)
    world.happens(leaves=[x])
    world.happens(crashes=[a])
    (lost,) = world.rows(x)
    assert lost["coordinator"] is None
    assert world.open() == []
    assert sorted(world.system.local.ring.listed.tolist()) == sorted([*world.online, a])  # a is not missed yet
    world.run(LATER)
    assert [row["coordinator"] for row in world.rows(a)] == [b]


@examples(0.4)
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
        world.system.own_rows()
    world.run(LATER)
    assert set(world.online) == there == set(world.system.local.ring.listed.tolist())
    assert world.open() == [] and world.system.desks.of == {} and not world.system.churn.departed
    views, degree = world.network.views, np.zeros(nodes, int)
    for v in range(nodes):
        row = [u for u in views.links[views.starts[v] : views.starts[v + 1]].tolist() if u >= 0]
        assert len(set(row)) == len(row) and set(row) <= there - {v}
        degree[v] = len(row)
    assert world.system.links.degree.tolist() == degree.tolist()


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
