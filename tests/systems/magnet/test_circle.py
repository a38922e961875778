"""Chosen ids: whatever comes and goes, the nodes stand in a circle in the order of their ids, as in a plain list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grapevine.blocks.views import NOBODY
from grapevine.systems.magnet.circle import SPACING, Circle, close, gap_after, insert_after, insert_at, remove
from tests.naive import WORD
from tests.naive_magnet import NaiveCircle, clockwise

SIZE = 24
ids = st.integers(0, 9) | st.integers(WORD - 5, WORD - 1) | st.integers(0, WORD - 1)  # crowded, at the seam, anywhere
steps = st.one_of(
    st.tuples(st.just("after"), st.integers(0, SIZE)),
    st.tuples(st.just("at"), ids),
    st.tuples(st.just("remove"), st.integers(0, SIZE)),
)
Step = tuple[str, int]


def empty(size: int) -> Circle:
    return Circle(np.zeros(size, np.uint64), np.full(size, NOBODY, np.int32), np.full(size, NOBODY, np.int32))


def around(start: int, circle: Circle) -> list[int]:
    """The nodes from one on, clockwise, at most once each."""
    found = [start]
    while circle.after[found[-1]] not in found:
        found.append(int(circle.after[found[-1]]))
    return found


def place(circle: Circle, plain: NaiveCircle, nodes: Sequence[int], at: Sequence[int]) -> None:
    """Nodes at these distinct ids."""
    for node, id in zip(nodes, at, strict=True):
        insert_at(np.uint64(id), node, plain.order[0] if plain.order else NOBODY, circle)
        plain.insert_at(id, node)


def assert_same(circle: Circle, plain: NaiveCircle) -> None:
    """One cycle over exactly the plain list's nodes, in its order; ids ascend strictly, with one wrap."""
    members = [node for node in range(len(circle.after)) if circle.after[node] != NOBODY]
    assert members == [node for node in range(len(circle.before)) if circle.before[node] != NOBODY]
    assert members == sorted(plain.order)
    for node in members:
        assert circle.before[circle.after[node]] == circle.after[circle.before[node]] == node
    if members:
        assert around(plain.order[0], circle) == plain.order
        at = [int(circle.ids[node]) for node in plain.order]
        assert len(set(at)) == len(at)
        assert sum(clockwise(a, b) for a, b in zip(at, at[1:] + at[:1], strict=True)) == (WORD if len(at) > 1 else 0)


def assert_made_room(node: int, before: NaiveCircle, now: dict[int, int]) -> None:
    """Only the nodes behind moved, no more than needed, evenly and with SPACING between them; the node did not."""
    assert now[node] == before.ids[node]
    spacing, behind = int(SPACING), before.behind(node)
    stretch = 1 + max((i + 1 for i, q in enumerate(behind) if now[q] != before.ids[q]), default=0)
    gaps = [clockwise(now[a], now[b]) for a, b in zip([node, *behind], [*behind, node], strict=True)][:stretch]
    assert min(gaps) >= spacing
    assert len(set(gaps[:-1])) <= 1 and 0 <= gaps[-1] - gaps[0] <= stretch
    tries = [2**i for i in range(64) if 2**i <= stretch // 2]
    for shorter in tries:
        assert clockwise(before.ids[node], before.ids[behind[shorter - 1]]) // shorter < spacing


def carry_out(step: Step, newcomer: int, circle: Circle, plain: NaiveCircle) -> None:
    """One step in the circle and in the plain list, and what it promises about ids."""
    kind, number = step
    old, now = NaiveCircle(list(plain.order), dict(plain.ids)), circle.ids
    if kind == "remove":
        node = plain.order[number % len(plain.order)]
        remove(node, circle)
        plain.remove(node)
        assert circle.after[node] == circle.before[node] == NOBODY
    elif kind == "at" or not plain.order:
        insert_at(
            np.uint64(number), newcomer, plain.order[number % len(plain.order)] if plain.order else NOBODY, circle
        )
        plain.insert_at(number, newcomer)
        if number not in old.ids.values():
            assert now[newcomer] == number
            assert {q: int(now[q]) for q in old.order} == old.ids
    else:
        node = plain.order[number % len(plain.order)]
        insert_after(node, newcomer, circle)
        plain.insert_after(node, newcomer)
        assert circle.after[node] == newcomer
        if old.gap(node) >= 2:
            assert now[newcomer] == plain.ids[newcomer]
            assert {q: int(now[q]) for q in old.order} == old.ids
    plain.ids = {q: int(now[q]) for q in plain.order}  # who made room has another id


@given(st.lists(steps, max_size=60))
@example([("at", 5), ("at", 5), ("at", 6), ("at", 5), ("after", 0), ("after", 1)])
@example([("at", WORD - 1), ("at", 0), ("after", 0), ("at", 1), ("after", 0), ("after", 2)])
def test_whatever_comes_and_goes_it_is_a_circle_in_the_order_of_ids(todo: list[Step]) -> None:
    circle, plain = empty(SIZE), NaiveCircle()
    for step in todo:
        free = [node for node in range(SIZE) if node not in plain.order]
        if free and (plain.order or step[0] != "remove"):
            carry_out(step, free[0], circle, plain)
            assert_same(circle, plain)


@given(st.sets(ids | st.integers(0, 63).map(lambda bit: 1 << bit), min_size=1, max_size=12), st.integers(0, 11))
@example({0, 1, 2, 3, 2**60, 2**61, 2**61 + 1, 2**62, 2**62 + 1, 2**63}, 0)  # the first four have room enough
@example({0, 1, 2**60, 2**61, 2**61 + 1, 2**62, 2**62 + 1, 2**63}, 0)  # the first two
def test_who_runs_out_of_room_moves_only_as_many_as_needed(at: set[int], number: int) -> None:
    """The module's docstring: the shortest stretch, of twice as many nodes at every try, that gives room enough."""
    circle, plain, size = empty(80), NaiveCircle(), len(at)
    place(circle, plain, range(size), sorted(at))
    node = number % size
    for newcomer in range(size, 80):
        old, full = NaiveCircle(list(plain.order), dict(plain.ids)), plain.gap(node) < 2
        carry_out(("after", plain.order.index(node)), newcomer, circle, plain)
        if full:
            moved = {q: plain.ids[q] for q in old.order}
            assert_made_room(node, old, moved)
            assert (
                plain.ids[newcomer]
                == (plain.ids[node] + clockwise(plain.ids[node], moved[old.behind(node)[0]]) // 2) % WORD
            )
            return
    raise AssertionError("80 newcomers found room")


@pytest.mark.parametrize("others", [[3], [1, 2, 3, 4, 5], [7, 2**40, 2**62, 2**63, WORD - 1]])
@pytest.mark.parametrize("newcomers", [200, 2_000])
def test_room_behind_a_popular_node_never_runs_out(newcomers: int, others: list[int]) -> None:
    """Without moving apart, 63 newcomers use up the widest gap; the order of all who were there stays."""
    size = len(others)
    circle, plain = empty(size + newcomers), NaiveCircle()
    place(circle, plain, range(size), others)
    for newcomer in range(size, size + newcomers):
        insert_after(0, newcomer, circle)
        plain.order.insert(plain.order.index(0) + 1, newcomer)
        assert circle.after[0] == newcomer
        if newcomer % 97 == 0:
            assert_same(circle, plain)
    assert_same(circle, plain)
    assert circle.ids[0] == others[0]


def test_a_newcomer_behind_the_only_node_is_opposite_to_it() -> None:
    circle = empty(2)
    insert_at(np.uint64(WORD - 3), 1, NOBODY, circle)
    assert circle.after[1] == circle.before[1] == 1
    insert_after(1, 0, circle)
    assert abs(clockwise(WORD - 3, int(circle.ids[0])) - 2**63) <= 1
    remove(1, circle)
    assert circle.after.tolist() == circle.before.tolist() == [0, NOBODY]


def test_who_is_not_in_the_circle_cannot_leave_it() -> None:
    circle, plain = empty(4), NaiveCircle()
    place(circle, plain, [0, 2], [10, 20])
    remove(1, circle)
    assert_same(circle, plain)


@given(st.sets(ids, min_size=1, max_size=9))
def test_nodes_that_have_their_ids_close_a_circle_at_once(at: set[int]) -> None:
    order = np.arange(len(at), dtype=np.int32)[::-1].copy()
    circle = empty(len(at) + 1)
    circle.ids[order] = np.array(sorted(at), np.uint64)
    close(order, circle)
    assert_same(circle, NaiveCircle(order.tolist(), dict(zip(order.tolist(), sorted(at), strict=True))))
    for node in order.tolist():
        nearest = min((clockwise(int(circle.ids[node]), other) for other in at - {int(circle.ids[node])}), default=None)
        assert gap_after(node, circle) == (WORD - 1 if nearest is None else nearest)
