"""OMen: every topic connected again after up to L events at once, whoever is among those that go (claim O10)."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, cast

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.blocks.overlay_design import SIGHTS
from tests.omen_world import LATER, World, one_topic


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
@given(case=cases())
def test_up_to_l_concurrent_events_are_mended_whoever_they_happen_to(view: str, case: Case) -> None:
    world, planned = prepare(case, view=view)
    world.run(LATER)
    world.is_mended()
    handled = Counter((row["kind"], row["node"]) for row in world.system.mender.repairs)
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
    assert Counter(row["kind"] for row in world.system.mender.repairs if row["kind"] != "meet") == {
        "join": 15,
        "leave": 15,
    }


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
