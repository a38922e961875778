"""Round-trip times become latency: lists of pairs, or square matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.pipeline.dense import numbers_as_names
from grapevine.pipeline.reasons import not_a_latency, number
from grapevine.pipeline.relate.base import IngestRun, Meaning


@dataclass(frozen=True, slots=True)
class LatencyPairs(Meaning):
    """A row is a pair: from, to and milliseconds; of repeated pairs the mean is kept."""

    makes: ClassVar[tables.Table] = tables.LATENCY

    def write(self, run: IngestRun, rows: DataFrame) -> None:
        """Write nodes and latency."""
        pairs = rows.select(*(F.col("fields")[i].alias(name) for i, name in enumerate(("from", "to", "ms"))))
        names = pairs.select(F.col("from").alias("name")).union(pairs.select(F.col("to").alias("name")))
        nodes = run.number(names, "node")
        run.write(nodes, tables.NODES)
        measured = pairs.groupBy("from", "to").agg(F.avg(number(F.col("ms"))).alias("rtt_ms"))
        numbered = (
            measured.join(nodes.select(F.col("name").alias("from"), F.col("node").alias("source")), "from")
            .join(nodes.select(F.col("name").alias("to"), F.col("node").alias("target")), "to")
            .withColumn("slice", F.lit(0))
        )
        stored = run.write(numbered.orderBy("source", "target"), tables.LATENCY)
        run.counts["duplicates"] = run.counts["rows"] - stored
        _summarise_latency(run)


@dataclass(frozen=True, slots=True)
class LatencyMatrices(Meaning):
    """A file is a square matrix of milliseconds, a time slice; cells that hold no latency go to `rejected`."""

    makes: ClassVar[tables.Table] = tables.LATENCY
    needs_lines: ClassVar[bool] = True  # rows are told apart by their order
    needs_all: ClassVar[bool] = True

    def write(self, run: IngestRun, rows: DataFrame) -> None:
        """Write nodes and latency."""
        trailing = F.element_at("fields", -1) == ""
        cells_of = F.when(trailing, F.slice("fields", 1, F.size("fields") - 1)).otherwise(F.col("fields"))
        rows = rows.withColumn("fields", cells_of)
        sizes = _matrix_sizes(run, rows)
        cells = _cells(run, rows, sizes)
        count = next(iter(sizes.values()))
        run.write(numbers_as_names(run.stage, count), tables.NODES)
        measured = cells.filter("reason is null").withColumn("rtt_ms", number(F.col("cell")))
        stored = run.write(
            measured.repartition(len(sizes), "slice").sortWithinPartitions("slice", "source", "target"), tables.LATENCY
        )
        if stored == 0:
            raise UsageError(f"not readable as {run.format}: no cell holds a latency")
        if stored < count * count * len(sizes):
            column = (F.col("target") + 1).cast("string")
            refused = cells.filter("reason is not null").withColumn(
                "reason", F.concat(F.lit("column "), column, F.lit(": "), "reason")
            )
            run.counts["rejected"] = run.write(refused.withColumnRenamed("cell", "content"), tables.REJECTED)
        run.counts["slices"] = len(sizes)
        _summarise_latency(run)


def _cells(run: IngestRun, rows: DataFrame, sizes: dict[str, int]) -> DataFrame:
    """Every cell with its slice (files in the order of their names), its row and column, and why it is no latency."""
    slices = run.stage.spark.createDataFrame(list(enumerate(sorted(sizes))), "slice int, file string")
    in_file = Window.partitionBy("file").orderBy("line")
    return (
        rows.withColumn("source", F.row_number().over(in_file) - 1)
        .join(F.broadcast(slices), "file")
        .select("file", "line", "slice", "source", F.posexplode("fields").alias("target", "cell"))
        .withColumn("reason", not_a_latency(F.col("cell"), "cell"))
    )


def _matrix_sizes(run: IngestRun, rows: DataFrame) -> dict[str, int]:
    """File → number of nodes; all matrices must be square and of one size."""
    width = F.size("fields")
    with run.stage.step("measuring matrices"):
        found = rows.groupBy("file").agg(F.count("*"), F.min(width), F.max(width)).collect()
    for file, height, narrowest, widest in sorted(tuple(row) for row in found):
        if not height == narrowest == widest:
            columns = f"{widest}" if narrowest == widest else f"{narrowest} to {widest}"
            raise UsageError(f"{file}: has {height} readable rows of {columns} columns; a latency matrix is square")
    sizes = {row[0]: int(row[1]) for row in found}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{file}: {size}" for file, size in sorted(sizes.items()))
        raise UsageError(f"matrices of different sizes ({listed}) cannot be slices of one network; ingest them apart")
    return sizes


def _summarise_latency(run: IngestRun) -> None:
    """Median and tails between different nodes, as the trace's README would say them."""
    latency = run.stage.read(run.folder, tables.LATENCY).filter("source <> target")
    with run.stage.step("summarising latency"):
        row = latency.agg(F.percentile_approx("rtt_ms", [0.05, 0.5, 0.95], 100_000)).collect()[0][0]
    for name, value in zip(("p5_ms", "median_ms", "p95_ms"), row or [], strict=False):
        run.counts[name] = value
