"""Pastry (Rowstron & Druschel 2001): tables by their definition, routes that end where they must, in few hops."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from grapevine.model.errors import UsageError
from grapevine.model.ids import RING_SIZE, distance
from grapevine.systems.scribe.pastry import Delays, Pastry

Matrix = NDArray[np.float64]


def by(matrix: Matrix) -> Delays:
    return lambda node, others: matrix[node, others]


def everyone(ids: Sequence[int], matrix: Matrix, **settings: int) -> Pastry:
    """Pastry with all nodes online."""
    pastry = Pastry(ids, by(matrix), **settings)
    for node in range(len(ids)):
        pastry.join(node)
    return pastry


def delays(count: int, seed: int, *, sites: int = 1_000) -> Matrix:
    """Random ones; where there are few sites, many are the same."""
    random = np.random.default_rng(seed)
    at = random.integers(0, sites, count)
    return random.integers(1, 100, (sites, sites))[at][:, at].astype(np.float64)


def digits(id: int, bits: int) -> list[int]:
    return [id >> shift & (1 << bits) - 1 for shift in range(64 - bits, -1, -bits)]


def shared(a: int, b: int, bits: int) -> int:
    pairs = zip(digits(a, bits), digits(b, bits), strict=True)
    return next((i for i, (x, y) in enumerate(pairs) if x != y), 64 // bits)


def naive_entry(
    node: int, row: int, digit: int, online: Collection[int], ids: Sequence[int], matrix: Matrix, bits: int
) -> int | None:
    """By definition: of all that fit, the nearest in the network."""
    fit = [
        q for q in online if q != node and shared(ids[q], ids[node], bits) == row and digits(ids[q], bits)[row] == digit
    ]
    return min(fit, key=lambda q: (matrix[node, q], ids[q] ^ ids[node]), default=None)


def naive_leaves(node: int, online: Collection[int], ids: Sequence[int], half: int) -> tuple[list[int], list[int]]:
    others = [q for q in online if q != node]
    below = sorted(others, key=lambda q: (ids[node] - ids[q]) % RING_SIZE)
    above = sorted(others, key=lambda q: (ids[q] - ids[node]) % RING_SIZE)
    return below[:half], above[:half]


def owner(key: int, online: Collection[int], ids: Sequence[int]) -> int:
    return min(online, key=lambda q: (distance(ids[q], key), ids[q]))


def route(pastry: Pastry, start: int, key: int, avoid: dict[int, set[int]] | None = None) -> list[int]:
    path = [start]
    while (hop := pastry.next_hop(path[-1], key, (avoid or {}).get(path[-1], set()))) is not None:
        path.append(hop)
        assert len(path) < 100, "a route without end"
    return path


def spread() -> st.SearchStrategy[list[int]]:
    """Ids anywhere, and ids that share long prefixes, also across zero."""
    anywhere = st.integers(0, RING_SIZE - 1)
    crowd = st.builds(
        lambda base, off: (base + off) % RING_SIZE, st.sampled_from([0, 0xABCD << 48, 7]), st.integers(-40, 40)
    )
    return st.lists(anywhere | crowd, min_size=1, max_size=60, unique=True)


bits_of_a_digit = st.sampled_from([1, 2, 4, 8])


@given(spread(), bits_of_a_digit, st.sampled_from([2, 4, 16]), st.sampled_from([3, 1_000]), st.data())
def test_tables_hold_what_their_definition_says(
    ids: list[int], bits: int, leaves: int, sites: int, data: st.DataObject
) -> None:
    """§2.2; after joins and leaves too, and with nodes that are avoided as if they were not there."""
    matrix = delays(len(ids), 1, sites=sites)
    pastry = everyone(ids, matrix, digit_bits=bits, leaf_size=leaves)
    node, online = data.draw(st.integers(0, len(ids) - 1)), set(range(len(ids)))
    for _ in range(3):
        avoid = data.draw(st.sets(st.integers(0, len(ids) - 1), max_size=5))
        there = online - avoid
        assert pastry.leaf_set(node, avoid) == naive_leaves(node, there, ids, leaves // 2)
        wanted = {
            (shared(ids[q], ids[node], bits), digits(ids[q], bits)[shared(ids[q], ids[node], bits)])
            for q in range(len(ids))
            if q != node
        }
        wanted |= {(0, 0), (3, 1), (pastry.rows - 1, digits(ids[node], bits)[-1])}
        for row, digit in wanted:
            assert pastry.entry(node, row, digit, avoid) == naive_entry(node, row, digit, there, ids, matrix, bits)
        for q in data.draw(st.sets(st.integers(0, len(ids) - 1), max_size=9)) - {node}:
            (pastry.leave if q in online else pastry.join)(q)
            online ^= {q}


@given(spread(), bits_of_a_digit, st.sampled_from([2, 4, 16]), st.data())
def test_routes_end_at_the_node_nearest_to_the_key_and_every_hop_comes_nearer(
    ids: list[int], bits: int, leaves: int, data: st.DataObject
) -> None:
    """§2.3: each hop shares more digits with the key, or as many and is numerically nearer, or is a leaf and nearer."""
    pastry = everyone(ids, delays(len(ids), 2), digit_bits=bits, leaf_size=leaves)
    down = data.draw(st.sets(st.integers(0, len(ids) - 1), max_size=len(ids) - 1))
    for q in down:
        pastry.leave(q)
    online = sorted(set(range(len(ids))) - down)
    key = data.draw(st.sampled_from(ids) | st.integers(0, RING_SIZE - 1))
    for start in online:
        path = route(pastry, start, key)
        assert path[-1] == owner(key, online, ids)
        for p, q in pairwise(path):
            more = shared(ids[q], key, bits) - shared(ids[p], key, bits)
            nearer = (distance(ids[q], key), ids[q]) < (distance(ids[p], key), ids[p])
            assert more > 0 or nearer
            assert more >= 0 or any(q in side for side in pastry.leaf_set(p))


@given(spread(), st.data())
def test_routes_to_a_node_end_there_although_everybody_avoids_some(ids: list[int], data: st.DataObject) -> None:
    """Others' suspects may differ: a route never goes in circles, and reaches a target that nobody suspects."""
    pastry = everyone(ids, delays(len(ids), 3))
    numbers = st.integers(0, len(ids) - 1)
    target, start = data.draw(numbers), data.draw(numbers)
    avoid = {p: data.draw(st.sets(numbers, max_size=4)) - {p, target} for p in range(len(ids))}
    assert route(pastry, start, ids[target], avoid)[-1] == target


@given(spread(), st.data())
def test_routes_end_although_some_suspect_the_target(ids: list[int], data: st.DataObject) -> None:
    pastry = everyone(ids, delays(len(ids), 3))
    numbers = st.integers(0, len(ids) - 1)
    target, start = data.draw(numbers), data.draw(numbers)
    avoid = {p: data.draw(st.sets(numbers, max_size=4)) | {target} for p in range(len(ids)) if p % 2}
    path = route(pastry, start, ids[target], avoid)
    assert len(set(path)) == len(path)


def test_the_rare_case_goes_to_a_nearer_node_with_as_many_digits() -> None:
    """§2.3: nobody has the key's next digit, and the key lies beyond the leaves."""
    top = 1 << 60
    ids = [top + n for n in (1, 2, 3, 4, 5)] + [9 * top, 10 * top, 11 * top, 12 * top]
    pastry = everyone(ids, delays(len(ids), 1), leaf_size=2)
    key = 6 * top
    assert pastry.entry(0, 0, 6) is None
    assert pastry.next_hop(0, key) == 5  # the nearest to the key in row 0, though no leaf of node 0
    assert route(pastry, 0, key)[-1] == owner(key, range(len(ids)), ids) == 5


def test_routes_take_about_log_16_of_the_nodes_hops() -> None:
    """§2.3: ⌈log_16 N⌉ at most, nearly always; the leaf set saves some. log_16 2,000 is 2.74."""
    random = np.random.default_rng(1)
    ids = random.integers(0, 2**64, 2_000, np.uint64).tolist()
    pastry = everyone(ids, delays(2_000, 1))
    pairs = random.integers(0, 2_000, (2_000, 2)).tolist()
    hops = [len(route(pastry, start, ids[target])) - 1 for start, target in pairs]
    assert np.mean(hops) == pytest.approx(np.log(2_000) / np.log(16), abs=0.4)
    assert np.mean(np.array(hops) <= 4) > 0.999


def test_a_newcomer_who_is_nearer_takes_the_cell_at_once() -> None:
    ids = [0, 5 << 60, 5 << 60 | 1]
    matrix = np.array([[0.0, 9, 1], [9, 0, 1], [1, 1, 0]])
    pastry = Pastry(ids, by(matrix))
    pastry.join(0)
    pastry.join(1)
    assert pastry.entry(0, 0, 5) == 1
    before = pastry.changes
    pastry.join(2)
    assert pastry.changes > before
    assert pastry.entry(0, 0, 5) == 2
    pastry.leave(2)
    assert pastry.entry(0, 0, 5) == 1


def test_joining_and_leaving_twice_changes_nothing() -> None:
    pastry = everyone([3, 9], delays(2, 1))
    before = pastry.changes
    pastry.join(1)
    assert pastry.changes == before
    pastry.leave(1)
    pastry.leave(1)
    assert pastry.leaf_set(0) == ([], [])
    assert pastry.next_hop(0, 9) is None


@pytest.mark.parametrize(
    ("ids", "settings", "message"),
    [
        ([1, 2], {"digit_bits": 5}, "digit_bits=5"),
        ([1, 2], {"leaf_size": 3}, "leaf_size=3"),
        ([1, 2], {"leaf_size": 0}, "leaf_size=0"),
        ([1, 1], {}, "same id"),
    ],
)
def test_what_makes_no_table_is_refused(ids: list[int], settings: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Pastry(ids, by(delays(2, 1)), **settings)
