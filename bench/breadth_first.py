"""Why kernels walk: a breadth-first search by joins of Spark, beside the compiled one (docs/decisions).

    .venv/bin/python -m bench.breadth_first

Both search a random graph of 20,000 nodes with 15 links each from one root until nobody new is reached, after a first
search that compiles or warms up. Both must reach the same number of nodes.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from grapevine.kernels import csr
from grapevine.kernels.graph import breadth_first
from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage

NODES, LINKS = 20_000, 15


def random_links() -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Sources and targets."""
    sources = np.repeat(np.arange(NODES, dtype=np.int32), LINKS)
    return sources, np.random.default_rng(1).integers(0, NODES, len(sources)).astype(np.int32)


def by_kernel(starts: NDArray[np.int64], targets: NDArray[np.int32]) -> int:
    rank = np.arange(NODES, dtype=np.uint64)
    return int(breadth_first(starts, targets, rank, np.zeros(1, np.int32), 1, NODES).sum())


def by_joins(spark: SparkSession, edges: DataFrame) -> tuple[int, int]:
    """How many are reached, and in how many levels."""
    level = reached = spark.createDataFrame([(0,)], "node int")
    count, levels = 1, 0
    while True:
        found = level.join(edges, level.node == edges.source).selectExpr("target AS node").distinct()
        level = found.join(reached, "node", "left_anti").localCheckpoint()
        new = level.count()
        if not new:
            return count, levels
        reached = reached.union(level).localCheckpoint()
        count, levels = count + new, levels + 1


def main() -> None:
    sources, targets = random_links()
    starts, columns = csr.from_pairs(sources, targets, NODES, NODES)
    by_kernel(starts, columns)  # compiles
    began = time.perf_counter()
    walked = by_kernel(starts, columns)
    kernel = time.perf_counter() - began
    stage = Stage(SparkSettings(master="local[2]", conf={"spark.sql.shuffle.partitions": "2"}), quiet=True)
    spark = stage.spark
    rows = list(zip(sources.tolist(), targets.tolist(), strict=True))
    edges = spark.createDataFrame(rows, "source int, target int").cache()
    by_joins(spark, edges)
    began = time.perf_counter()
    joined, levels = by_joins(spark, edges)
    joins = time.perf_counter() - began
    spark.stop()
    assert walked == joined, f"{walked} by the kernel, {joined} by joins"
    print(f"{joined:,} of {NODES:,} nodes in {levels} levels: kernel {kernel * 1e3:.2f} ms, joins {joins:.2f} s")
    print(f"  joins take {joins / kernel:,.0f} times as long")


if __name__ == "__main__":
    main()
