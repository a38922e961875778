"""OMen: what a repair touches (§4.1, Algorithm 1), and what the tables tell of it."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest import mock

import numpy as np
import pytest

from grapevine import simulate
from grapevine.blocks.overlay_design import SIGHTS
from grapevine.sim.churn import Change, Schedule
from grapevine.sim.round_run import RunConfig
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate
from grapevine.systems.omen.set_cover import RULES, build_backups
from tests import naive_backups
from tests.naive import draw
from tests.naive_designs import Edge
from tests.omen_world import World, int32, one_topic, workload_of

REPAIR_TIES = 22


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
        backups = world.system.mender.backups_of(x, coordinator).tolist()
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
            backups = world.system.mender.backups_of(7, coordinator).tolist()
            world.run(1)
        new = world.edges - before
        assert before <= world.edges
        assert {v for edge in new for v in edge} <= {7, *backups}
        assert any(7 in edge for edge in new)
        (row,) = world.rows(7)
        assert (row["kind"], row["shadow"], row["added"]) == ("join", 1 + len(backups), len(new))


# What is counted


def sent_by(world: World, **change: list[int]) -> Counter[str]:
    """The messages of the rounds in which this happens and is mended, by kind."""
    before = {kind: sent.messages for kind, sent in world.system.messages().items()}
    world.happens(**change)
    world.run(10)
    after = {kind: sent.messages for kind, sent in world.system.messages().items()}
    return Counter({kind: count - before.get(kind, 0) for kind, count in after.items()})


@pytest.mark.parametrize("resilience", [1, 3])
def test_neighbours_tell_of_a_lost_link_whether_its_end_left_or_crashed(resilience: int) -> None:
    """Who says goodbye takes its links along before they are counted; its neighbours still have to tell."""
    for seed in range(3):
        counts = {}
        for how in ("leaves", "crashes"):
            world = World(some_interests(seed), seed=seed, resilience=resilience, coverage=2)
            world.run(10)
            x = max(world.online, key=lambda v: len(world.neighbours(v)))
            lost = len(world.neighbours(x))
            sent = sent_by(world, **{how: [x]})
            (row,) = world.rows(x)
            counts[how] = sent["neighbours"] - 2 * resilience * row["added"]
            assert sent["leave"] == (lost + 1 if how == "leaves" else 0)
        assert counts == {"leaves": resilience * lost, "crashes": resilience * lost}


def test_those_who_become_successors_are_told_the_neighbours() -> None:
    """A newcomer succeeds L nodes. When one goes, the next in line succeeds the L nodes before it."""
    interests, resilience = some_interests(2), 2
    world = World(interests, later=[7], seed=2, resilience=resilience, coverage=2)
    world.run(10)
    assert "handover" not in world.system.messages()  # at first, whoever is linked tells its successors
    before = {v: world.neighbours(v) for v in world.online}
    around = sorted(world.online, key=lambda v: (int(world.network.ids[7]) - int(world.network.ids[v])) % 2**64)
    sent = sent_by(world, joins=[7])
    assert sent["handover"] == resilience
    carried = world.system.messages()["handover"].descriptors
    assert carried == sum(len(before[v]) for v in around[:resilience])
    assert sent_by(world, crashes=[7])["handover"] == resilience


@pytest.mark.parametrize("sight", SIGHTS)
def test_seeing_the_whole_overlay_has_its_price(sight: str) -> None:
    world = World(some_interests(1), seed=1, coverage=2, sight=sight)
    world.run(10)
    sent = sent_by(world, leaves=[max(world.online, key=lambda v: len(world.neighbours(v)))])
    assert (sent["probe"] > 0) == (sight == "overlay")


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
    load = {name: done.tables["backups"][name].to_numpy() for name in ("online", "view", "backups", "backup_of")}
    assert set(np.flatnonzero(load["online"]).tolist()) == there
    assert load["backups"].sum() == load["backup_of"].sum() > 0
    for name in ("view", "backups", "backup_of"):
        assert (load[name][~load["online"]] == 0).all()
    assert (load["view"][load["online"]] > 0).all()
    assert done.nodes["degree"].to_numpy().sum() == 2 * len(
        {frozenset((a, b)) for a, b in links(done.links.to_pylist())}
    )
    assert done.summary["connected_topics"] == 1.0
    assert done.summary["lost_events"] == 0.0 and (done.summary["repair_ms"] or 0) > 0
    assert min(done.summary[f"repair_ms_{kind}"] or 0 for kind in ("join", "leave")) > 0


def links(rows: list[dict[str, Any]]) -> list[Edge]:
    return [(row["source"], row["target"]) for row in rows]


def test_with_full_knowledge_backups_are_counted_too() -> None:
    workload = generate("omen", nodes=60, topics=20, min_subscriptions=2, max_subscriptions=6, seed=3)
    done = simulate("omen", workload, rounds=10, threads=1, view="global", coverage=2)
    load = {name: done.tables["backups"][name].to_numpy() for name in ("view", "backups", "backup_of")}
    assert set(load["view"]) == {60}
    assert load["backups"].sum() == load["backup_of"].sum() > 60
    assert done.tables["repairs"].num_rows == 0
    assert done.summary["lost_events"] == 0.0 and "repair_ms" not in done.summary


@pytest.mark.parametrize("view", ["partial", "global"])
def test_the_duty_is_spread_by_our_rules(view: str) -> None:
    """Who is in most sets is in fewer of them than by the rules of the paper."""
    workload = generate("omen", nodes=120, topics=20, min_subscriptions=2, max_subscriptions=12, seed=3)
    most = {}
    for rule in RULES:
        done = simulate("omen", workload, rounds=20, threads=1, view=view, coverage=3, backups=rule, resilience=1)
        most[rule] = max(done.tables["backups"]["backup_of"].to_pylist())
    assert max(most["gain/load"], most["random"]) < min(most["greedy"], most["primal-dual"])
    if view == "global":  # gossip brings few candidates, and all choose by the loads of the round before
        assert most["gain/load"] < most["random"]


def test_full_knowledge_draws_its_backups_with_numbers_of_their_own() -> None:
    """Sets of one node and round that share their draws with peer sampling would not be random."""
    world = World(some_interests(1), view="global")
    world.run(5)
    with mock.patch("grapevine.systems.omen.mending.build_backups", wraps=build_backups) as build:
        world.system.mender.global_backups(3)
    state = int(build.call_args.args[1])
    assert state not in {draw(1, 5, 3), *(draw(1, 5, 3, salt) for salt in range(12))}


def test_a_run_that_ends_before_anything_was_mended_has_a_summary() -> None:
    """A newcomer crashes before it was linked: its join is closed without a repair, its leave not found out yet."""
    schedule = Schedule(int32(range(1, 12)), {3: Change(joins=int32([0])), 4: Change(crashes=int32([0]))})
    done = simulate("omen", workload_of(one_topic()), rounds=5, threads=1, schedule=schedule, coverage=20, patience=1)
    assert [row["kind"] for row in done.tables["repairs"].to_pylist()] == ["join"]
    assert done.summary["lost_events"] == 0.0
