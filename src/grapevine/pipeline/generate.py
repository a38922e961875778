"""Generate: a published model becomes a workload. A node's rows depend on (seed, node) alone, so partitions, cores and
clusters cannot change them; a model that is one sequential process runs as one task."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from grapevine.kernels.csr import row_numbers
from grapevine.model import tables
from grapevine.model.config import check_seed
from grapevine.model.folder import new_folder
from grapevine.model.location import Location
from grapevine.model.manifest import Manifest
from grapevine.model.store import write_table
from grapevine.pipeline.dense import numbers_as_names
from grapevine.pipeline.stage import Stage, spark_schema
from grapevine.synthetic.base import ChurnModel, SubscriptionModel
from grapevine.version import __version__

NODES_PER_CHUNK = 20_000  # one Arrow batch of about a million rows at 50 subscriptions a node
CHUNKS_PER_TASK = 2

Rows = Callable[[int, int], pa.RecordBatch]  # the rows of the nodes first … last-1


def generate(
    stage: Stage,
    name: str,
    model: SubscriptionModel | ChurnModel,
    out: Location,
    *,
    seed: int = 1,
    partitions: int | None = None,
    force: bool = False,
) -> Manifest:
    """Write the model's workload, or churn, into a new folder. `name` is the model's; the manifest keeps it.

    `partitions` is the number of Spark tasks (default: by the number of nodes); the rows do not depend on it.
    Without it, a model that fits a task is made without Spark if `out` is a path.
    """
    check_seed(seed)
    if partitions is None and isinstance(out, Path) and fits_a_task(model):
        return generate_here(name, model, out, seed=seed, force=force)
    with new_folder(out, kind="workload", force=force) as folder:
        written = {"nodes": stage.write(numbers_as_names(stage, model.nodes), folder, tables.NODES)}
        frame = rows_of(stage, model, seed, partitions)
        if isinstance(model, ChurnModel):
            written["churn"] = stage.write(frame, folder, tables.CHURN, f"generating {name}")
            counts = {}
        else:
            written["topics"] = write_table(_topics(model, seed), folder, tables.TOPICS)
            written["subscriptions"] = stage.write(frame, folder, tables.SUBSCRIPTIONS, f"generating {name}")
            with stage.step("counting subscribers"):
                counts = {"subscribers": stage.read(folder, tables.SUBSCRIPTIONS).select("node").distinct().count()}
        manifest = _manifest(name, model, seed, written, counts)
        manifest.write(folder)
    return manifest


def fits_a_task(model: SubscriptionModel | ChurnModel) -> bool:
    """Whether one task would make all rows, so that Spark has nothing to share out."""
    return model.nodes <= NODES_PER_CHUNK * CHUNKS_PER_TASK


def generate_here(
    name: str, model: SubscriptionModel | ChurnModel, out: Path, *, seed: int, force: bool = False
) -> Manifest:
    """The folder that `generate` makes, row by row, made by this process alone.

    For small models: Spark would take longer to start than they take. Called inside Spark's tasks, too: a sweep has
    hundreds of small workloads, and one task each is faster than a few jobs each.
    """
    with new_folder(out, kind="workload", force=force) as folder:
        numbers = pa.array(np.arange(model.nodes, dtype=np.int32))
        nodes = pa.table({"node": numbers, "name": numbers.cast(pa.string())})
        written = {"nodes": write_table(nodes, folder, tables.NODES)}
        rows = pa.Table.from_batches([_all_rows(model, seed)(0, model.nodes)])
        if isinstance(model, ChurnModel):
            written["churn"] = write_table(rows, folder, tables.CHURN)
            counts = {}
        else:
            written["topics"] = write_table(_topics(model, seed), folder, tables.TOPICS)
            written["subscriptions"] = write_table(rows, folder, tables.SUBSCRIPTIONS)
            counts = {"subscribers": len(np.unique(rows["node"].to_numpy()))}
        manifest = _manifest(name, model, seed, written, counts)
        manifest.write(folder)
    return manifest


def _manifest(
    name: str, model: SubscriptionModel | ChurnModel, seed: int, written: dict[str, int], counts: dict[str, int]
) -> Manifest:
    return Manifest(
        kind="workload",
        stage="generate",
        version=__version__,
        config={"model": name} | model.as_dict(),
        seed=seed,
        tables=written,
        counts=counts,
    )


def _topics(model: SubscriptionModel, seed: int) -> pa.Table:
    numbers = pa.array(np.arange(model.topic_count, dtype=np.int32))
    publisher = numbers if model.topic_is_node else pa.nulls(model.topic_count, pa.int32())
    columns = {"topic": numbers, "name": numbers.cast(pa.string()), "rate": model.rates(seed), "publisher": publisher}
    return pa.table(columns)


def _pairs(model: SubscriptionModel, seed: int) -> Rows:
    def rows(first: int, last: int) -> pa.RecordBatch:
        starts, topics = model.subscriptions(seed, first, last)
        return pa.record_batch({"node": row_numbers(starts) + np.int32(first), "topic": topics})

    return rows


def _sessions(model: ChurnModel, seed: int) -> Rows:
    def rows(first: int, last: int) -> pa.RecordBatch:
        node, joined, left = model.sessions(seed, first, last)
        return pa.record_batch({"node": node, "joined_s": joined, "left_s": pa.array(left, from_pandas=True)})

    return rows


def _all_rows(model: SubscriptionModel | ChurnModel, seed: int) -> Rows:
    return _sessions(model, seed) if isinstance(model, ChurnModel) else _pairs(model, seed)


def rows_of(stage: Stage, model: SubscriptionModel | ChurnModel, seed: int, partitions: int | None = None) -> DataFrame:
    """The model's subscriptions, or sessions, as so many tasks make them (default: by the number of nodes)."""
    table = tables.CHURN if isinstance(model, ChurnModel) else tables.SUBSCRIPTIONS
    whole = 1 if isinstance(model, SubscriptionModel) and model.whole else None
    return _rows(stage, model.nodes, _all_rows(model, seed), table, partitions, chunks=whole)


def _rows(
    stage: Stage, nodes: int, rows: Rows, table: tables.Table, partitions: int | None, chunks: int | None = None
) -> DataFrame:
    """The rows of all nodes, made chunk by chunk inside the tasks; `chunks` is their number, if not by size."""
    count = chunks or math.ceil(nodes / NODES_PER_CHUNK)
    size = math.ceil(nodes / count)
    tasks = partitions or max(1, math.ceil(count / CHUNKS_PER_TASK))

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for chunk in batch.column(0).to_pylist():
                first, last = chunk * size, min((chunk + 1) * size, nodes)
                if first < last:
                    yield rows(first, last)

    return stage.spark.range(0, count, 1, tasks).mapInArrow(make, spark_schema(table))
