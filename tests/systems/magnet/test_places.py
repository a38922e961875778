"""Magnet (DEBS 2010) and its strawman: places by interest, what they are good for, churn. Trees: test_magnet_trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from grapevine import Workload
from grapevine.blocks.profiles import make_profiles
from grapevine.blocks.views import NOBODY
from grapevine.sim.churn import Change, Schedule, flash_crowd, mass_failure
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.synthetic import generate
from grapevine.systems.magnet.circle import Circle, insert_at
from grapevine.systems.magnet.rounds import choose_ids
from tests import naive_magnet
from tests.magnet_world import BOTH, before, reached, ring_order, run_for, workload_of
from tests.naive_magnet import NaiveCircle, clockwise

roomy = st.integers(0, 2**24 - 1).map(lambda place: place << 40)  # with room for many newcomers in every gap


# Places (Algorithm 1)


class Joins(NamedTuple):
    """Some are on the ring already, at these ids; the others come in turn."""

    interests: list[set[int]]
    rates: list[float]
    hashed: list[int]
    there: dict[int, int]
    newcomers: list[int]
    samples: list[list[int]]
    k: int


@st.composite
def joins(draw: st.DrawFn) -> Joins:
    topics, size, k = draw(st.integers(1, 5)), draw(st.integers(1, 9)), draw(st.integers(1, 3))
    interests = draw(st.lists(st.sets(st.integers(0, topics - 1)), min_size=size, max_size=size))
    weights = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0]), min_size=topics, max_size=topics)
    rates = draw(weights.filter(any) | st.just([1.0] * topics))
    hashed = draw(st.lists(roomy, min_size=size, max_size=size, unique=True))
    nodes = draw(st.permutations(range(size)))
    old = draw(st.integers(0, size - 1))
    ids = draw(st.lists(roomy, min_size=old, max_size=old, unique=True))
    some = [st.lists(st.sampled_from(nodes), max_size=k, unique=True) for _ in range(topics)]
    samples = [draw(sample) for sample in some] if old else [[] for _ in range(topics)]
    return Joins(interests, rates, hashed, dict(zip(nodes, ids, strict=False)), list(nodes[old:]), samples, k)


@given(joins(), st.integers(0, 99))
def test_places_are_those_of_plain_joins(world: Joins, seed: int) -> None:
    """Algorithm 1: behind the most similar sampled node (§2.1, by rate), ties by hash; hashed when none is known."""
    size, plain = len(world.interests), NaiveCircle()
    circle = Circle(np.zeros(size, np.uint64), *np.full((2, size), NOBODY, np.int32))
    for node, id in world.there.items():
        insert_at(np.uint64(id), node, plain.order[0] if plain.order else NOBODY, circle)
        plain.insert_at(id, node)
    starts = np.cumsum([0, *map(len, world.interests)]).astype(np.int64)
    topics = np.array([topic for mine in world.interests for topic in sorted(mine)], np.int32)
    hashed = np.array(world.hashed, np.uint64)
    samples = np.full((len(world.rates), world.k), NOBODY, np.int32)
    for topic, row in enumerate(world.samples):
        samples[topic, : len(row)] = row
    known = np.array([len(row) for row in world.samples], np.int32)
    profiles = make_profiles(hashed, starts, topics, np.array(world.rates))
    choose_ids(seed, np.array(world.newcomers, np.int32), hashed, profiles, samples, known, circle)

    wanted = [list(row) for row in world.samples]
    naive_magnet.take_places(seed, world.newcomers, world.hashed, world.interests, world.rates, wanted, world.k, plain)
    assert {node: int(circle.ids[node]) for node in plain.order} == plain.ids
    for node, after in pairwise([*plain.order, plain.order[0]]):
        assert circle.after[node] == after and circle.before[after] == node
    assert [row[:count].tolist() for row, count in zip(samples, known.tolist(), strict=True)] == wanted


@pytest.mark.parametrize("model", ["vitis-high", "vitis-random"])
def test_the_first_ring_is_that_of_plain_joins(model: str) -> None:
    """Magnet's places when all start together: joins in turn, with samples of those who came before (§3.4)."""
    more = {"buckets": 10} if model == "vitis-high" else {"rate_exponent": 1.0}
    workload = generate(model, nodes=50, topics=30, subscriptions_per_node=4, seed=4, **more)
    engine = run_for("magnet", workload, 1, seed=3, parameters={"samples": 3})
    interests = [set(workload.topics_of(p).tolist()) for p in range(50)]
    plain = naive_magnet.first_ring(
        3, workload.node_ids.tolist(), workload.topic_ids.tolist(), interests, workload.rates.tolist(), 3
    )
    assert engine.network.ids.tolist() == [plain.ids[p] for p in range(50)]


def test_no_two_samplings_share_their_draws(correlated: Workload) -> None:
    """§3.4: k interests uniformly at random, in every round of the service; a build has many rounds of it at once."""
    engine = run_for("magnet", correlated, 1, parameters={"samples": 3})
    system = engine.system
    found = []
    for _ in range(3):
        system._sample_interests()  # type: ignore[attr-defined]
        found.append(system._samples.copy())  # type: ignore[attr-defined]
    large = engine.network.topic_nodes.sizes() > 12
    assert large.any()
    for one, other in pairwise(found):
        assert (np.sort(one[large]) != np.sort(other[large])).any(axis=1).mean() > 0.9


def test_the_strawman_stays_at_its_hashed_ids() -> None:
    workload = generate("vitis-high", nodes=70, topics=40, subscriptions_per_node=4, buckets=10, seed=4)
    engine = run_for("strawman", workload, 8, schedule=mass_failure(70, share=0.2, round=3))
    assert (engine.network.ids == workload.node_ids).all()


@pytest.mark.parametrize("loud", [0, 2])
def test_who_shares_the_topic_with_the_higher_rate_is_closer(loud: int) -> None:
    """§2.1: nodes 0 and 1 share one topic of three each with the newcomer, 5; the rates of the topics decide."""
    interests = [{0, 1}, {2, 3}, {4}, {5}, {6}, {0, 2}]
    rates = [8.0 if topic == loud else 1.0 for topic in range(7)]
    for seed in range(6):
        late = Schedule(np.arange(5, dtype=np.int32), {3: Change(joins=np.array([5], np.int32))})
        engine = run_for("magnet", workload_of(interests, 7, rates), 3, schedule=late, seed=seed)
        assert before(5, engine) == (0 if loud == 0 else 1)


def test_of_equally_similar_nodes_a_random_one_is_taken() -> None:
    """§3.2: "breaking ties randomly"; the same as above with equal rates."""
    interests = [{0, 1}, {2, 3}, {4}, {5}, {6}, {0, 2}]
    late = Schedule(np.arange(5, dtype=np.int32), {3: Change(joins=np.array([5], np.int32))})
    workload = workload_of(interests, 7)
    assert {before(5, run_for("magnet", workload, 3, schedule=late, seed=seed)) for seed in range(12)} == {0, 1}


def test_a_newcomer_is_told_of_a_live_subscriber_when_the_sampled_one_has_crashed() -> None:
    """§3: the view holds at least one other node interested in a topic. One is sampled here of three; each in turn
    crashes a round before 10 comes, which wants the same topic; 3 … 9 want others."""
    interests = [{0}, {0}, {0}, *({topic} for topic in range(1, 8)), {0}]
    workload = workload_of(interests, 8)
    for gone in range(3):
        changes = {3: Change(crashes=np.array([gone], np.int32)), 4: Change(joins=np.array([10], np.int32))}
        for seed in range(4):
            schedule = Schedule(np.arange(10, dtype=np.int32), changes)
            engine = run_for("magnet", workload, 4, parameters={"samples": 1}, schedule=schedule, seed=seed)
            assert before(10, engine) in {0, 1, 2} - {gone}


# What it is good for


def ring_distance(system: str, grown: Callable[[str], Rounds], same: Callable[[int, int], bool]) -> tuple[float, float]:
    """Mean steps on the ring between pairs of nodes: those that are the same, and all."""
    order = ring_order(grown(system))
    size, alike, all = len(order), list[int](), list[int]()
    for i in range(size):
        for j in range(i):
            steps = min(i - j, size - i + j)
            all.append(steps)
            if same(order[i], order[j]):
                alike.append(steps)
    return float(np.mean(alike)), float(np.mean(all))


def test_similar_nodes_are_near_on_the_ring_and_the_strawman_has_them_anywhere(
    grown: Callable[[str], Rounds], correlated: Workload
) -> None:
    """§3.2: close subscriptions, ids "as close to each other as possible". Every node's topics are of one mode of
    ten."""
    mode = [int(correlated.topics_of(p)[0]) // 20 for p in range(500)]
    found = {system: ring_distance(system, grown, lambda p, q: mode[p] == mode[q]) for system in BOTH}
    alike, all = found["magnet"]
    assert alike < 0.5 * all
    alike, all = found["strawman"]
    assert alike == pytest.approx(all, rel=0.1)


def relays(engine: Rounds) -> int:
    events = engine.publish(np.arange(engine.workload.topic_count, dtype=np.int32)).events
    return int(events["relays"].sum())


def test_correlated_interests_save_relays(grown: Callable[[str], Rounds]) -> None:
    """Fig. 3: up to 80 % with one mode."""
    assert relays(grown("magnet")) < 0.6 * relays(grown("strawman"))


@pytest.mark.parametrize("subscriptions", [5, 20])
def test_uncorrelated_interests_cost_no_relays(subscriptions: int) -> None:
    """§1: "never worse than that exhibited by the strawman"."""
    workload = generate("vitis-random", nodes=400, topics=150, subscriptions_per_node=subscriptions, seed=5)
    found = {system: relays(run_for(system, workload, 26)) for system in BOTH}
    assert 0 < found["magnet"] <= 1.05 * found["strawman"]


@pytest.mark.parametrize("system", BOTH)
def test_fingers_are_chosen_anew_by_steps_on_the_ring(system: str, grown: Callable[[str], Rounds]) -> None:
    """§2.2: "periodic sampling"; the first fingers are random nodes, half of them more than 500^0.89 steps away."""
    engine = grown(system)
    order, views = ring_order(engine), engine.network.views
    place = np.argsort(order)
    table = views.links.reshape(500, -1)[:, 2:]
    steps = (place[table] - place[:, None])[table != NOBODY] % 500
    assert np.median(np.log(steps)) / np.log(500) < 0.8


# Churn and changes of interest


@pytest.mark.parametrize("system", BOTH)
def test_a_crowd_is_between_its_neighbours_on_the_ring_in_the_round_in_which_it_comes(
    system: str, correlated: Workload
) -> None:
    """§3.2: a node joins the ring between q and q's successor; these know of it at once."""
    engine = run_for(system, correlated, 9, schedule=flash_crowd(500, share=0.3, round=9))
    assert engine.ring_correctness() == 1.0


@pytest.mark.parametrize("system", BOTH)
def test_live_subscribers_are_reached_again_soon_after_a_third_of_the_nodes_crash(
    system: str, correlated: Workload
) -> None:
    """§3.3: the overlay heals, and the trees with it. Links that are silent are given up after three rounds."""
    engine = run_for(system, correlated, 35, schedule=mass_failure(500, share=0.3, round=27))
    got, there = reached(engine, range(200))
    assert got == there > 0
    assert engine.ring_correctness() == 1.0


def first_at_or_after(key: int, nodes: Iterable[int], ids: Sequence[int]) -> int:
    return min(nodes, key=lambda p: clockwise(key, ids[p]))


@pytest.mark.parametrize("system", BOTH)
def test_while_a_home_is_down_its_topics_have_another(system: str, correlated: Workload) -> None:
    """§3.1: the home is who the control ring says, by hashed ids, whatever place it has taken by its interests."""
    ids, keys = correlated.node_ids.tolist(), correlated.topic_ids.tolist()
    everyone = set(range(500))
    home = first_at_or_after(keys[7], everyone, ids)
    mine = [topic for topic in range(200) if first_at_or_after(keys[topic], everyone, ids) == home]
    it = np.array([home], np.int32)
    down = Schedule(np.arange(500, dtype=np.int32), {8: Change(crashes=it), 14: Change(joins=it)})
    engine = run_for(system, correlated, 7, schedule=down)
    for now in range(8, 20):
        there = everyone if not 8 <= now < 14 else everyone - {home}
        engine.step()
        homes = engine.medium().homes.tolist()
        assert homes == [first_at_or_after(key, there, ids) for key in keys]
        assert (homes[7] == home) == (now >= 14)
        if now in (13, 19):
            got, wanted = reached(engine, mine)
            assert got == wanted > 0


@pytest.mark.parametrize("system", BOTH)
def test_whose_interests_change_is_still_reached(system: str, correlated: Workload) -> None:
    engine = run_for(system, correlated, 8)
    mine: list[int] = correlated.topics_of(11).tolist()
    wanted = (mine[0] + 100) % 200  # of another mode
    for topic in mine:
        engine.unsubscribe(11, topic)
    engine.subscribe(11, wanted)
    for _ in range(4):
        engine.step()
    events = engine.publish(np.array([wanted], np.int32)).events
    members = engine.network.topic_nodes.row(wanted).tolist()
    assert 11 in members and len(members) > 2
    assert events["reached"][0] == events["subscribers"][0] == len(members) - 1


def test_whose_interests_change_moves_next_to_somebody_who_shares_the_new_ones(correlated: Workload) -> None:
    """§3.2: places are taken anew "every time it changes its interest"; all others stay in their order."""
    engine = run_for("magnet", correlated, 8, parameters={"ring_backups": 0})
    for node in range(40, 60):
        old = set(engine.network.profiles.topics[slice(*engine.network.profiles.starts[[node, node + 1]])].tolist())
        mode = (min(old) // 20 + 5) % 10
        new = range(20 * mode, 20 * mode + 3)
        rest = [p for p in ring_order(engine) if p != node]
        for topic in old:
            engine.unsubscribe(node, topic)
        for topic in new:
            engine.subscribe(node, topic)
        engine.step()
        assert engine.ring_correctness() == 1.0  # also without backups: those it was between know each other at once
        neighbour = before(node, engine)
        assert any(neighbour in engine.network.topic_nodes.row(topic) for topic in new)
        order = [p for p in ring_order(engine) if p != node]
        assert order == rest[rest.index(order[0]) :] + rest[: rest.index(order[0])]


def test_whose_interests_stay_keeps_its_place(correlated: Workload) -> None:
    engine = run_for("magnet", correlated, 3)
    ids: NDArray[np.uint64] = engine.network.ids.copy()
    engine.subscribe(11, int(correlated.topics_of(11)[0]))  # it has it already
    engine.step()
    assert (engine.network.ids == ids).all()


@pytest.mark.parametrize("system", BOTH)
def test_whatever_comes_goes_and_changes_the_ring_is_exact_again_and_all_are_reached(system: str) -> None:
    """Joins, leaves, crashes, returns in the same round, new interests: together, for twenty rounds."""
    workload = generate("vitis-high", nodes=150, topics=60, subscriptions_per_node=6, buckets=6, seed=6)
    random = np.random.default_rng(1)
    there, changes = set(range(0, 150, 2)), {}
    for now in range(4, 24):
        gone = random.permutation(sorted(there))[:6].astype(np.int32)
        back = np.append(random.permutation(sorted(set(range(150)) - there))[:6], gone[:1]).astype(np.int32)
        changes[now] = Change(joins=back, leaves=gone[3:], crashes=gone[:3])
        there = there - set(gone.tolist()) | set(back.tolist())
    engine = Rounds(
        system, workload, make_config(system, {}), schedule=Schedule(np.arange(0, 150, 2, dtype=np.int32), changes)
    )
    order: list[int] = []
    for now in range(1, 34):
        if 5 <= now < 22:
            for node in random.integers(0, 150, 3).tolist():
                (engine.subscribe if random.random() < 0.7 else engine.unsubscribe)(node, int(random.integers(60)))
        engine.step()
        order, circle = ring_order(engine), engine.system._circle  # type: ignore[attr-defined]
        assert len(set(engine.network.ids[order].tolist())) == len(order)
        assert np.flatnonzero(circle.after != NOBODY).tolist() == sorted(order)
        assert circle.after[order].tolist() == [*order[1:], order[0]]
    assert set(order) == there
    assert engine.ring_correctness() == 1.0
    got, wanted = reached(engine, range(60))
    assert got == wanted > 0


@pytest.mark.parametrize("system", BOTH)
def test_a_link_to_the_dead_never_counts_as_heard(system: str) -> None:
    """What a newcomer is told of others is as old as its source says: a crash in the round before is not known yet,
    but nobody has heard from the crashed since. (Round 13 is none in which fingers are chosen anew.)"""
    workload = generate("vitis-high", nodes=200, topics=60, subscriptions_per_node=6, buckets=6, seed=6)
    everyone = np.arange(200, dtype=np.int32)
    late, gone = everyone[::10].copy(), everyone[5::10].copy()
    changes = {12: Change(crashes=gone), 13: Change(joins=late)}
    engine = run_for(system, workload, 11, schedule=Schedule(np.setdiff1d(everyone, late), changes))
    for now in range(12, 18):
        engine.step()
        views = engine.network.views
        silent = (views.links != NOBODY) & ~views.alive[views.links]
        assert not (silent & (views.heard == now)).any(), f"round {now}"
