"""Compressed sparse rows: row r has the entries starts[r] … starts[r + 1]-1 of `columns`, ascending in each row.

Numbers are not checked: a row or column outside its range corrupts memory. What comes from outside is checked before
(`model/workload`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.kernels.jit import njit

Starts = NDArray[np.int64]
Columns = NDArray[np.int32]

_1, _FEW = np.uint64(1), np.uint64(8)


@njit
def count_rows(rows: Columns, row_count: int) -> Starts:
    """Row starts for unsorted row numbers: the counting half of a counting sort."""
    starts = np.zeros(row_count + 1, np.int64)
    for row in rows:
        starts[row + 1] += 1
    for row in range(row_count):
        starts[row + 1] += starts[row]
    return starts


@njit
def fill_rows(rows: Columns, columns: Columns, starts: Starts) -> Columns:
    """Columns grouped by row, in the order in which they were given (a stable counting sort)."""
    cursor = starts[:-1].copy()
    out = np.empty(len(columns), np.int32)
    for i in range(len(rows)):
        out[cursor[rows[i]]] = columns[i]
        cursor[rows[i]] += 1
    return out


@njit
def row_numbers(starts: Starts) -> Columns:
    """The row number of every entry: the inverse of `count_rows`."""
    out = np.empty(starts[-1], np.int32)
    for row in range(len(starts) - 1):
        out[starts[row] : starts[row + 1]] = row
    return out


@njit
def transpose(starts: Starts, columns: Columns, column_count: int) -> tuple[Starts, Columns]:
    """The same pairs by column: a row per column with the numbers of the rows that had it, ascending."""
    by_column = count_rows(columns, column_count)
    cursor, out = by_column[:-1].copy(), np.empty(len(columns), np.int32)
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            out[cursor[columns[at]]] = row
            cursor[columns[at]] += 1
    return by_column, out


@njit
def find(columns: Columns, first: int, last: int, number: int) -> int:
    """The position of the number among the columns first … last-1, which ascend; -1 if it is not there."""
    low, high = np.uint64(first), np.uint64(last)
    while high - low > _FEW:  # halve while they are many, then look at each: a few are faster without branches
        middle = (low + high) >> _1
        if columns[middle] <= number:
            low = middle
        else:
            high = middle
    found = -1
    for at in range(low, high):
        found = int(np.int64(at)) if columns[at] == number else found
    return found


@njit
def copy_rows(old_starts: Starts, old: NDArray[Any], starts: Starts, new: NDArray[Any]) -> None:
    """Copy equally many old rows into rows of other sizes, each from its beginning and as far as it fits.

    The rest of a longer new row is left as it is.
    """
    for row in range(len(starts) - 1):
        size = min(starts[row + 1] - starts[row], old_starts[row + 1] - old_starts[row])
        for i in range(size):
            new[starts[row] + i] = old[old_starts[row] + i]


@njit
def keep_columns(starts: Starts, columns: Columns, wanted: NDArray[np.bool_]) -> tuple[Starts, Columns]:
    """New rows that have the wanted columns alone; `wanted` has a flag per column."""
    kept, out, count = np.zeros_like(starts), np.empty_like(columns), 0
    for row in range(len(starts) - 1):
        for column in columns[starts[row] : starts[row + 1]]:
            if wanted[column]:
                out[count] = column
                count += 1
        kept[row + 1] = count
    return kept, out[:count]


@njit
def from_pairs(rows: Columns, columns: Columns, row_count: int, column_count: int) -> tuple[Starts, Columns]:
    """Rows with ascending columns from pairs in any order; repeated pairs stay. Two counting sorts, no comparison."""
    by_column = count_rows(columns, column_count)
    rows_by_column = fill_rows(columns, rows, by_column)
    columns_sorted = row_numbers(by_column)
    starts = count_rows(rows, row_count)
    return starts, fill_rows(rows_by_column, columns_sorted, starts)
