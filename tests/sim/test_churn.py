"""Schedules: sessions become rounds, crowds and failures are what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.model.config import field_types
from grapevine.model.errors import UsageError
from grapevine.model.workload import Churn
from grapevine.sim.churn import ChurnConfig, Schedule, flash_crowd, from_sessions, make_schedule, mass_failure
from grapevine.synthetic import MODELS, generate_churn
from grapevine.synthetic.base import ChurnModel


def churn(*sessions: tuple[int, float, float]) -> Churn:
    node, joined, left = zip(*sessions, strict=True)
    return Churn(np.array(node, np.int32), np.array(joined, np.float64), np.array(left, np.float64))


def online_after(schedule: Schedule, rounds: int) -> set[int]:
    there = set(schedule.first.tolist())
    for now in range(1, rounds + 1):
        if change := schedule.changes.get(now):
            there -= set(change.leaves.tolist()) | set(change.crashes.tolist())
            there |= set(change.joins.tolist())
    return there


def test_sessions_become_rounds() -> None:
    trace = churn((0, 0.0, 25.0), (1, 10.0, np.inf), (0, 60.0, 70.0))
    schedule = from_sessions(trace, 2, ChurnConfig(round_s=10))
    assert schedule.first.tolist() == [0]
    assert [online_after(schedule, r) for r in (0, 1, 2, 3, 6, 7)] == [{0}, {0, 1}, {0, 1}, {1}, {0, 1}, {1}]
    assert schedule.last_round == 7
    assert schedule.changes[3].crashes.tolist() == [0]
    assert from_sessions(trace, 2, ChurnConfig(round_s=10, graceful=True)).changes[3].leaves.tolist() == [0]


def test_a_trace_smaller_than_the_workload_is_repeated() -> None:
    schedule = from_sessions(churn((0, 0.0, np.inf), (1, 10.0, np.inf)), 5, ChurnConfig(round_s=10))
    assert schedule.first.tolist() == [0, 2, 4]
    assert schedule.changes[1].joins.tolist() == [1, 3]


def test_the_beginning_of_a_trace_may_be_skipped() -> None:
    trace = churn((0, 0.0, 25.0), (1, 10.0, np.inf), (2, 40.0, 50.0))
    schedule = from_sessions(trace, 3, ChurnConfig(round_s=10, start_s=20.0))
    assert schedule.first.tolist() == [0, 1]
    assert online_after(schedule, 1) == {1}
    assert online_after(schedule, 2) == {1, 2}


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 99), st.integers(1, 60)), min_size=1, max_size=15),
    st.sampled_from([1.0, 7.0, 30.0]),
)
def test_who_is_online_agrees_with_the_sessions(raw: list[tuple[int, int, int]], round_s: float) -> None:
    busy: dict[int, int] = {}
    sessions = []
    for node, wait, length in raw:  # sessions of a node follow each other with a gap
        start = busy.get(node, 0) + wait + 1
        busy[node] = start + length
        sessions.append((node, float(start), float(start + length)))
    schedule = from_sessions(churn(*sessions), max(busy) + 1, ChurnConfig(round_s=round_s))
    origin = min(start for _, start, _ in sessions)
    for now in range(15):
        seconds = now * round_s + origin
        there = {node for node, start, end in sessions if start <= seconds < end}
        assert online_after(schedule, now) == there


def test_crowds_and_failures() -> None:
    crowd = flash_crowd(100, share=0.25, round=7)
    assert len(crowd.first) == 75
    assert online_after(crowd, 7) == set(range(100))
    failure = mass_failure(100, share=0.3, round=4)
    assert len(online_after(failure, 3)) == 100
    assert len(online_after(failure, 4)) == 70
    assert mass_failure(100, share=0.3, round=4, seed=2).changes[4].crashes.tolist() != (
        failure.changes[4].crashes.tolist()
    )


def test_who_comes_back_may_be_somebody_else() -> None:
    sessions = churn((0, 0.0, 2.0), (1, 0.0, 9.0), (0, 4.0, 9.0))
    schedule = from_sessions(sessions, 5, ChurnConfig(round_s=1, rejoin="new", graceful=True))
    assert schedule.first.tolist() == [0, 1]
    assert schedule.changes[2].leaves.tolist() == [0]
    assert schedule.changes[4].joins.tolist() == [2]  # the trace's node 0 again
    with pytest.raises(
        UsageError, match="rejoin=new: 3 sessions, each a node of its own, need as many nodes; there are 2"
    ):
        from_sessions(sessions, 2, ChurnConfig(round_s=1, rejoin="new"))
    with pytest.raises(UsageError, match="rejoin='again': choose one of same, new"):
        from_sessions(sessions, 5, ChurnConfig(round_s=1, rejoin="again"))


IN_TURN = churn(
    (0, 0.0, 50.0), (1, 0.0, np.inf), (2, 7.0, np.inf), (3, 20.0, 90.0), (4, 50.0, np.inf), (0, 300.0, 310.0)
)


def comings_and_goings(schedule: Schedule) -> dict[int, tuple[list[int], list[int]]]:
    return {now: (change.joins.tolist(), change.leaves.tolist()) for now, change in schedule.changes.items()}


def test_joins_and_leaves_in_turn_keep_their_order_and_not_their_times() -> None:
    """OMen §6. Node 0 leaves as 4 joins: leaves come first."""
    schedule = from_sessions(IN_TURN, 5, ChurnConfig(round_s=1, graceful=True, event_rounds=5, first_round=4))
    assert schedule.first.tolist() == [0, 1]
    assert comings_and_goings(schedule) == {
        4: ([2], []),
        9: ([3], []),
        14: ([], [0]),
        19: ([4], []),
        24: ([], [3]),
        29: ([0], []),
        34: ([], [0]),
    }
    assert list(from_sessions(IN_TURN, 5, ChurnConfig(round_s=1, event_rounds=5)).changes) == list(range(1, 32, 5))


def test_so_many_joins_and_leaves_may_come_at_once() -> None:
    schedule = from_sessions(IN_TURN, 5, ChurnConfig(round_s=1, graceful=True, event_rounds=2, events_at_once=3))
    assert comings_and_goings(schedule) == {1: ([2, 3], [0]), 3: ([0, 4], [3]), 5: ([], [0])}


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(1, 60) | st.just(np.inf)), min_size=1, max_size=9),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_after_every_event_in_turn_those_are_online_whom_it_left(
    raw: list[tuple[int, float]], every: int, first: int
) -> None:
    sessions = [(node, float(start), start + length) for node, (start, length) in enumerate(raw)]
    schedule = from_sessions(churn(*sessions), len(raw), ChurnConfig(round_s=1, event_rounds=every, first_round=first))
    origin = min(start for _, start, _ in sessions)
    events = [(start, True, node) for node, start, _ in sessions if start > origin]
    events += [(end, False, node) for node, _, end in sessions if end < np.inf]
    there = {node for node, start, _ in sessions if start == origin}
    assert online_after(schedule, first - 1) == there
    for i, (_, joins, node) in enumerate(sorted(events)):
        there = there | {node} if joins else there - {node}
        assert online_after(schedule, first + every * i) == online_after(schedule, first + every * (i + 1) - 1) == there
    assert len(schedule.changes) == len(events)


def test_generated_sessions_are_those_of_the_stored_table() -> None:
    made = generate_churn("spidercast-churn", nodes=200, mean_up_s=50.0, duration_s=400.0, seed=4)
    assert (np.diff(made.joined_s) >= 0).all()
    assert np.isinf(made.left_s).any() and not np.isnan(made.left_s).any()
    assert 0.7 < (made.joined_s == 0).sum() / 200 < 0.9  # the steady state: four fifths are there
    with pytest.raises(UsageError, match="spidercast makes subscriptions, not churn"):
        generate_churn("spidercast")


def test_impossible_schedules_are_refused() -> None:
    with pytest.raises(UsageError, match=r"share=1\.5: needs to lie between 0 and 1"):
        mass_failure(10, share=1.5, round=1)
    with pytest.raises(UsageError, match=r"round_s=0: needs at least 0\.001"):
        from_sessions(churn((0, 0.0, 1.0)), 1, ChurnConfig(round_s=0))
    with pytest.raises(UsageError, match="events_at_once=2, first_round=1: only count with event_rounds"):
        from_sessions(IN_TURN, 5, ChurnConfig(round_s=1, events_at_once=2))
    with pytest.raises(UsageError, match="events_at_once=1, first_round=3: only count with event_rounds"):
        from_sessions(IN_TURN, 5, ChurnConfig(round_s=1, first_round=3))
    with pytest.raises(UsageError, match="event_rounds=0: needs at least 1"):
        from_sessions(IN_TURN, 5, ChurnConfig(round_s=1, event_rounds=0))


def test_a_schedule_is_made_of_sessions_a_crash_or_a_crowd() -> None:
    sessions = churn((0, 0.0, 30.0), (1, 0.0, np.inf))
    played = make_schedule(ChurnConfig(round_s=10), 2, sessions)
    assert played is not None and played.changes[3].crashes.tolist() == [0]
    crash = make_schedule(ChurnConfig(crash="0.3@4"), 100, seed=2)
    assert crash is not None
    assert crash.changes[4].crashes.tolist() == (
        mass_failure(100, share=0.3, round=4, seed=2).changes[4].crashes.tolist()
    )
    crowd = make_schedule(ChurnConfig(crowd="0.25@7"), 100)
    assert crowd is not None and (len(crowd.first), list(crowd.changes)) == (75, [7])
    assert make_schedule(ChurnConfig(), 100) is None


def test_what_would_be_ignored_is_refused() -> None:
    sessions = churn((0, 0.0, 30.0))
    with pytest.raises(UsageError, match=r"crash=0\.3@4, crowd=0\.3@4: give one of them"):
        ChurnConfig(crash="0.3@4", crowd="0.3@4")
    with pytest.raises(UsageError, match="crash: need no churn trace, so there is nothing that round_s could say"):
        ChurnConfig(crash="0.3@4", round_s=2.0)
    with pytest.raises(UsageError, match="round_s, graceful: say how a churn trace is played; give one"):
        make_schedule(ChurnConfig(round_s=2.0, graceful=True), 9)
    with pytest.raises(UsageError, match="three schedules; give one of them"):
        make_schedule(ChurnConfig(crowd="0.3@4"), 9, sessions)
    for wrong in ("half", "0.5@soon", "0@3", "1@3", "nan@3", "0.5@0"):
        with pytest.raises(UsageError, match=f"crowd={wrong}: "):
            ChurnConfig(crowd=wrong)


def test_no_churn_model_has_a_parameter_that_says_how_sessions_are_played() -> None:
    """Both stand in the same table of an experiment."""
    playing = set(field_types(ChurnConfig)) | {"path", "format", "model"}
    for name, model in MODELS.items():
        if issubclass(model, ChurnModel):
            assert not playing & set(field_types(model)), name
