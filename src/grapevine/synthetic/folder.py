"""A model's workload as a folder, made by one process: no Spark is needed for what it would not share out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from grapevine.kernels.csr import row_numbers
from grapevine.model import tables
from grapevine.model.folder import new_folder
from grapevine.model.manifest import Manifest
from grapevine.model.store import write_table
from grapevine.synthetic.base import ChurnModel, SubscriptionModel
from grapevine.version import __version__

NODES_PER_CHUNK = 20_000  # one Arrow batch of about a million rows at 50 subscriptions a node
CHUNKS_PER_TASK = 2

Rows = Callable[[int, int], pa.RecordBatch]  # the rows of the nodes first … last-1


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
        rows = pa.Table.from_batches([all_rows(model, seed)(0, model.nodes)])
        if isinstance(model, ChurnModel):
            written["churn"] = write_table(rows, folder, tables.CHURN)
            counts = {}
        else:
            written["topics"] = write_table(topics_of(model, seed), folder, tables.TOPICS)
            written["subscriptions"] = write_table(rows, folder, tables.SUBSCRIPTIONS)
            counts = {"subscribers": len(np.unique(rows["node"].to_numpy()))}
        manifest = manifest_of(name, model, seed, written, counts)
        manifest.write(folder)
    return manifest


def manifest_of(
    name: str, model: SubscriptionModel | ChurnModel, seed: int, written: dict[str, int], counts: dict[str, int]
) -> Manifest:
    """What the folder of a model's workload says of itself; `written` are its tables with their rows."""
    return Manifest(
        kind="workload",
        stage="generate",
        version=__version__,
        config={"model": name} | model.as_dict(),
        seed=seed,
        tables=written,
        counts=counts,
    )


def topics_of(model: SubscriptionModel, seed: int) -> pa.Table:
    """The table of topics; every topic of a model is called by its number."""
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


def all_rows(model: SubscriptionModel | ChurnModel, seed: int) -> Rows:
    """How the model's subscriptions, or sessions, are made, some nodes at a time."""
    return _sessions(model, seed) if isinstance(model, ChurnModel) else _pairs(model, seed)
