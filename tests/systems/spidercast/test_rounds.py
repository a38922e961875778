"""SpiderCast and its rivals: link by link as in the plain Python of `tests/naive_connections.py`, and as promised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from grapevine import Workload, simulate
from grapevine.blocks.connections import MESSAGE_KINDS
from grapevine.blocks.views import NOBODY
from grapevine.model.errors import UsageError
from grapevine.sim.churn import Change, Schedule, everyone, mass_failure
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from tests.naive_connections import NaiveConnections
from tests.spidercast_world import (
    CASES,
    ROUNDS,
    Case,
    State,
    eventful,
    int32,
    quiet,
    sent_by,
    states,
    system_of,
    workload_of,
)

# The kernels and the plain rounds


class Pair:
    """Kernels and plain rounds, doing the same."""

    def __init__(self, case: Case, *, churn: bool, seed: int = 9) -> None:
        workload = workload_of(**case.workload)
        config = make_config(case.system, case.parameters)
        self.story = eventful(workload) if churn else quiet(workload)
        self.fast = Rounds(case.system, workload, config, seed=seed, schedule=self.story.schedule())
        given = config.as_dict()
        known = ("margin", "view_share", "quarantine_rounds", "max_age", "ties", "adaptive")
        wishes = [("greedy", "greedy_coverage"), ("random", "random_coverage")]
        if case.system == "similarity":
            wishes = [("similar", "similar"), ("stranger", "random")]
        self.slow = NaiveConnections(
            [set(workload.topics_of(p).tolist()) for p in range(workload.node_count)],
            [(rule, given[parameter]) for rule, parameter in wishes],
            seed=seed,
            printed=[rule for rule in ("target", "disconnect", "redirect") if given[f"{rule}_rule"] == "printed"],
            **{name: given[name] for name in known if name in given},
        )
        self.slow.join(self.story.first)

    def run(self) -> Iterator[int]:
        for now in range(1, ROUNDS + 1):
            self.slow.leave(self.story.leaves.get(now, []))
            self.slow.crash(self.story.crashes.get(now, []))
            self.slow.join(self.story.joins.get(now, []))
            for node, topic, wanted in self.story.wishes.get(now, []):
                (self.fast.subscribe if wanted else self.fast.unsubscribe)(node, topic)
                (self.slow.nodes[node].topics.add if wanted else self.slow.nodes[node].topics.discard)(topic)
            self.fast.step()
            self.slow.round()
            yield now

    def slow_states(self) -> dict[tuple[int, int], State]:
        return {
            (p.number, i): State(
                sorted(task.neighbours), task.target, NOBODY if task.redirect is None else task.redirect, task.k
            )
            for p in self.slow.nodes
            if p.alive
            for i, task in enumerate(p.tasks)
        }

    def sent(self) -> dict[str, int]:
        return {kind: self.slow.sent[kind] for kind in MESSAGE_KINDS}


@pytest.mark.parametrize("churn", [False, True], ids=["quiet", "eventful"])
@pytest.mark.parametrize("name", CASES)
def test_every_neighbour_target_and_message_is_that_of_the_plain_rounds(name: str, churn: bool) -> None:
    pair = Pair(CASES[name], churn=churn)
    for _ in pair.run():
        assert states(pair.fast) == pair.slow_states()
        assert sent_by(pair.fast) == pair.sent()


def test_small_margins_make_every_kind_of_message_needed() -> None:
    """So the comparison above has seen them all; nobody says goodbye here, so a LEAVE is that of a full node."""
    pair = Pair(CASES["small margin"], churn=False)
    for _ in pair.run():
        assert sent_by(pair.fast) == pair.sent()
    assert min(pair.sent().values()) > 0


def test_skewed_interests_raise_the_random_coverage_of_some_nodes_and_never_above_four() -> None:
    """§3.3.1: K_r is raised while it is 3 or less."""
    pair = Pair(CASES["adaptive, skewed"], churn=False)
    reached = [{state.k for (_, i), state in states(pair.fast).items() if i == 1} for _ in pair.run()]
    assert reached[0] == {0}
    assert set.union(*reached) == {0, 1, 2, 3, 4}


def test_a_node_looks_at_its_degree_when_it_is_covered_for_the_first_time_and_not_again() -> None:
    """§3.3.1. Of one topic everybody is covered after a round. Who had exactly K_g = 1 link then covers at random, too;
    who had more does not, also when it has let go all but one by and by."""
    workload = Workload.from_pairs(range(30), [0] * 30, node_count=30, topic_count=1)
    config = make_config("spidercast", {"greedy_coverage": 1, "adaptive": True})
    engine = Rounds("spidercast", workload, config, seed=4)
    engine.step()
    first = {p: len(state.neighbours) for (p, i), state in states(engine).items() if i == 0}
    has_fallen = set()
    for _ in range(20):
        engine.step()
        has_fallen |= {p for p in first if first[p] > 1 and len(system_of(engine).network.neighbours().row(p)) == 1}
    assert {p for (p, i), state in states(engine).items() if i == 1 and state.k} == {p for p in first if first[p] == 1}
    assert has_fallen


def test_messages_carry_the_descriptors_that_the_paper_puts_into_them() -> None:
    """Fig. 4: CONNECT and CONNECT-OK that of their sender, REDIRECT that of whom it names, the others none."""
    pair = Pair(CASES["small margin"], churn=True)
    for _ in pair.run():
        pass
    sent = pair.fast.system.messages()
    assert min(of_kind.messages for of_kind in sent.values()) > 0
    assert {kind for kind, of_kind in sent.items() if of_kind.descriptors == of_kind.messages} == {
        *("connect", "connect-ok", "redirect")
    }
    assert {sent[kind].descriptors for kind in ("disconnect", "disconnect-ok", "leave")} == {0}


def test_who_is_back_before_being_missed_is_answered_by_the_neighbour_it_had() -> None:
    """Both ask each other in round 1. In round 4 node 1 is back and asks 0, which is full, but with node 1."""
    workload = Workload.from_pairs([0, 1], [0, 0], node_count=2, topic_count=1)
    config = make_config("spidercast", {"greedy_coverage": 1, "margin": 0})
    changes = {3: Change(crashes=int32([1])), 4: Change(joins=int32([1]))}
    engine = Rounds("spidercast", workload, config, schedule=Schedule(int32([0, 1]), changes))
    seen = []
    for _ in range(4):
        engine.step()
        seen.append({p: state.neighbours for (p, i), state in states(engine).items() if i == 0})
    assert seen == [{0: [1], 1: [0]}, {0: [1], 1: [0]}, {0: [1]}, {0: [1], 1: [0]}]
    sent = {kind: count for kind, count in sent_by(engine).items() if count}
    assert sent == {"connect": 3, "connect-ok": 3}


# What the tables promise


def one_sided(engine: Rounds) -> list[tuple[int, int, int]]:
    """Neighbours (p, q) in a task such that q is there and does not count p."""
    found = states(engine)
    return [
        (p, q, i) for (p, i), state in found.items() for q in state.neighbours
        if (q, i) in found and p not in found[q, i].neighbours
    ]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_links_have_two_ends_and_degrees_their_limit_when_nobody_crashes(name: str) -> None:
    case = CASES[name]
    workload = workload_of(**case.workload)
    story = eventful(workload)._replace(crashes={}, wishes={})
    joins = {now: [p for p in some if p % 9 == 4 or p not in story.first] for now, some in story.joins.items()}
    config = make_config(case.system, case.parameters)
    engine = Rounds(case.system, workload, config, seed=2, schedule=story._replace(joins=joins).schedule())
    margin = system_of(engine).config.margin
    for _ in range(ROUNDS):
        engine.step()
        assert one_sided(engine) == []
        for (p, i), state in states(engine).items():
            task = system_of(engine).tasks[i]
            assert len(state.neighbours) == task.degree[p] <= task.limit[p] + margin


def test_a_crash_too_short_to_be_noticed_leaves_no_link_of_one_end() -> None:
    workload = workload_of(100, 30, 3, 8)
    gone = int32(range(0, 100, 10))
    schedule = Schedule(int32(range(100)), {10: Change(crashes=gone), 11: Change(joins=gone)})
    engine = Rounds("spidercast", workload, make_config("spidercast", {}), schedule=schedule)
    for _ in range(30):
        engine.step()
    assert one_sided(engine) == []


# Mistakes, and threads


@pytest.mark.parametrize(
    ("system", "parameters", "line"),
    [
        (
            "spidercast",
            {"greedy_coverage": 0, "random_coverage": 0},
            "greedy_coverage=0, random_coverage=0: nobody would look for neighbours; give one of them",
        ),
        (
            "spidercast",
            {"greedy_coverage": 0, "random_coverage": 1, "adaptive": True},
            "adaptive=true: needs greedy_coverage of 1 or more to adapt to",
        ),
        ("spidercast", {"margin": -1}, "margin=-1: needs at least 0"),
        ("spidercast", {"view_share": 0}, "view_share=0: needs at least 0.001"),
        ("spidercast", {"view_share": 1.5}, "view_share=1.5: needs at most 1"),
        ("spidercast", {"dissemination": "gossip"}, "dissemination='gossip': choose one of flood, tree"),
        (
            "similarity",
            {"similar": 0, "random": 0},
            "similar=0, random=0: nobody would look for neighbours; give one of them",
        ),
    ],
)
def test_parameters_that_make_no_sense_are_answered_with_one_line(
    system: str, parameters: dict[str, Any], line: str
) -> None:
    with pytest.raises(UsageError) as error:
        simulate(system, workload_of(40, 10, 2, 3), **parameters)
    assert str(error.value) == line


@pytest.mark.parametrize("name", ["small margin", "partial view", "similarity (4, 2)"])
def test_the_number_of_threads_changes_neither_links_nor_messages(name: str) -> None:
    case = CASES[name]
    workload = workload_of(**case.workload)
    one, three = (
        simulate(
            case.system,
            workload,
            threads=threads,
            schedule=mass_failure(workload.node_count, share=0.2, round=8),
            rounds=20,
            **case.parameters,
        )
        for threads in (1, 3)
    )
    assert one.links.equals(three.links)
    assert one.tables["messages"].equals(three.tables["messages"])
    assert sum(one.tables["messages"]["count"].to_pylist()) > 0


def test_without_a_change_the_overlay_comes_to_rest() -> None:
    """Once all is covered and nobody can do with less, no link comes or goes (§2.3)."""
    workload = workload_of(80, 30, 3, 6)
    engine = Rounds("spidercast", workload, make_config("spidercast", {}), schedule=everyone(80))
    for _ in range(60):
        engine.step()
    before = {key: state.neighbours for key, state in states(engine).items()}
    for _ in range(10):
        engine.step()
    assert {key: state.neighbours for key, state in states(engine).items()} == before


def test_a_bound_on_connections_is_kept_whatever_a_node_subscribes_to() -> None:
    """Ours: with eight topics and three neighbours each the paper would allow 29."""
    workload = workload_of(120, 30, 8, 8)
    crash = mass_failure(120, share=0.3, round=10)
    free, bound = (
        Rounds("spidercast", workload, make_config("spidercast", given), seed=3, schedule=crash)
        for given in ({}, {"most_links": 9, "margin": 2})
    )
    for _ in range(25):
        free.step()
        bound.step()
        links = bound.network.rows.links.reshape(120, -1)
        assert ((links != NOBODY).sum(1) <= 9).all()
        assert bound.network.neighbours().sizes().max() <= 9
    assert free.network.neighbours().sizes().max() > 9


@pytest.mark.parametrize("given", [{"margin": 9}, {"random_coverage": 1}, {"adaptive": True}])
def test_a_bound_that_cannot_be_kept_is_said_in_a_sentence(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="most_links=8: "):
        make_config("spidercast", {"most_links": 8} | given)
