"""Compressed rows against plain sorted lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapevine.kernels import csr

ROWS, COLUMNS = 7, 9
pairs = st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLUMNS - 1)), unique=True)


def build(given_pairs: list[tuple[int, int]]) -> tuple[csr.Starts, csr.Columns]:
    rows, columns = (np.array([pair[side] for pair in given_pairs], np.int32) for side in (0, 1))
    return csr.from_pairs(rows, columns, ROWS, COLUMNS)


def listed(starts: csr.Starts, columns: csr.Columns) -> list[list[int]]:
    return [columns[starts[row] : starts[row + 1]].tolist() for row in range(len(starts) - 1)]


@given(pairs)
def test_rows_hold_their_columns_in_ascending_order(given_pairs: list[tuple[int, int]]) -> None:
    starts, columns = build(given_pairs)
    assert listed(starts, columns) == [sorted(c for r, c in given_pairs if r == row) for row in range(ROWS)]
    assert csr.row_numbers(starts).tolist() == sorted(row for row, _ in given_pairs)


@given(pairs)
def test_transposed_twice_is_what_it_was(given_pairs: list[tuple[int, int]]) -> None:
    starts, columns = build(given_pairs)
    other_starts, other = csr.transpose(starts, columns, COLUMNS)
    assert listed(other_starts, other) == [
        sorted(r for r, c in given_pairs if c == column) for column in range(COLUMNS)
    ]
    again_starts, again = csr.transpose(other_starts, other, ROWS)
    assert (again_starts.tolist(), again.tolist()) == (starts.tolist(), columns.tolist())


@given(pairs, st.sets(st.integers(0, COLUMNS - 1)))
def test_only_the_wanted_columns_are_kept(given_pairs: list[tuple[int, int]], kept: set[int]) -> None:
    wanted = np.isin(np.arange(COLUMNS), list(kept))
    found = listed(*csr.keep_columns(*build(given_pairs), wanted))
    assert found == [sorted(c for r, c in given_pairs if r == row and c in kept) for row in range(ROWS)]


def test_rows_that_shrink_lose_their_end_and_rows_that_grow_keep_what_was_there() -> None:
    new = np.full(5, -1, np.int32)
    old_starts, starts = np.array([0, 3, 4], np.int64), np.array([0, 2, 5], np.int64)
    csr.copy_rows(old_starts, np.array([1, 2, 3, 4], np.int32), starts, new)
    assert new.tolist() == [1, 2, 4, -1, -1]


@given(st.lists(st.integers(0, 40), unique=True), st.integers(-1, 41), st.integers(0, 5))
def test_a_number_is_found_where_it_is(numbers: list[int], number: int, before: int) -> None:
    columns = np.array([number] * before + sorted(numbers) + [number], np.int32)
    expected = before + sorted(numbers).index(number) if number in numbers else -1
    assert csr.find(columns, before, before + len(numbers), number) == expected
