"""Eight values at once, against plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapevine.kernels import lanes
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb

words = st.lists(st.integers(0, 2**64 - 1), min_size=8, max_size=8)
small = st.lists(st.integers(-1, 6), min_size=8, max_size=8)


@njit
def within(points: Any, centre: Any, after: Any, before: Any) -> int:
    return lanes.within(points, 0, centre, after, before)


@njit
def count_common(lines: Any, mine: int, others: Any, at: int, used: int, counts: Any, tails: Any) -> None:
    lanes.count_common(lines, mine, others, at, used, counts, tails)


@njit
def add_smaller(counts: Any, words: Any, mine: int, lower: int, most: int) -> None:
    lanes.add_smaller(counts, words, 0, mine, lower, most)


@njit
def reach(counts: Any, words: Any, mine: int, lower: int, share: float) -> int:
    return lanes.reach(counts, words, 0, mine, lower, share)


@njit
def keep_fresh(nodes: Any, stamps: Any, at: int, count: int, least: int, but: int, into: Any, to: int) -> int:
    return lanes.keep_fresh(nodes, stamps, at, count, least, but, into, to)


@njit
def count_above(keys: Any, at: int, key: int) -> int:
    return lanes.count_above(keys, at, key)


@njit
def compress(mask: int, source: Any, at: int, target: Any, to: int) -> None:
    lanes.compress(mask, source, at, target, to)


@njit
def join_alike(lower: Any, upper: Any, at: int, count: int, value: int, into: Any, to: int) -> int:
    return lanes.join_alike(lower, upper, at, count, value, into, to)


@njit
def take_apart(words: Any, at: int, count: int, lower: Any, upper: Any, to: int) -> None:
    lanes.take_apart(words, at, count, lower, upper, to)


@njit
def draw_keys(state: Any, words: Any, at: int, last: int, keys: Any) -> None:
    for begin in range(at, last, 8):
        lanes.draw_keys(state, words, begin, last, keys, begin - at)


@njit
def put_in_order(keys: Any, count: int, words: Any, first: int, most: int, into: Any) -> None:
    for at in range(0, count, 8):
        lanes.put_in_order(keys, at, count, words, first, most, into)


def bits(mask: int) -> list[bool]:
    return [bool(mask >> i & 1) for i in range(8)]


@given(words, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_who_is_within_a_stretch_of_the_ring(points: list[int], centre: int, after: int, before: int) -> None:
    found = within(np.array(points, np.uint64), np.uint64(centre), np.uint64(after), np.uint64(before))
    assert bits(found) == [(p - centre) % 2**64 < after or (centre - p) % 2**64 < before for p in points]


@given(
    st.lists(words, min_size=4, max_size=4), st.lists(st.integers(0, 3), min_size=10, max_size=10), st.integers(0, 8)
)
def test_common_bits_of_a_line_and_eight_others(rows: list[list[int]], others: list[int], used: int) -> None:
    counts, tails = np.empty(8, np.int64), np.empty(16, np.uint64)
    count_common(np.array(rows, np.uint64).ravel(), 8, np.array(others, np.int32), 2, used, counts, tails)
    chosen = [rows[other] for other in others[2:]]
    assert counts.tolist() == [
        sum((a & b).bit_count() for a, b in zip(rows[1][:used], row[:used], strict=True)) for row in chosen
    ]
    assert tails.tolist() == [row[6] for row in chosen] + [row[7] for row in chosen]


pairs = st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**20 - 1)), min_size=9, max_size=9)


@given(st.lists(st.integers(0, 400), min_size=8, max_size=8), pairs, st.integers(0, 500), st.floats(0, 1))
def test_counts_are_bounded_by_the_lower_numbers_and_compared_with_the_upper_ones(
    counts: list[int], both: list[tuple[int, int]], most: int, share: float
) -> None:
    packed = [upper << 20 | lower for upper, lower in both]
    mine, others = packed[0], np.array(packed[1:], np.uint64)
    found = np.array(counts, np.int64)
    add_smaller(found, others, mine, 20, most)
    expected = [min(count + min(both[0][1], low), most) for count, (_, low) in zip(counts, both[1:], strict=True)]
    assert found.tolist() == expected
    passed = reach(found, others, mine, 20, share)
    assert bits(passed) == [c >= share * (both[0][0] + up) for c, (up, _) in zip(expected, both[1:], strict=True)]


@given(small, small, st.integers(1, 20), st.integers(-1, 6), st.integers(-1, 6))
def test_fresh_entries_are_kept_in_their_order(
    nodes: list[int], stamps: list[int], count: int, least: int, but: int
) -> None:
    count, into = min(count, 8), np.full(12, 99, np.int32)
    some = np.array(nodes[:count], np.int32), np.array(stamps[:count], np.int32)  # nothing behind them may be read
    end = keep_fresh(*some, 0, count, least, but, into, 3)
    pairs = zip(nodes[:count], stamps[:count], strict=True)
    expected = [node for node, stamp in pairs if node >= 0 and node != but and stamp >= least]
    assert into[3:end].tolist() == expected
    assert into[:3].tolist() == [99] * 3


@given(st.lists(st.integers(-9, 9), min_size=8, max_size=8), st.integers(-9, 9))
def test_how_many_keys_are_larger(keys: list[int], key: int) -> None:
    assert count_above(np.array([0, *keys], np.int64), 1, key) == sum(each > key for each in keys)


@given(st.integers(0, 255), st.sampled_from([np.int32, np.uint64]))
def test_values_that_a_mask_names_move_together(mask: int, kind: type) -> None:
    values = np.arange(10, 30).astype(kind)
    named = [10 + 4 + i for i in range(8) if mask >> i & 1]
    compress(mask, values, 4, values, 1)
    assert values[1 : 1 + len(named)].tolist() == named
    assert values[0] == 10


@given(st.lists(st.integers(0, 3), max_size=16), st.integers(0, 4), st.integers(0, 2**31 - 1), st.integers(0, 3))
def test_pairs_that_begin_with_a_value_become_words(upper: list[int], free: int, node: int, value: int) -> None:
    upper.sort(reverse=True)
    somebody = max(0, len(upper) - free)
    lower = [(node + i) % 2**31 for i in range(somebody)] + [-1] * (len(upper) - somebody)
    begin = sum(each > value for each in upper)
    into = np.full(20, 99, np.int64)
    some = np.array(lower, np.int32), np.array(upper, np.int32)  # nothing behind them may be read
    found = join_alike(*some, begin, len(upper) - begin, value, into, 3)
    expected = [value << 32 | q for q, when in zip(lower, upper, strict=True) if when == value and q >= 0]
    assert into[3 : 3 + found].tolist() == expected
    assert into[:3].tolist() == [99] * 3


@given(
    st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)), min_size=8, max_size=8), st.integers(0, 9)
)
def test_words_are_taken_apart(pairs: list[tuple[int, int]], count: int) -> None:
    words = np.array([0, *(b << 32 | a for a, b in pairs)], np.int64)
    lower, upper = np.full(10, 7, np.int32), np.full(10, 7, np.int32)
    take_apart(words, 1, count, lower, upper, 2)
    rest = [7] * (8 - min(count, 8))
    assert lower.tolist() == [7, 7, *(a for a, _ in pairs[:count]), *rest]
    assert upper.tolist() == [7, 7, *(b for _, b in pairs[:count]), *rest]


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=40, unique=True), st.data())
def test_lots_are_drawn_by_the_hash_of_rng(state: int, nodes: list[int], data: st.DataObject) -> None:
    """In descending order of the hashes, and at equal ones in the given order; as many as are wanted."""
    count, most = len(nodes), data.draw(st.integers(0, len(nodes)))
    words = np.array([5, 5, *(9 << 32 | node for node in nodes), *[5] * 8], np.int64)
    keys = np.full(count + 8, 1, np.int64)
    draw_keys(np.uint64(state), words, 2, 2 + count, keys)
    hashes = [int(absorb(np.uint64(state), np.uint64(node))) >> 33 for node in nodes]
    assert keys[:count].tolist() == [each << 32 | count - i for i, each in enumerate(hashes)]
    assert not keys[count : -(-count // 8) * 8].any()
    winners = np.full(most + 1, 99, np.int64)
    put_in_order(keys, count, words, 2, most, winners)
    order = sorted(range(count), key=lambda i: (-hashes[i], i))
    assert winners.tolist() == [9 << 32 | nodes[i] for i in order[:most]] + [99]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=30, unique=True))
def test_places_by_descending_keys(keys: list[int]) -> None:
    padded, words = np.array([*keys, *[0] * 8], np.int64), np.array([*(10 * key for key in keys), *[0] * 8], np.int64)
    into = np.zeros(len(keys), np.int64)
    put_in_order(padded, len(keys), words, 0, len(keys), into)
    assert into.tolist() == sorted((10 * key for key in keys), reverse=True)
