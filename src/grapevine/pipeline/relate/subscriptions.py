"""Relations become subscriptions: who follows whom, who are friends, who edits what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.pipeline.reasons import number
from grapevine.pipeline.relate.base import DAY_S, IngestRun, Meaning

ROWS_PER_FILE = 2_000_000


@dataclass(frozen=True, slots=True)
class Relations(Meaning):
    """The first field is a user, the second the item that it subscribes to. Duplicates are counted and removed."""

    makes: ClassVar[tables.Table] = tables.SUBSCRIPTIONS

    social: bool = False  # items are users, who publish in their own topic; relations to oneself are removed
    both_ways: bool = False  # the item subscribes to the user, too
    mutual: bool = False  # a relation counts only where the item is related to the user, too; the others are removed
    seconds: int | None = None  # the field with the time of a relation; an item's rate is then its relations a day

    def write(self, run: IngestRun, rows: DataFrame) -> None:
        """Write nodes, topics and subscriptions."""
        edges = self._edges(run, rows)
        relations = run.counts["rows"] - run.counts["self_loops"] - run.counts.get("one_sided", 0)
        users, items = edges.select(F.col("user").alias("name")), edges.select(F.col("item").alias("name"))
        nodes = run.number(users.union(items) if self.social else users, "node")
        topics = run.number(items, "topic")
        run.write(nodes, tables.NODES)
        run.write(self._with_rates(run, rows, self._with_publishers(nodes, topics)), tables.TOPICS)
        files = math.ceil(relations * (1 + self.both_ways) / ROWS_PER_FILE)
        stored = run.write(_number_pairs(edges, nodes, topics, files), tables.SUBSCRIPTIONS)
        run.counts["duplicates"] = relations - stored // (1 + self.both_ways)
        subscriptions = run.stage.read(run.folder, tables.SUBSCRIPTIONS)
        run.counts["subscribers"] = run.count(subscriptions.select("node").distinct(), "counting subscribers")

    def _edges(self, run: IngestRun, rows: DataFrame) -> DataFrame:
        """(user, item) of every relation, in both directions if it has them."""
        edges = rows.select(F.col("fields")[0].alias("user"), F.col("fields")[1].alias("item"))
        run.counts["self_loops"] = 0
        if self.social:
            run.counts["self_loops"] = run.count(edges.filter("user = item"), "counting self-loops")
            edges = edges.filter("user <> item")
        if run.counts["rows"] == run.counts["self_loops"]:
            raise UsageError(f"not readable as {run.format}: every row relates a user to itself")
        turned = edges.select(F.col("item").alias("user"), F.col("user").alias("item"))
        if self.mutual:
            both = edges.join(turned.distinct(), ["user", "item"], "leftsemi")
            mutual = run.stage.keep(both, run.scratch / "mutual", "looking for mutual relations")
            kept = run.stage.count_rows(run.scratch / "mutual")
            run.counts["one_sided"] = run.counts["rows"] - run.counts["self_loops"] - kept
            if kept == 0:
                raise UsageError(f"not readable as {run.format}: no two users are related both ways")
            return mutual
        return edges.union(turned) if self.both_ways else edges

    def _with_publishers(self, nodes: DataFrame, topics: DataFrame) -> DataFrame:
        """Topics with the node that has the same name, where items are users."""
        if self.social:
            return topics.join(nodes.withColumnRenamed("node", "publisher"), "name", "left")
        return topics.withColumn("publisher", F.lit(None).cast("int"))

    def _with_rates(self, run: IngestRun, rows: DataFrame, topics: DataFrame) -> DataFrame:
        """Topics with their rate: relations a day where these have times."""
        if self.seconds is None:
            return topics.withColumn("rate", F.lit(1.0))
        times = rows.select(F.col("fields")[1].alias("name"), number(F.col("fields")[self.seconds]).alias("at"))
        with run.stage.step("measuring the time span"):
            first, last = times.agg(F.min("at"), F.max("at")).collect()[0]
        run.counts["span_days"] = span = (last - first) / DAY_S
        counted = times.groupBy("name").agg((F.count("*") / F.lit(span or 1.0)).alias("rate"))
        return topics.join(counted, "name")


def _number_pairs(edges: DataFrame, nodes: DataFrame, topics: DataFrame, files: int) -> DataFrame:
    """Each (node, topic) once. One shuffle by node serves the removal of duplicates and the order inside the files."""
    numbered = (
        edges.join(nodes.withColumnRenamed("name", "user"), "user")
        .join(topics.withColumnRenamed("name", "item"), "item")
        .select("node", "topic")
    )
    return numbered.repartition(files, "node").dropDuplicates(["node", "topic"]).sortWithinPartitions("node", "topic")
