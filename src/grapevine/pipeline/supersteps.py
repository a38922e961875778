"""Rounds of a network in parts on Spark: a job a round, a task a part and move, and a shuffle that delivers the cells.

One query has all five moves (`sim/parts/moves`): a stage each, four shuffles. A cell is one value of a binary column,
made from the vector's own memory; batches have one row, so that what a task sends is one cell at a time. What is
lost with an executor, Spark computes again from the round's start: moves repeat themselves to the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import DataFrame, SparkSession

from grapevine.pipeline.stage import Stage, explain
from grapevine.sim.parts.moves import MOVES, Cell, Job, Move
from grapevine.sim.parts.network import Report

_CELL = "target int, source int, cell binary"
# Of the whole session while a round runs. Adaptive execution would plan each of the five stages anew.
_SETTINGS = {"spark.sql.adaptive.enabled": "false", "spark.sql.execution.arrow.maxRecordsPerBatch": "1"}


class SparkRunner:
    """Does the rounds of a `PartedNetwork` on a stage's Spark session."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __call__(self, job: Job) -> Report:
        spark = self._stage.spark
        sent = spark.sparkContext.accumulator(0)  # counts a task that was repeated again: its cells were sent again
        try:
            with _settings(spark):
                found = _all_moves(spark, job, sent).collect()
        except Exception as error:
            raise explain(error, f"computing round {job.now}") from None
        except BaseException:  # stopped by a signal: tasks need not go on
            with suppress(Exception):
                spark.sparkContext.cancelAllJobs()
            raise
        digest = sum(int.from_bytes(row.cell, "little") for row in found)
        return Report(digest % 2**64, sent.value)


def _all_moves(spark: SparkSession, job: Job, sent: Accumulator[int]) -> DataFrame:
    """A row per part with what its last move sends."""
    parts = job.split.parts
    frame = spark.range(0, parts, 1, parts).selectExpr(
        "cast(id as int) as target", "cast(id as int) as source", "binary('') as cell"
    )
    for i, move in enumerate(MOVES):
        delivered = frame.repartitionById(parts, "target") if i > 0 else frame
        frame = delivered.mapInArrow(_task(move, job, sent), _CELL)
    return frame


def _task(
    move: Move, job: Job, sent: Accumulator[int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does: it has the cells of one part, or of none where there are fewer parts than tasks."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        came: list[tuple[int, Cell]] = []
        part = -1
        for batch in batches:
            for row in range(batch.num_rows):
                part = batch.column("target")[row].as_py()
                came.append((batch.column("source")[row].as_py(), _read(batch.column("cell"), row)))
        if part < 0:
            return
        for target, cell in move(job, part, came):
            sent.add(cell.nbytes if target != part else 0)
            yield _batch(target, part, cell)

    return work


def _read(column: pa.BinaryArray, row: int) -> Cell:
    """The cell in this row, without a copy."""
    return np.frombuffer(column[row].as_buffer(), np.int32)


def _batch(target: int, source: int, cell: Cell) -> pa.RecordBatch:
    """One row, around the cell's own memory."""
    ends = pa.py_buffer(np.array([0, cell.nbytes], np.int32))
    binary = pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(np.ascontiguousarray(cell))])
    numbers = [pa.array([number], pa.int32()) for number in (target, source)]
    return pa.RecordBatch.from_arrays([*numbers, binary], ["target", "source", "cell"])


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    before = {name: str(spark.conf.get(name)) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
