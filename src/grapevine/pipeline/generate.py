"""Generate: a published model becomes a workload. A node's rows depend on (seed, node) alone, so partitions, cores and
clusters cannot change them; a model that is one sequential process runs as one task."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from grapevine.model import tables
from grapevine.model.config import check_seed
from grapevine.model.folder import new_folder
from grapevine.model.location import Location
from grapevine.model.manifest import Manifest
from grapevine.model.store import write_table
from grapevine.pipeline.dense import numbers_as_names
from grapevine.pipeline.stage import Stage, spark_schema
from grapevine.synthetic.base import ChurnModel, SubscriptionModel
from grapevine.synthetic.folder import (
    CHUNKS_PER_TASK,
    NODES_PER_CHUNK,
    Rows,
    all_rows,
    fits_a_task,
    generate_here,
    manifest_of,
    topics_of,
)


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
            written["topics"] = write_table(topics_of(model, seed), folder, tables.TOPICS)
            written["subscriptions"] = stage.write(frame, folder, tables.SUBSCRIPTIONS, f"generating {name}")
            with stage.step("counting subscribers"):
                counts = {"subscribers": stage.read(folder, tables.SUBSCRIPTIONS).select("node").distinct().count()}
        manifest = manifest_of(name, model, seed, written, counts)
        manifest.write(folder)
    return manifest


def rows_of(stage: Stage, model: SubscriptionModel | ChurnModel, seed: int, partitions: int | None = None) -> DataFrame:
    """The model's subscriptions, or sessions, as so many tasks make them (default: by the number of nodes)."""
    table = tables.CHURN if isinstance(model, ChurnModel) else tables.SUBSCRIPTIONS
    whole = 1 if isinstance(model, SubscriptionModel) and model.whole else None
    return _rows(stage, model.nodes, all_rows(model, seed), table, partitions, chunks=whole)


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
