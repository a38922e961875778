"""Links that both ends accept. `tests/systems/test_against_naive.py` compares whole runs with plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from grapevine.blocks import acceptance
from grapevine.blocks.acceptance import Tables
from grapevine.blocks.views import NOBODY
from grapevine.model.workload import Workload
from grapevine.sim.churn import Change, Schedule
from grapevine.sim.rounds import Rounds
from grapevine.sim.simulate import make_config
from grapevine.sim.snapshot import links_of

SLOTS = 4


def table(rows: list[list[int]]) -> NDArray[np.int32]:
    return np.array([(row + [NOBODY] * SLOTS)[:SLOTS] for row in rows], np.int32).ravel()


def answer(before: list[list[int]], wanted: list[list[int]], room: int, *, now: int = 1) -> list[list[int]]:
    """Everybody's links after a round in which these are wanted, as rows."""
    count = len(before)
    there, starts = np.ones(count, np.bool_), np.arange(count + 1, dtype=np.int64) * SLOTS
    links = table(wanted)
    acceptance.grant_others(7, now, room, Tables(there, there, starts, 0, table(before), links))
    return [[int(q) for q in row if q != NOBODY] for row in links.reshape(count, SLOTS)]


def connected(rows: list[list[int]]) -> list[set[int]]:
    near: list[set[int]] = [set() for _ in rows]
    for p, row in enumerate(rows):
        for q in row:
            near[p].add(q)
            near[q].add(p)
    return near


NODES = 9
WISHES = st.lists(st.lists(st.integers(0, NODES - 1), max_size=SLOTS, unique=True), min_size=NODES, max_size=NODES).map(
    lambda rows: [[q for q in row if q != p] for p, row in enumerate(rows)]
)


@given(st.lists(WISHES, min_size=1, max_size=5), st.integers(1, 6))
def test_nobody_ever_has_more_connections_than_the_bound(wishes: list[list[list[int]]], room: int) -> None:
    rows: list[list[int]] = [[] for _ in range(NODES)]
    for now, wanted in enumerate(wishes, start=1):
        new = answer(rows, wanted, room, now=now)
        assert max(map(len, connected(new))) <= room
        for p in range(NODES):
            assert len(new[p]) == len(set(new[p]))
            assert set(new[p]) <= set(wanted[p]) | set(rows[p])
            assert set(rows[p]) & set(wanted[p]) <= set(new[p])  # what was granted stays while it is wanted
        rows = new


@given(WISHES)
def test_with_room_for_all_everybody_gets_what_it_wants_in_a_few_rounds(wanted: list[list[int]]) -> None:
    rows: list[list[int]] = [[] for _ in range(NODES)]
    for now in range(1, 8):
        rows = answer(rows, wanted, 2 * NODES, now=now)
    assert [set(row) for row in rows] == [set(row) for row in wanted]


def test_a_link_is_given_up_only_for_one_that_is_granted() -> None:
    full = [[3], [3], [3], []]  # 3 has three connections, and no room for more
    assert answer([*full, [0]], [*full, [3]], room=3)[4] == [0]
    assert answer([*full, [0]], [*full, [3]], room=9)[4] == [3]


def test_a_swap_needs_no_room_of_its_own() -> None:
    before = [[1, 2], [], [], []]
    assert answer(before, [[1, 3], [], [], []], room=2)[0] == [1, 3]


def test_who_is_linked_to_already_can_link_back_without_room() -> None:
    assert answer([[1], []], [[1], [0]], room=1) == [[1], [0]]


def test_of_two_who_want_the_same_successor_the_nearer_gets_it_and_the_other_hears_of_it() -> None:
    ids = np.array([100, 200, 900], np.uint64)
    there, starts = np.ones(3, np.bool_), np.array([0, 2, 4, 6], np.int64)
    links = np.array([2, NOBODY, 2, NOBODY, 0, NOBODY], np.int32)
    backups = np.full((3, 4), NOBODY, np.int32)
    settled = np.array([True, True, True])
    acceptance.grant_ring(ids, Tables(there, settled, starts, 2, links.copy(), links), backups)
    assert links.tolist() == [NOBODY, NOBODY, 2, NOBODY, 0, NOBODY]
    assert backups[0].tolist() == [NOBODY, 1, NOBODY, NOBODY]
    newcomer = np.array([True, False, True])
    links = np.array([2, NOBODY, 2, NOBODY, 0, NOBODY], np.int32)
    acceptance.grant_ring(ids, Tables(there, newcomer, starts, 2, links.copy(), links), backups)
    assert links.tolist() == [2, NOBODY, NOBODY, NOBODY, 0, NOBODY]


@pytest.fixture(scope="module")
def hubs() -> Workload:
    """A few nodes share topics with everybody: all want them."""
    pairs = [(p, t) for p in range(120) for t in (range(12) if p < 6 else (p % 12, (p * 7) % 12))]
    nodes, topics = np.array(sorted(set(pairs))).T
    return Workload.from_pairs(nodes, topics, node_count=120, topic_count=12)


@pytest.mark.parametrize(
    ("system", "parameters", "bound"),
    [
        ("opt", {"table_size": 6}, 6),
        ("vitis", {"table_size": 8, "most_links": 12}, 12),
        ("rvr", {"table_size": 8, "most_links": 12}, 12),
        ("magnet", {"table_size": 8, "most_links": 12}, 12),
        ("strawman", {"table_size": 8, "most_links": 12}, 12),
    ],
)
def test_tables_hold_the_connections_that_events_use(
    system: str, parameters: dict[str, int], bound: int, hubs: Workload
) -> None:
    engine = Rounds(system, hubs, make_config(system, parameters), seed=5)
    for _ in range(40):
        engine.step()
        sizes = engine.network.neighbours().sizes()
        assert sizes.max() <= bound
    links = links_of(engine)
    near: list[set[int]] = [set() for _ in range(hubs.node_count)]
    for p, q in zip(links["source"].tolist(), links["target"].tolist(), strict=True):
        near[p].add(q)
        near[q].add(p)
    rows = engine.network.neighbours()
    assert [set(rows.row(p).tolist()) for p in range(hubs.node_count)] == near


@pytest.mark.parametrize("system", ["vitis", "magnet"])
def test_the_bound_holds_while_nodes_come_and_go_and_everybody_is_reached_afterwards(
    system: str, hubs: Workload
) -> None:
    everybody = np.random.default_rng(7).permutation(hubs.node_count).astype(np.int32)
    first, crowd, late = np.split(everybody, [60, 100])
    changes = {8: Change(joins=crowd), 16: Change(crashes=first[:20], leaves=crowd[:10]), 20: Change(joins=late)}
    config = make_config(system, {"table_size": 8, "most_links": 12})
    engine = Rounds(system, hubs, config, seed=5, schedule=Schedule(first, changes))
    for _ in range(60):
        engine.step()
        assert engine.network.neighbours().sizes().max() <= 12
    engine.settle((0, hubs.topic_count))
    events = engine.publish(np.arange(hubs.topic_count, dtype=np.int32)).events
    assert events["reached"].sum() == events["subscribers"].sum() > 0


def test_who_is_refused_looks_for_others(hubs: Workload) -> None:
    """Hubs are full at once; whoever they refuse finds company among the rest."""
    engine = Rounds("opt", hubs, make_config("opt", {"table_size": 6, "coverage": 2}), seed=5)
    for _ in range(40):
        engine.step()
    rows = engine.network.neighbours()
    members = hubs.topic_nodes
    alone = [
        (p, t)
        for t in range(hubs.topic_count)
        for p in members.row(t).tolist()
        if rows.sizes()[p] < 6 and not set(rows.row(p).tolist()) & set(members.row(t).tolist())
    ]
    assert alone == []  # nobody with room left lacks a neighbour for a topic
