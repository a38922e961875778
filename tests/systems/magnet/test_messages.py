"""What Magnet and its strawman cost in control messages: counted as a plain reading of §2.2, §3.3 and §3.4 counts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine import Workload, simulate
from grapevine.blocks.views import NOBODY
from grapevine.sim.churn import Change, Schedule
from grapevine.sim.rounds import Rounds
from grapevine.systems.magnet.membership import ControlRing
from grapevine.systems.magnet.trees import Overlay, join_trees
from tests import naive_magnet
from tests.magnet_world import BOTH, run_for
from tests.naive_magnet import greedy_route
from tests.systems.magnet.test_trees import Overlay as World
from tests.systems.magnet.test_trees import overlays
from tests.worlds import medium_of


def overlay_of(world: World, known: list[int]) -> Overlay:
    """One topic; the control ring has the nodes in their order at even ids."""
    size = len(world.ids)
    medium = medium_of(world.links, world.subscribers, ids=world.ids, floods=False, home=world.home)
    everyone = np.arange(size, dtype=np.int32)
    control = ControlRing(everyone.astype(np.uint64) << np.uint64(50), everyone, np.array([world.home]))
    samples, count = np.array([known or [NOBODY]], np.int32), np.array([len(known)], np.int32)
    members = medium.topic_starts, medium.topic_nodes
    return Overlay(medium.homes, *members, samples, count, control, medium.fresh, medium.ids, medium.views)


def plain_request(p: int, world: World, asked: int | None) -> int:
    """Algorithm 2 by hand: a question, up from the one asked to the first node on p's own route, and down this route;
    who knows nobody asks the home, over the control ring."""
    routes = {q: greedy_route(world.home, q, world.ids, world.links) for q in {p, world.home, *world.subscribers}}
    if asked is None or asked == p:
        ring = [place << 50 for place in range(len(world.ids))]
        hops, at = 0, p
        while at != world.home:
            at, hops = naive_magnet.next_place(at, world.home, ring), hops + 1
        return hops + len(routes[p]) - 1
    common = sum(a == b for a, b in zip(routes[asked], routes[p], strict=False))
    return 1 + (len(routes[asked]) - common) + (len(routes[p]) - common)


@given(overlays(), st.data())
def test_tree_joins_cost_the_way_up_and_down(world: World, data: st.DataObject) -> None:
    known = data.draw(st.lists(st.sampled_from(world.subscribers), unique=True, max_size=3))
    overlay, parents = overlay_of(world, known), np.full(len(world.subscribers), NOBODY, np.int32)
    edges, messages = join_trees((0, 1), overlay, parents)
    routes = [greedy_route(world.home, p, world.ids, world.links) for p in overlay.nodes.tolist()]
    assert edges == len({edge for route in routes for edge in pairwise(route)})
    assert parents.tolist() == [route[-2] if len(route) > 1 else NOBODY for route in routes]
    asked = [known[i % len(known)] if known else None for i in range(len(routes))]
    joining = [(route[-1], other) for route, other in zip(routes, asked, strict=True) if len(route) > 1]
    assert messages == sum(plain_request(p, world, other) for p, other in joining)
    assert join_trees((0, 1), overlay, parents) == (edges, 0)  # who has the same parent has nothing to do


def sent(engine: Rounds) -> dict[str, int]:
    return {kind: count.messages for kind, count in engine.system.messages().items()}


@pytest.mark.parametrize("system", BOTH)
def test_without_churn_only_heartbeats_and_new_fingers_cost_messages(system: str, correlated: Workload) -> None:
    """Fingers are chosen in the rounds 1, 6, 11 …: then there are walks and, as trees have changed, tree joins."""
    engine = run_for(system, correlated, 6)
    before = sent(engine)
    assert all(before[kind] > 0 for kind in ("join", "walk", "tree_join", "heartbeat", "tree_heartbeat"))
    assert (before["sample"] > 0) == (system == "magnet")  # nobody looks at interests in the strawman
    links = np.count_nonzero(engine.network.views.links != NOBODY)
    for _ in range(4):
        engine.step()
    now = sent(engine)
    assert {kind for kind in now if now[kind] != before[kind]} == {"heartbeat", "tree_heartbeat"}
    assert now["heartbeat"] - before["heartbeat"] == 4 * 2 * links
    engine.step()
    assert {kind for kind in now if sent(engine)[kind] == now[kind]} == {"join", "sample"}


def test_walks_are_those_of_the_medians_and_of_the_fingers(correlated: Workload) -> None:
    """§2.2: five walks for each of about log₂ 500 = 9 medians, then at least one for each of 17 fingers, or two where
    two nodes are to choose from; each takes 20 steps and tells what it found."""
    walks = {system: sent(run_for(system, correlated, 1))["walk"] / 21 / 500 for system in BOTH}
    assert 5 * 6 + 17 <= walks["strawman"] < walks["magnet"]
    assert 5 * 6 + 2 * 17 <= walks["magnet"] <= 5 * 20 + 2 * 17 * 4


def test_a_join_asks_for_every_topic_and_no_more_than_log_n_nodes_each(correlated: Workload) -> None:
    """§3.2, footnote 2: at most O(t log N) messages for t topics of a node."""
    newcomer = np.array([11], np.int32)
    everyone = np.delete(np.arange(500, dtype=np.int32), 11)
    cost = {}
    for system in BOTH:
        engine = run_for(system, correlated, 8, schedule=Schedule(everyone, {9: Change(joins=newcomer)}))
        before = sent(engine)
        engine.step()
        cost[system] = sent(engine)["join"] - before["join"]
    topics = len(correlated.topics_of(11))
    assert 2 <= cost["strawman"] <= 2 + 2 * np.log2(500)
    assert topics + 4 <= cost["magnet"] <= 4 + (topics + 1) * (1 + 2 * np.log2(500))


def test_messages_of_a_node_in_a_round_are_among_the_numbers_of_a_run(correlated: Workload) -> None:
    found = simulate("magnet", correlated, rounds=6, threads=1)
    engine = run_for("magnet", correlated, 6)
    for kind, count in sent(engine).items():
        assert found.summary[f"control_{kind}"] == pytest.approx(count / 500 / 6)


@pytest.mark.parametrize("system", BOTH)
def test_routes_are_those_that_events_take(system: str, grown: Callable[[str], Rounds]) -> None:
    """`lookup_hops` of Magnet: clockwise routes to nodes over the skewed ring, not lookups of topics' ids there."""
    engine = grown(system)
    views, ids = engine.network.views, engine.network.ids.tolist()
    rows = np.split(views.links, views.starts[1:-1])
    links = {p: [q for q in row.tolist() if q != NOBODY] for p, row in enumerate(rows)}
    pairs = np.random.default_rng(1).integers(0, 500, (600, 2)).tolist()
    hops = [len(greedy_route(p, q, ids, links)) - 1 for p, q in pairs]
    assert engine.lookup_hops() == pytest.approx(np.mean(hops), abs=0.25)
