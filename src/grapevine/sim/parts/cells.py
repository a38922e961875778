"""Cells: rows on their way from one part to another, as one vector of 32-bit integers each.

A request is [count, nodes that are called, nodes that call, rows of the callers]; an answer is the rows of the called,
in the order in which they were asked for, which whoever asked knows. Rows go field by field: that is a copy each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.rows import Rows
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.sim.parts.split import Calls

Cell = NDArray[np.int32]
SAMPLES = "cache", "cache_heard"  # what peer sampling sends of a row
SLOTS = "links", "heard"
VIEWS = *SLOTS, *SAMPLES, "backups"  # what an exchange sends


def pack(rows: Rows, which: Columns, fields: Sequence[str]) -> list[Cell]:
    """These fields of the rows `which`, one vector a field."""
    return [
        _take_slots(rows.starts, getattr(rows, field), which) if field in SLOTS else getattr(rows, field)[which].ravel()
        for field in fields
    ]


def request(calls: Calls, body: list[Cell]) -> Cell:
    """A request: who calls whom, and the callers' rows."""
    return np.concatenate([np.array([len(calls.called)], np.int32), calls.called, calls.callers, *body])


def open_request(cell: Cell) -> tuple[Calls, Cell]:
    """Who calls whom, and the callers' rows, as they were packed."""
    count = int(cell[0])
    return Calls(cell[1 : 1 + count], cell[1 + count : 1 + 2 * count]), cell[1 + 2 * count :]


def append(own: Rows, others: list[Columns], bodies: list[Cell], row_sizes: Columns, fields: Sequence[str]) -> Rows:
    """The own rows, and behind them those of other nodes, from as many bodies as lists of nodes.

    Fields that were not sent are left as they are: they have the own rows alone.
    """
    sizes = np.concatenate([row_sizes[nodes] for nodes in others]) if others else np.empty(0, np.int32)
    starts = np.concatenate([own.starts, own.starts[-1] + np.cumsum(sizes, dtype=np.int64)])
    made = replace(own, starts=starts)
    counts = [len(nodes) for nodes in others]
    slots = [int(row_sizes[nodes].sum(dtype=np.int64)) for nodes in others]
    offsets = [0] * len(others)
    for field in fields:
        before = getattr(own, field)
        per_row = 0 if field in SLOTS else before.shape[1]
        lengths = slots if field in SLOTS else [count * per_row for count in counts]
        flat = np.empty(before.size + sum(lengths), np.int32)
        flat[: before.size] = before.ravel()
        at = before.size
        for i, (body, length) in enumerate(zip(bodies, lengths, strict=True)):
            flat[at : at + length] = body[offsets[i] : offsets[i] + length]
            at, offsets[i] = at + length, offsets[i] + length
        setattr(made, field, flat if field in SLOTS else flat.reshape(-1, per_row) if per_row else _no_columns(made))
    return made


def _no_columns(rows: Rows) -> NDArray[np.int32]:
    return np.empty((len(rows.starts) - 1, 0), np.int32)


@njit
def _take_slots(starts: Starts, values: Columns, which: Columns) -> Columns:
    """The slots of these rows, one after the other."""
    total = 0
    for row in which:
        total += starts[row + 1] - starts[row]
    out = np.empty(total, np.int32)
    at = 0
    for row in which:
        for slot in range(starts[row], starts[row + 1]):
            out[at] = values[slot]
            at += 1
    return out
