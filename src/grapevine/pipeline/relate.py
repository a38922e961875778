"""Readable rows to workload tables: relations to subscriptions, availability to churn, round-trip times to latency."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.pipeline.dense import number_names, numbers_as_names
from grapevine.pipeline.formats import (
    ADD_WORDS,
    UP_WORDS,
    UPDATE_WORDS,
    Format,
    availability_times,
    not_a_latency,
    number,
)
from grapevine.pipeline.lines import plain_path
from grapevine.pipeline.stage import Stage

ROWS_PER_FILE = 2_000_000
DAY_S = 86_400.0


@dataclass(slots=True)
class IngestRun:
    """What one ingest carries from step to step."""

    stage: Stage
    folder: Path
    format: Format
    written: dict[str, int] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)

    @property
    def scratch(self) -> Path:
        """For what later steps of this ingest read again; below the output, where the workers of a cluster see it."""
        return self.folder / "_scratch"

    def write(self, frame: DataFrame, table: tables.Table) -> int:
        """Store a table and remember its size."""
        self.written[table.name] = self.stage.write(frame, self.folder, table)
        return self.written[table.name]

    def number(self, names: DataFrame, column: str) -> DataFrame:
        """Dense numbers for the `name`s."""
        return number_names(self.stage, names, column, self.scratch / column, f"numbering {column}s")


def write_subscriptions(run: IngestRun, rows: DataFrame) -> None:
    """nodes, topics and subscriptions of follows, friends, pairs or edits."""
    social = run.format.name in ("follows", "friends")
    edges = rows.select(F.col("fields")[0].alias("user"), F.col("fields")[1].alias("item"))
    run.counts["self_loops"] = 0
    if social:
        run.counts["self_loops"] = _count(run, edges.filter("user = item"), "counting self-loops")
        edges = edges.filter("user <> item")
    relations = run.counts["rows"] - run.counts["self_loops"]
    if relations == 0:
        raise UsageError(f"not readable as {run.format.name}: every row relates a user to itself")
    both_ways = run.format.name == "friends"
    if both_ways:
        edges = edges.union(edges.select(F.col("item").alias("user"), F.col("user").alias("item")))
    users, items = edges.select(F.col("user").alias("name")), edges.select(F.col("item").alias("name"))
    nodes = run.number(users.union(items) if social else users, "node")
    topics = run.number(items, "topic")
    run.write(nodes, tables.NODES)
    run.write(_describe_topics(run, rows, nodes if social else None, topics), tables.TOPICS)
    files = math.ceil(relations * (1 + both_ways) / ROWS_PER_FILE)
    stored = run.write(_number_pairs(edges, nodes, topics, files), tables.SUBSCRIPTIONS)
    run.counts["duplicates"] = relations - stored // (1 + both_ways)
    subscriptions = run.stage.read(run.folder, tables.SUBSCRIPTIONS)
    run.counts["subscribers"] = _count(run, subscriptions.select("node").distinct(), "counting subscribers")


def _number_pairs(edges: DataFrame, nodes: DataFrame, topics: DataFrame, files: int) -> DataFrame:
    """Each (node, topic) once. One shuffle by node serves the removal of duplicates and the order inside the files."""
    numbered = (
        edges.join(nodes.withColumnRenamed("name", "user"), "user")
        .join(topics.withColumnRenamed("name", "item"), "item")
        .select("node", "topic")
    )
    return numbered.repartition(files, "node").dropDuplicates(["node", "topic"]).sortWithinPartitions("node", "topic")


def _describe_topics(run: IngestRun, rows: DataFrame, publishers: DataFrame | None, topics: DataFrame) -> DataFrame:
    """Topics with their rate (edits a day where the trace is timed) and the node that has the same name."""
    if publishers is not None:
        topics = topics.join(publishers.withColumnRenamed("node", "publisher"), "name", "left")
    else:
        topics = topics.withColumn("publisher", F.lit(None).cast("int"))
    if run.format.name != "edits":
        return topics.withColumn("rate", F.lit(1.0))
    edits = rows.select(F.col("fields")[1].alias("name"), number(F.col("fields")[2]).alias("at"))
    with run.stage.step("measuring the time span"):
        first, last = edits.agg(F.min("at"), F.max("at")).collect()[0]
    run.counts["span_days"] = span = (last - first) / DAY_S
    counted = edits.groupBy("name").agg((F.count("*") / F.lit(span or 1.0)).alias("rate"))
    return topics.join(counted, "name")


def write_churn(run: IngestRun, rows: DataFrame) -> None:
    """nodes and churn of an availability trace."""
    fields = F.col("fields")
    if run.format.name == "avt":
        sessions = _listed_sessions(rows)
        names = rows.select(fields[0].alias("name"))
    else:
        sessions = _alternating_sessions(run, _state_changes(run, rows))
        names = rows.select(fields[1].alias("name"))
    nodes = run.number(names, "node")
    run.write(nodes, tables.NODES)
    if run.write(sessions.join(nodes, "name").orderBy("joined_s", "node"), tables.CHURN) == 0:
        raise UsageError(f"not readable as {run.format.name}: no node was ever there")
    churn = run.stage.read(run.folder, tables.CHURN)
    with run.stage.step("measuring the time span"):
        first, last, online = churn.agg(
            F.min("joined_s"), F.max(F.coalesce("left_s", "joined_s")), F.countDistinct("node")
        ).collect()[0]
    run.counts |= {"online_nodes": online, "span_days": ((last or 0.0) - (first or 0.0)) / DAY_S}


def _listed_sessions(rows: DataFrame) -> DataFrame:
    """`.avt`: start and end follow each other."""
    times = availability_times(F.col("fields"))
    pairs = F.transform(
        F.sequence(F.lit(0), F.col("sessions") - 1),
        lambda i: F.struct(F.get(F.col("times"), 2 * i).alias("start"), F.get(F.col("times"), 2 * i + 1).alias("end")),
    )
    counted = rows.select(
        F.col("fields")[0].alias("name"), times.alias("times"), F.col("fields")[1].cast("int").alias("sessions")
    )
    session = counted.filter("sessions > 0").select("name", F.explode(pairs).alias("session"))
    return session.select("name", F.col("session.start").alias("joined_s"), F.col("session.end").alias("left_s"))


def _state_changes(run: IngestRun, rows: DataFrame) -> DataFrame:
    """(name, at, up) of up/down and machine events."""
    at, name, word = number(F.col("fields")[0]), F.col("fields")[1].alias("name"), F.lower(F.col("fields")[2])
    if run.format.name == "updown":
        return rows.select(name, at.alias("at"), word.isin(*UP_WORDS).alias("up"))
    updates = word.isin(*UPDATE_WORDS)
    run.counts["updates_ignored"] = _count(run, rows.filter(updates), "counting updates")
    return rows.filter(~updates).select(name, (at / 1e6).alias("at"), word.isin(*ADD_WORDS).alias("up"))


def _alternating_sessions(run: IngestRun, changes: DataFrame) -> DataFrame:
    """From each `up` to the next `down`. A node whose first event is `down` was there since the trace began."""
    by_time = Window.partitionBy("name").orderBy("at", "up")
    marked = changes.withColumn("before", F.lag("up").over(by_time))
    repeated = F.col("before") == F.col("up")
    run.counts["duplicates"] = _count(run, marked.filter(repeated), "counting repeated states")
    turns = marked.filter(F.col("before").isNull() | ~repeated).withColumn("next", F.lead("at").over(by_time))
    with run.stage.step("finding the first event"):
        origin = changes.agg(F.min("at")).collect()[0][0]
    started = turns.filter("up").select("name", F.col("at").alias("joined_s"), F.col("next").alias("left_s"))
    there_before = turns.filter(~F.col("up") & F.col("before").isNull() & (F.col("at") > origin))
    return started.union(there_before.select("name", F.lit(origin).alias("joined_s"), F.col("at").alias("left_s")))


def write_latency_pairs(run: IngestRun, rows: DataFrame) -> None:
    """nodes and latency of a pair list; of repeated pairs the mean is kept."""
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


def write_matrices(run: IngestRun, rows: DataFrame) -> None:
    """nodes and latency of square matrices; cells that hold no latency go to `rejected`."""
    trailing = F.element_at("fields", -1) == ""
    cells_of = F.when(trailing, F.slice("fields", 1, F.size("fields") - 1)).otherwise(F.col("fields"))
    rows = rows.withColumn("fields", cells_of).withColumn("file", plain_path(F.col("file")))
    sizes = _matrix_sizes(run, rows)
    slices = run.stage.spark.createDataFrame(list(enumerate(sorted(sizes))), "slice int, file string")
    in_file = Window.partitionBy("file").orderBy("line")
    cells = (
        rows.withColumn("source", F.row_number().over(in_file) - 1)
        .join(F.broadcast(slices), "file")
        .select("file", "line", "slice", "source", F.posexplode("fields").alias("target", "cell"))
        .withColumn("reason", not_a_latency(F.col("cell"), "cell"))
    )
    count = next(iter(sizes.values()))
    run.write(numbers_as_names(run.stage, count), tables.NODES)
    measured = cells.filter("reason is null").withColumn("rtt_ms", number(F.col("cell")))
    stored = run.write(
        measured.repartition(len(sizes), "slice").sortWithinPartitions("slice", "source", "target"), tables.LATENCY
    )
    if stored == 0:
        raise UsageError("not readable as latency-matrix: no cell holds a latency")
    if stored < count * count * len(sizes):
        column = (F.col("target") + 1).cast("string")
        refused = cells.filter("reason is not null").withColumn(
            "reason", F.concat(F.lit("column "), column, F.lit(": "), "reason")
        )
        run.counts["rejected"] = run.write(refused.withColumnRenamed("cell", "content"), tables.REJECTED)
    run.counts["slices"] = len(sizes)
    _summarise_latency(run)


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


def _count(run: IngestRun, frame: DataFrame, label: str) -> int:
    with run.stage.step(label):
        return frame.count()


WRITERS: dict[str, Callable[[IngestRun, DataFrame], None]] = {
    "subscriptions": write_subscriptions,
    "churn": write_churn,
    "latency": write_latency_pairs,
}
