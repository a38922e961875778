"""Backup sets and their gossip: element by element as in the plain Python of `tests/naive_backups.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import cast
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine import Workload
from grapevine.blocks.profiles import Profiles, make_profiles
from grapevine.blocks.views import NOBODY
from grapevine.sim.churn import Change, Schedule
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.systems.contracts.rounds import Sent
from grapevine.systems.omen.backups import Backups, Ring, keepers, new_backups, reassign, view_room
from grapevine.systems.omen.backups import Kept as KeptByAll
from grapevine.systems.omen.rounds import Omen
from grapevine.systems.omen.set_cover import RULES, Search, build_backups
from tests import naive_backups
from tests.effort import examples
from tests.naive_backups import Kept, NaiveGossip
from tests.worlds import node_number

TOPICS = 7
interests = st.lists(st.sets(st.integers(0, TOPICS - 1), max_size=6), min_size=6, max_size=14)
rules = st.sampled_from(sorted(RULES))
states = st.integers(0, 2**64 - 1)


# One set


def profiles_of(topics: Sequence[set[int]]) -> Profiles:
    starts = np.cumsum([0, *map(len, topics)]).astype(np.int64)
    columns = np.array([t for mine in topics for t in sorted(mine)], np.int32)
    return make_profiles(np.arange(len(topics)).astype(np.uint64), starts, columns, np.ones(TOPICS))


def built(
    topics: Sequence[set[int]],
    wanted: int,
    rule: str,
    state: int,
    usable: set[int],
    order: list[int],
    load: Sequence[int] = (),
) -> Kept:
    """What the kernel makes of candidates in this order for node 0. It writes no more than there is room for. Without
    `load` nobody is in a set yet."""
    room = min(wanted * len(topics[0]), len(topics) - 1)
    out, mark = np.full(room + 1, -7, np.int32), np.zeros(TOPICS, np.int32)
    able = np.isin(np.arange(len(topics)), list(usable))
    nodes = np.array(order, np.int32)
    rows = profiles_of(topics)
    loads = np.array(load or [0] * len(topics), np.int32)
    search = Search(np.full(len(topics), wanted, np.int32), RULES[rule], able, loads, rows)
    made = build_backups(node_number(0), np.uint64(state), nodes, search, mark, out[:room])
    assert not mark.any()
    assert out[made.size :].tolist() == [-7] * (room + 1 - made.size)
    return Kept(out[: made.size].tolist(), int(made.coverage), bool(made.complete))


few = st.sets(st.integers(0, 13), max_size=4)


@examples(2)
@given(
    topics=interests, wanted=st.integers(0, 4), rule=rules, state=states, unusable=few, unknown=few, order=st.randoms()
)
def test_every_backup_is_that_of_the_plain_rule(
    topics: list[set[int]], wanted: int, rule: str, state: int, unusable: set[int], unknown: set[int], order: Random
) -> None:
    known = [u for u in range(len(topics)) if u not in unknown]
    order.shuffle(known)
    usable = set(range(len(topics))) - unusable
    load = [order.randrange(4) for _ in topics]
    kept = built(topics, wanted, rule, state, usable, known, load)
    candidates = [u for u in known if u in usable and u != 0]
    assert kept == naive_backups.build(topics[0], wanted, rule, state, candidates, topics, load)
    assert len(set(kept.nodes)) == len(kept.nodes)
    assert set(kept.nodes) <= set(candidates)
    assert all(topics[u] & topics[0] for u in kept.nodes)  # individual commitment, Eq. 2
    found = {t: min(wanted, sum(t in topics[u] for u in kept.nodes)) for t in topics[0]}
    assert found == {t: min(wanted, sum(t in topics[u] for u in candidates)) for t in topics[0]}  # Eq. 1 and 3
    assert kept.coverage == sum(found.values())
    assert kept.complete == all(number == wanted for number in found.values())


def test_primal_dual_takes_a_random_topic_and_its_best_subscriber_and_ties_are_random() -> None:
    topics = [{0, 1, 2, 3}, {0, 1, 2}, {3}]
    drawn = [naive_backups.absorb(0, i) for i in range(400)]
    firsts = Counter(built(topics, 1, "primal-dual", state, {1, 2}, [1, 2]).nodes[0] for state in drawn)
    assert 260 < firsts[1] < 340  # three of four topics
    assert {built(topics, 1, "greedy", state, {1, 2}, [1, 2]).nodes[0] for state in drawn[:50]} == {1}
    topics = [{0}, {0}, {0}]
    for rule in RULES:
        ties = Counter(built(topics, 1, rule, state, {1, 2}, [1, 2]).nodes[0] for state in drawn)
        assert 150 < ties[1] < 250


def test_our_rules_spread_the_duty_where_the_papers_take_the_node_of_most_topics() -> None:
    """Node 1 wants all topics, the others one each: full knowledge leads both rules of the paper to node 1."""
    topics = [{0, 1, 2}, {0, 1, 2}, {0}, {1}, {2}]
    drawn = [naive_backups.absorb(0, i) for i in range(400)]

    def share_of_1(rule: str, load: Sequence[int] = ()) -> float:
        return sum(built(topics, 1, rule, s, {1, 2, 3, 4}, [1, 2, 3, 4], load).nodes[0] == 1 for s in drawn) / 400

    assert share_of_1("greedy") == share_of_1("primal-dual") == share_of_1("gain/load") == 1
    assert 0.4 < share_of_1("random") < 0.6
    assert share_of_1("gain/load", [0, 3, 0, 0, 0]) == 0  # a gain of 3 for its fourth set, or of 1 for the first


def test_no_tie_is_settled_by_the_draw_of_a_topic() -> None:
    """Node 1 is the only one for topic 1; for topic 0 there are two. Which topic comes first says nothing of them."""
    for even in range(2, 40, 6):
        topics = [{0, 1}, {1}, *({0} if u in (even, even + 1) else set[int]() for u in range(2, 42))]
        sets = [
            built(topics, 1, "primal-dual", naive_backups.absorb(0, i), {1, even, even + 1}, [1, even, even + 1])
            for i in range(200)
        ]
        first = Counter(kept.nodes[0] for kept in sets if kept.nodes[0] != 1)
        assert 0.35 < first[even] / first.total() < 0.65


# Who keeps them


def ring_of(listed: Sequence[int], present: set[int], node_count: int) -> Ring:
    place = np.full(node_count, NOBODY, np.int32)
    place[list(listed)] = np.arange(len(listed))
    return Ring(np.array(listed, np.int32), place, np.isin(np.arange(node_count), list(present)))


@st.composite
def rings(draw: st.DrawFn, node_count: int = 9) -> tuple[list[int], set[int]]:
    """Some nodes in some order, and those of them who are present."""
    listed = draw(st.permutations(range(node_count)))[: draw(st.integers(1, node_count))]
    return listed, draw(st.sets(st.sampled_from(listed)))


@given(rings(), st.integers(1, 4))
def test_keepers_are_the_next_present_nodes(ring: tuple[list[int], set[int]], ranks: int) -> None:
    listed, present = ring
    for subject in listed:
        out = np.full(ranks, 99, np.int32)
        keepers(subject, ring_of(listed, present, 9), out)
        expected = naive_backups.successors(listed, present, subject, ranks)
        assert out.tolist() == expected + [NOBODY] * (ranks - len(expected))


def fill(backups: Backups, ring: Ring, random: np.random.Generator) -> dict[tuple[int, int], Kept]:
    """Random sets for everybody who keeps one; what they are by keeper and subject."""
    kept = {}
    for subject in range(backups.keeper.shape[1]):
        if ring.place[subject] != NOBODY:
            keepers(subject, ring, backups.keeper[:, subject])
        first, room = backups.starts[subject], backups.starts[subject + 1] - backups.starts[subject]
        for rank, keeper in enumerate(backups.keeper[:, subject].tolist()):
            size = int(random.integers(room + 1))
            backups.size[rank, subject], backups.coverage[rank, subject] = size, random.integers(50)
            backups.complete[rank, subject] = random.random() < 0.5
            backups.gained[rank, subject] = random.integers(20)
            backups.nodes[rank, first : first + room] = random.integers(100, size=room)
            if keeper != NOBODY:
                kept[keeper, subject] = kept_at(backups, rank, subject)
    return kept


def kept_at(backups: Backups, rank: int, subject: int) -> Kept:
    first = backups.starts[subject]
    return Kept(
        backups.nodes[rank, first : first + backups.size[rank, subject]].tolist(),
        int(backups.coverage[rank, subject]),
        bool(backups.complete[rank, subject]),
        int(backups.gained[rank, subject]),
    )


@given(rings(), rings(), st.integers(1, 4), st.integers(0, 99))
def test_who_stays_a_successor_keeps_what_it_had_and_new_ones_start_with_nothing(
    before: tuple[list[int], set[int]], after: tuple[list[int], set[int]], ranks: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    room = random.integers(0, 5, 9)
    old, new = new_backups(room, ranks), new_backups(room, ranks)
    kept = fill(old, ring_of(*before, 9), random)
    fill(new, ring_of(*random_ring(random), 9), random)  # what the second buffer was left with
    reassign(30, ring_of(*after, 9), old, new)
    listed, present = after
    for subject in range(9):
        expected = naive_backups.successors(listed, present, subject, ranks) if subject in listed else []
        assert new.keeper[:, subject].tolist() == expected + [NOBODY] * (ranks - len(expected))
        for rank in range(ranks):
            keeper = int(new.keeper[rank, subject])
            assert kept_at(new, rank, subject) == kept.get((keeper, subject), Kept(gained=30))


def random_ring(random: np.random.Generator) -> tuple[list[int], set[int]]:
    listed = random.permutation(9)[: random.integers(1, 10)].tolist()
    return listed, {v for v in listed if random.random() < 0.7}


@given(rings(), st.integers(1, 4), st.integers(0, 99))
def test_sets_are_cut_to_the_room_that_new_interests_leave(
    ring: tuple[list[int], set[int]], ranks: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    room, after = random.integers(0, 5, 9), random.integers(0, 5, 9)
    old, new = new_backups(room, ranks), new_backups(after, ranks)
    kept = fill(old, ring_of(*ring, 9), random)
    reassign(30, ring_of(*ring, 9), old, new)
    for subject in range(9):
        for rank in range(ranks):
            if (duty := (int(new.keeper[rank, subject]), subject)) in kept:
                assert kept_at(new, rank, subject).nodes == kept[duty].nodes[: after[subject]]


# Whole rounds


class Watch:
    """A plain network beside a running one: it is told how things stand, exchanges, and both have to agree."""

    def __init__(self, engine: Rounds) -> None:
        self.engine, self.system = engine, cast(Omen, engine.system)
        config = self.system.config
        self.plain = NaiveGossip(engine.network.seed, config.backups, config.resilience)
        self.exchange = self.system._exchange_views
        self.seen: Counter[str] = Counter()

    def step(self) -> None:
        with mock.patch.object(self.system, "_exchange_views", self.compare):
            self.engine.step()

    def compare(self) -> None:
        network, system = self.engine.network, self.system
        views, ids, nodes = network.views, network.ids.tolist(), range(network.size)
        present, alive, settled = ({v for v in nodes if flags[v]} for flags in self.flags())
        listed = sorted(present | {event.node for event in system.churn.open}, key=lambda v: ids[v])
        assert system.local.ring.listed.tolist() == listed
        self.plain.stand(
            network.now,
            topics=[set(self.row(network.profiles.starts, network.profiles.topics, v)) for v in nodes],
            listed=listed,
            present=present,
            alive=alive,
            settled=settled,
            newcomers={v for v in nodes if network.joined[v] == network.now > 1},
            links=[self.row(views.starts, views.links, v) for v in nodes],
            samples=[[u for u in views.cache[v].tolist() if u != NOBODY] for v in nodes],
            wanted=system.mender.wanted().tolist(),
        )
        sent = self.plain.exchange()
        before = system.messages()
        self.exchange()
        after = system.messages()
        new = {kind: after[kind].messages - before.get(kind, Sent(0, 0)).messages for kind in ("gossip", "ask")}
        carried = after["gossip"].descriptors - before.get("gossip", Sent(0, 0)).descriptors
        assert (new["gossip"], carried, new["ask"]) == (sent[0], sent[1], 2 * sent[2])
        self.agree(listed, present, alive)
        self.seen.update(dead=len(present - alive), departed=len(set(listed) - present))
        self.seen.update(unsettled=len((present & alive) - settled), sent=sent[0], asked=sent[2])

    def flags(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.system.local.present, self.engine.network.alive, self.system.mender.settled

    def row(self, starts: np.ndarray, columns: np.ndarray, v: int) -> list[int]:
        return [u for u in columns[starts[v] : starts[v + 1]].tolist() if u != NOBODY]

    def agree(self, listed: list[int], present: set[int], alive: set[int]) -> None:
        """Every living keeper has what the plain one has. What the dead had matters to nobody."""
        backups, ranks = self.system.local.backups, self.plain.ranks
        for subject in range(self.engine.network.size):
            expected = naive_backups.successors(listed, present, subject, ranks) if subject in listed else []
            assert backups.keeper[:, subject].tolist() == expected + [NOBODY] * (ranks - len(expected))
            for rank, keeper in enumerate(expected):
                if keeper in alive:
                    assert kept_at(backups, rank, subject) == self.plain.kept[keeper, subject]
        sizes, views = self.system.local.sizes(), self.engine.network.views
        rules_kept = KeptByAll(self.system.local.ring, backups, views)
        for v in alive:
            assert sizes[v] == len(self.plain.view(v)) <= view_room(v, rules_kept)


def int32(numbers: Sequence[int]) -> np.ndarray:
    return np.array(sorted(numbers), np.int32)


def eventful(seed: int, **parameters: object) -> Rounds:
    """A small network in which somebody comes, leaves or crashes in most rounds, and some come back soon."""
    random = np.random.default_rng(seed)
    nodes, topics = int(random.integers(8, 26)), int(random.integers(3, 9))
    pairs = [(v, t) for v in range(nodes) for t in random.choice(topics, random.integers(topics), replace=False)]
    workload = Workload.from_pairs(*np.array(pairs).reshape(-1, 2).T, node_count=nodes, topic_count=topics)
    there = set(random.permutation(nodes)[: random.integers(6, nodes + 1)].tolist())
    first, changes = int32(list(there)), {}
    for now in range(2, 16):
        order = random.permutation(nodes).tolist()
        joins = [v for v in order if v not in there][: random.integers(3)]
        gone = [v for v in order if v in there][: random.integers(3)] if len(there) > 5 else []
        changes[now] = Change(joins=int32(joins), leaves=int32(gone[1:]), crashes=int32(gone[:1]))
        there = (there | set(joins)) - set(gone)
    config = make_config("omen", dict(parameters))
    return Rounds("omen", workload, config, seed=seed, schedule=Schedule(first, changes))


@examples(0.4)
@given(
    seed=st.integers(0, 10_000),
    ranks=st.integers(1, 3),
    coverage=st.integers(0, 4),
    rule=rules,
    sample_size=st.integers(1, 6),
    patience=st.integers(1, 5),
    max_age=st.integers(1, 4),
)
def test_every_exchange_is_that_of_the_plain_network(
    seed: int, ranks: int, coverage: int, rule: str, sample_size: int, patience: int, max_age: int
) -> None:
    engine = eventful(
        seed,
        resilience=ranks,
        coverage=coverage,
        backups=rule,
        sample_size=sample_size,
        patience=patience,
        max_age=max_age,
    )
    watch = Watch(engine)
    for _ in range(18):
        watch.step()


def test_who_comes_back_before_being_missed_knows_nothing_of_what_it_kept() -> None:
    nodes = 12
    workload = Workload.from_pairs(np.arange(nodes), np.zeros(nodes, int), node_count=nodes, topic_count=1)
    changes = {10: Change(crashes=int32([4])), 11: Change(joins=int32([4]))}
    schedule = Schedule(int32(range(nodes)), changes)
    config = make_config("omen", {"resilience": 1, "coverage": 3, "max_age": 5})
    engine = Rounds("omen", workload, config, schedule=schedule)
    for _ in range(10):
        engine.step()
    system = cast(Omen, engine.system)
    (subject,) = np.flatnonzero(system.local.backups.keeper[0] == 4).tolist()
    assert system.local.backups.size[0, subject] == 3
    with mock.patch.object(system, "_exchange_views"):
        engine.step()
    assert system.local.backups.keeper[0, subject] == 4
    assert kept_at(system.local.backups, 0, subject) == Kept(gained=11)


@pytest.mark.parametrize("rule", RULES)
def test_the_rounds_compared_have_dead_departed_and_unsettled_nodes_in_them(rule: str) -> None:
    watch = Watch(eventful(5, resilience=2, coverage=3, backups=rule, sample_size=4, patience=4, timeout=3))
    for _ in range(18):
        watch.step()
    assert min(watch.seen[kind] for kind in ("dead", "departed", "unsettled", "sent", "asked")) > 3
