"""Availability becomes churn: sessions that are listed, or changes of state that begin and end them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.pipeline.reasons import number
from grapevine.pipeline.relate.base import DAY_S, IngestRun, Meaning


class Availability(Meaning):
    """Rows that tell when nodes were there: they become the tables `nodes` and `churn`."""

    makes: ClassVar[tables.Table] = tables.CHURN
    name_field: ClassVar[int]  # the field that holds the node's name

    @abstractmethod
    def sessions(self, run: IngestRun, rows: DataFrame) -> DataFrame:
        """(name, joined_s, left_s) of every session; `left_s` is null if it outlasts the trace."""

    def write(self, run: IngestRun, rows: DataFrame) -> None:
        """Write nodes, also those that were never there, and churn."""
        sessions = self.sessions(run, rows)
        nodes = run.number(rows.select(F.col("fields")[self.name_field].alias("name")), "node")
        run.write(nodes, tables.NODES)
        if run.write(sessions.join(nodes, "name").orderBy("joined_s", "node"), tables.CHURN) == 0:
            raise UsageError(f"not readable as {run.format}: no node was ever there")
        churn = run.stage.read(run.folder, tables.CHURN)
        with run.stage.step("measuring the time span"):
            first, last, online = churn.agg(
                F.min("joined_s"), F.max(F.coalesce("left_s", "joined_s")), F.countDistinct("node")
            ).collect()[0]
        run.counts |= {"online_nodes": online, "span_days": ((last or 0.0) - (first or 0.0)) / DAY_S}


@dataclass(frozen=True, slots=True)
class ListedSessions(Availability):
    """A row is a node: its name, the number of its sessions, then start and end of each, in seconds."""

    name_field: ClassVar[int] = 0

    def sessions(self, run: IngestRun, rows: DataFrame) -> DataFrame:
        times = availability_times(F.col("fields"))
        pairs = F.transform(
            F.sequence(F.lit(0), F.col("sessions") - 1),
            lambda i: F.struct(
                F.get(F.col("times"), 2 * i).alias("start"), F.get(F.col("times"), 2 * i + 1).alias("end")
            ),
        )
        counted = rows.select(
            F.col("fields")[0].alias("name"), times.alias("times"), F.col("fields")[1].cast("int").alias("sessions")
        )
        session = counted.filter("sessions > 0").select("name", F.explode(pairs).alias("session"))
        return session.select("name", F.col("session.start").alias("joined_s"), F.col("session.end").alias("left_s"))


@dataclass(frozen=True, slots=True)
class StateChanges(Availability):
    """A row is a change: time, node and a word, in any case, that says whether the node is there from now on."""

    name_field: ClassVar[int] = 1

    up: tuple[str, ...]
    ignored: tuple[str, ...] = ()  # words that say nothing about it
    units_per_second: float = 1.0  # of the times

    def sessions(self, run: IngestRun, rows: DataFrame) -> DataFrame:
        at, name, word = number(F.col("fields")[0]), F.col("fields")[1].alias("name"), F.lower(F.col("fields")[2])
        if self.ignored:
            ignored = word.isin(*self.ignored)
            run.counts["updates_ignored"] = run.count(rows.filter(ignored), "counting updates")
            rows = rows.filter(~ignored)
        seconds = (at / self.units_per_second).alias("at")
        return _alternating_sessions(run, rows.select(name, seconds, word.isin(*self.up).alias("up")))


def availability_times(fields: Column) -> Column:
    """All times of an `.avt` row as numbers: start end start end …"""
    return F.transform(F.slice(fields, 3, F.greatest(F.size(fields) - 2, F.lit(0))), number)


def _alternating_sessions(run: IngestRun, changes: DataFrame) -> DataFrame:
    """From each `up` to the next `down`. A node whose first event is `down` was there since the trace began."""
    by_time = Window.partitionBy("name").orderBy("at", "up")
    marked = changes.withColumn("before", F.lag("up").over(by_time))
    repeated = F.col("before") == F.col("up")
    with run.stage.step("looking at changes of state"):
        run.counts["duplicates"], origin = marked.agg(F.count_if(repeated), F.min("at")).collect()[0]
    turns = marked.filter(F.col("before").isNull() | ~repeated).withColumn("next", F.lead("at").over(by_time))
    started = turns.filter("up").select("name", F.col("at").alias("joined_s"), F.col("next").alias("left_s"))
    there_before = turns.filter(~F.col("up") & F.col("before").isNull() & (F.col("at") > origin))
    return started.union(there_before.select("name", F.lit(origin).alias("joined_s"), F.col("at").alias("left_s")))
