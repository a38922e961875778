"""Runs in virtual time: who is there when, what decides a run, and what else can be asked of it."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest

from grapevine import Workload, simulate
from grapevine.model.errors import UsageError
from grapevine.model.workload import Latency
from grapevine.sim.churn import Change, Schedule, mass_failure
from grapevine.sim.clock import ClockConfig
from grapevine.sim.peers import choose_publishers
from grapevine.synthetic import generate
from grapevine.systems.rappel.bloom import false_positive_rate
from grapevine.systems.rappel.peer import RappelPeer
from grapevine.systems.scribe.peer import ScribePeer
from tests import naive
from tests.peer_world import (
    BOTH,
    COMING_AND_GOING,
    EVERY,
    FAST,
    ROUGH,
    calm,
    clock_of,
    crossing,
    nodes,
    rough,
    rows,
    watch,
    workload_of,
)


@EVERY
def test_the_time_that_a_peer_was_there_is_counted_from_the_measurement_on(system: str, made: Any) -> None:
    done, run = made(system)
    begin, end = run.clock.measure_from_s, run.clock.end_s
    spent = {
        node: sum(max(0.0, min(last, end) - max(first, begin)) for first, last in stays)
        for node, stays in run.diary.stays().items()
        if node < run.workload.node_count
    }
    told = {row["node"]: row["online_s"] for row in rows(done, "peers")}
    assert told == pytest.approx({node: seconds for node, seconds in spent.items() if seconds > 0})
    assert {row["node"] for row in rows(done, "peers") if row["online"]} == {
        node for node in run.diary.online(end) if node < run.workload.node_count
    }


@BOTH
def test_nodes_come_and_go_at_the_seconds_of_the_schedule(system: str) -> None:
    _, run = rough(system)
    stays = run.diary.stays()
    steady = run.observers | {0, 1, 2, 3, 4}
    assert len(run.observers) == 3
    for node in steady:
        ((first, last),) = stays[node]  # publishers and observers never leave (Rappel §6.2.3)
        assert 65 <= first <= 95 and last == math.inf
    assert all(stays[publisher] == [(65.0, math.inf)] for publisher in (0, 1, 2, 3, 4))
    expected = {6: [310.0, 500.0, 600.0], 7: [310.0], 11: [420.0, 500.0], 10: [840.0]}
    expected |= {23: [350.0, 600.0], 21: [350.0, 600.0], 22: [350.0]}
    assert run.observers & {5, 8} and not run.observers & set(expected)
    for node, times in expected.items():
        told = [at for stay in stays[node] for at in stay if at != math.inf]
        assert told[0 if node >= 20 else 1 :] == times
    assert sum(at == 350.0 for at, _, _ in run.diary.started) == 6 - len(run.observers & set(range(20, 26)))


@BOTH
def test_the_first_nodes_start_one_after_the_other_when_servers_have_settled(system: str) -> None:
    _, run = calm(system)
    others = sorted(at for at, node, _ in run.diary.started if 5 <= node < run.workload.node_count)
    assert all(65 <= at <= 95 for at in others)
    assert len(set(others)) == len(others) == 21
    assert np.mean(others) == pytest.approx(80, abs=6)
    assert all(at == 0 for at, node, _ in run.diary.started if node >= run.workload.node_count)


def test_who_crashes_before_its_start_does_not_start() -> None:
    early = Schedule(np.arange(26, dtype=np.int32), {70: Change(crashes=np.arange(5, 26, dtype=np.int32))})
    _, run = watch("scribe", crossing(), clock_of(hours=0.05, start_s=60), schedule=early)
    started = {node: at for at, node, _ in run.diary.started if node >= 5}
    assert started and all(at <= 70 for at in started.values())
    assert len(started) < 21 and set(run.diary.online(180)) == {0, 1, 2, 3, 4}


def test_who_leaves_in_good_order_says_goodbye_and_who_crashes_does_not() -> None:
    _, run = rough("scribe")
    last = {node: max(at for at, sender, *_ in run.diary.sent if sender == node) for node in (7, 10)}
    said = {
        node: {type(message).__name__ for at, sender, _, message, _ in run.diary.sent if (at, sender) == (when, node)}
        for node, when in last.items()
    }
    assert last[10] == 840 and said[10] == {"Leave"}
    assert last[7] < 310 and "Leave" not in said[7]


@BOTH
def test_who_comes_back_remembers_its_last_session(system: str) -> None:
    _, run = rough(system)
    sessions = {node: [peer for _, who, peer in run.diary.started if who == node] for node in (6, 11)}
    for first, second in sessions.values():
        if isinstance(first, RappelPeer) and isinstance(second, RappelPeer):
            assert (first.session, second.session) == (1, 2)
            assert second.node.before.friends == tuple(first.friendship.friends)  # stale by then (§5.3)
        else:
            assert isinstance(first, ScribePeer) and isinstance(second, ScribePeer)
            assert second._windows is first._windows
    got = Counter((node, event.topic, event.sequence) for _, node, event in run.diary.delivered)
    assert set(got.values()) == {1}  # nothing comes twice, not even to somebody who was away


@BOTH
def test_the_seed_decides_everything(system: str) -> None:
    first, again, other = (
        simulate(system, crossing(), clock=clock_of(**ROUGH), schedule=COMING_AND_GOING, seed=seed, **FAST[system])
        for seed in (1, 1, 2)
    )
    watched, _ = rough(system)
    for name, table in first.tables.items():
        assert table.equals(again.tables[name]), name
        assert table.equals(watched.tables[name]), name  # who watches changes nothing
    for name in ("events", "deliveries", "peers", "messages"):
        assert not first.tables[name].equals(other.tables[name]), name


def test_a_topic_publishes_once_in_every_period_until_the_quiet_at_the_end() -> None:
    _, run = watch("scribe", crossing(), clock_of(publish_every_s=50, quiet_s=130))
    for topic in range(5):
        times = [at for at, which in run.diary.published if which == topic]
        assert 200 <= times[0] < 250
        assert np.diff(times) == pytest.approx(50)
        assert 720 < times[-1] <= 770
    assert len({at for at, _ in run.diary.published[:5]}) == 5  # each at a moment of its own
    assert [len(m.payload) for _, _, _, m in run.diary.received[:1]] == [1_024]


@BOTH
def test_no_events_are_published_when_none_are_wanted(system: str) -> None:
    done = simulate(system, crossing(), clock=clock_of(hours=0.1, publish_every_s=0), **FAST[system])
    assert rows(done, "events") == rows(done, "deliveries") == []
    assert {row["hit_ratio"] for row in rows(done, "rounds")} == {None}
    assert done.summary["hit_ratio"] is done.summary["delay_ms"] is None
    assert len(rows(done, "places")) > 0


@BOTH
def test_events_may_be_published_as_soon_as_publishers_are_there(system: str) -> None:
    settings = clock_of(hours=0.05, warm_up_s=0, publish_from_s=0, publish_every_s=20)
    done = simulate(system, crossing(), clock=settings, **FAST[system])
    assert len(rows(done, "events")) == 5 * 6
    assert rows(done, "events")[0]["subscribers"] == 0


@BOTH
def test_a_measurement_that_begins_later_counts_less(system: str) -> None:
    whole, _ = calm(system)
    late = simulate(system, crossing(), clock=clock_of(measure_from_s=600), **FAST[system])
    assert late.tables["events"].equals(whole.tables["events"])
    assert late.tables["messages"].equals(whole.tables["messages"])
    for row, before in zip(rows(late, "peers"), rows(whole, "peers"), strict=True):
        assert row["online_s"] == pytest.approx(300)
        assert row["messages_out"] < before["messages_out"]
        assert row["events_in"] <= before["events_in"]
    assert late.nodes["wanted"].to_numpy().sum() < whole.nodes["wanted"].to_numpy().sum()


def test_a_subscriber_counts_once_it_has_been_there_for_the_grace_time() -> None:
    """Node 2 comes at 300 s; the topic publishes every 10 s."""
    late = Schedule(nodes(0, 1), {300: Change(joins=nodes(2))})
    pair = workload_of({1: {0}, 2: {0}}, nodes=3, publishers=[0])
    for grace in (0, 45):
        settings = clock_of(hours=0.1, grace_s=grace, publish_every_s=10, quiet_s=5)
        done, run = watch("scribe", pair, settings, schedule=late)
        told = {at: row["subscribers"] for (at, _), row in zip(run.diary.published, rows(done, "events"), strict=True)}
        assert told == {at: 2 if at >= 300 + grace else 1 for at in told}
        assert set(told.values()) == {1, 2}


def test_publishers_are_those_of_the_trace_or_else_a_subscriber() -> None:
    unknown = Workload.from_pairs([3, 4, 5], [1, 1, 2], node_count=6, topic_count=4, publishers=[5, -1, -1, -1])
    chosen = choose_publishers(unknown, 1)
    assert (chosen[0], chosen[2], chosen[3]) == (5, 5, 0)  # nobody wants the last
    assert {choose_publishers(unknown, seed)[1] for seed in range(20)} == {3, 4}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"observers": 27}, "observers=27: there are only 24 subscribers"),
        ({"latency": "recorded"}, "latency=recorded: no recorded latencies"),
        ({"loss": 1.0}, "loss=1.0: needs at most 0.99"),
        ({"duplication": -0.1}, "duplication=-0.1: needs at least 0"),
        ({"hours": 0}, "hours=0: needs at least 0.01"),
        ({"publish_from_s": 64}, "publish_from_s=64: publishers start after warm_up_s=65"),
        ({"latency": "guessed"}, "latency='guessed': choose one of as-links, recorded, coordinates, constant"),
    ],
)
def test_impossible_clocks_are_one_sentence(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        simulate("scribe", crossing(), clock=clock_of(**settings))
    assert said in str(caught.value)


def test_recorded_latencies_are_the_delays_of_messages() -> None:
    """One hop: half the round trip between the sites of publisher and subscriber."""
    matrix = np.array([[[0, 80], [80, 0]]], np.float32)
    pair = workload_of({1: {0}}, nodes=2, publishers=[0])
    done = simulate("scribe", pair, clock=clock_of(latency="recorded", hours=0.1), latency=Latency(matrix))
    assert rows(done, "deliveries")
    for row in rows(done, "deliveries"):
        assert row["delay_ms"] == pytest.approx(40.0) == row["direct_ms"]


@BOTH
def test_messages_of_constant_latency_take_half_the_round_trip(system: str) -> None:
    done = simulate(system, crossing(), clock=clock_of(latency="constant", constant_rtt_ms=60), **FAST[system])
    for row in rows(done, "deliveries"):
        assert row["delay_ms"] == pytest.approx(30 * row["hops"], rel=1e-5)


def test_signed_updates_reach_everybody_as_unsigned_ones_do() -> None:
    """§4.1. Signatures decide nothing while all is well: both runs are the same."""
    feed = generate("rappel-feed", nodes=20)
    plain, signed = (
        watch("rappel", feed, clock_of(hours=0.12, grace_s=100), signed=signed, **FAST["rappel"])
        for signed in (False, True)
    )
    assert signed[0].summary["hit_ratio"] == 1.0
    assert signed[0].tables["deliveries"].equals(plain[0].tables["deliveries"])
    assert {len(m.signature) for _, _, _, m in signed[1].diary.received} == {64}
    assert {len(m.signature) for _, _, _, m in plain[1].diary.received} == {0}


def test_a_tenth_of_the_messages_is_lost_and_everybody_gets_everything() -> None:
    """§4.1: gaps in the sequence numbers are pulled."""
    feed = generate("rappel-feed", nodes=20)
    settings = clock_of(hours=0.4, loss=0.1, quiet_s=300, grace_s=150, publish_every_s=30)
    done = simulate("rappel", feed, clock=settings, **FAST["rappel"])
    assert done.summary["hit_ratio"] == 1.0
    assert sum(row["pulled"] for row in rows(done, "deliveries")) > 10
    without = simulate("rappel", feed, clock=settings, recover_gaps=False, **FAST["rappel"])
    assert without.summary["hit_ratio"] is not None and without.summary["hit_ratio"] < 1.0


@pytest.mark.parametrize("friends", [1, 2, 3])
def test_best_friends_cover_what_a_greedy_choice_with_full_knowledge_covers(friends: int) -> None:
    """Rappel Fig. 1: of subscribers with at least five feeds, how many are covered wholly?"""
    workload = generate("vitis-random", nodes=60, topics=14, subscriptions_per_node=6, seed=3)
    interests = [set(workload.topics_of(node).tolist()) for node in range(60)]
    able = [node for node in range(60) if len(interests[node]) >= 5]
    whole = [
        naive.covered_by_friends(interests, node, friends, partial(naive.draw, 1, 0, node))[-1] == len(interests[node])
        for node in able
    ]
    settings = ClockConfig(latency="constant", hours=0.01, publish_every_s=0)
    done = simulate("rappel", workload, clock=settings, best_friends=friends)
    assert done.summary["best_friends_cover"] == pytest.approx(sum(whole) / len(able))
    assert sum(whole) > 0 or friends == 1


def test_best_friends_of_nobody_who_has_enough_feeds_are_unknown() -> None:
    settings = ClockConfig(latency="constant", hours=0.01, publish_every_s=0)
    done = simulate("rappel", crossing(), clock=settings, seed=5, best_friends=6, filter_probes=200)
    assert done.summary["best_friends_cover"] is None
    for feeds in (50, 100, 200):
        expected = false_positive_rate(feeds, 200, name="feed 5")
        assert done.summary[f"false_positives_{feeds}"] == expected
    silent, _ = calm("rappel")
    assert not {"best_friends_cover", "false_positives_50"} & silent.summary.keys()


@BOTH
def test_a_mass_failure_is_seen_in_the_row_after_it(system: str) -> None:
    crash = mass_failure(26, share=0.5, round=400)
    done = simulate(system, crossing(), clock=clock_of(), schedule=crash, **FAST[system])
    gone = 13 - len({0, 1, 2, 3, 4} & set(crash.changes[400].crashes.tolist()))
    assert [(row["online"], row["left"]) for row in rows(done, "rounds")] == (
        [(26, 0), (26, 0), (26 - gone, gone)] + [(26 - gone, 0)] * 3
    )
