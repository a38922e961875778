"""OMen: newcomers whose topics nobody is known for, and interests that change."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.omen_world import LATER, World, one_topic_and_own

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
        assert {row["kind"] for row in world.system.mender.repairs} == {"join", "meet"}


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
        found = {v: system.mender.backups_of(v, int(system.local.backups.keeper[0, v])).tolist() for v in range(3)}
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
            if world.system.mender.settled[:2].all():
                break
        if {0, 1} <= world.system.mender.lonely.keys() and not world.open():
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
