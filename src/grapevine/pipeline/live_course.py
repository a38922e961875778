"""A live run as it went, from diaries: who was there, and what became of events, every so many seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from grapevine.metrics.structure import DEGREE, DEGREE_MAX
from grapevine.metrics.traffic import OUTCOME, TRAFFIC
from grapevine.pipeline.diaries import Diaries
from grapevine.pipeline.live_nodes import Span
from grapevine.pipeline.stage import Stage

MOST_ROWS = 120
_STEPS_S = 1, 2, 5, 10, 30, 60, 300, 600, 1_800, 3_600


@dataclass(frozen=True, slots=True)
class Course:
    """The seconds of a run at which it is looked at, each a row of `rounds`: every `step_s`, and the last, `end_s`."""

    span: Span

    @property
    def end_s(self) -> int:
        """The whole seconds from the first line of all to the end; the `round` of the last row."""
        return (self.span.end - self.span.begin) // 1_000_000

    @property
    def step_s(self) -> int:
        """Seconds between two rows: the fewest, of round numbers, that give at most `MOST_ROWS` rows."""
        fitting = (step for step in _STEPS_S if self.end_s <= step * MOST_ROWS)
        return next(fitting, math.ceil(self.end_s / MOST_ROWS))

    def second(self, time: Column) -> Column:
        """The second of the run, from 0, in which something happened; `time` is in microseconds since 1970."""
        return F.floor((time - F.lit(self.span.begin)) / 1_000_000).cast("int")

    def row(self, time: Column) -> Column:
        """The `round` of the row that something belongs to which happened at this time: the next one. What came while
        the network was taken down belongs to the last."""
        after = (F.floor(self.second(time) / self.step_s) + 1) * self.step_s
        return F.least(after, F.lit(self.end_s)).cast("int")

    def rows(self, stage: Stage) -> DataFrame:
        """All rows as a frame: round, and the time `now` at it in microseconds since 1970."""
        rounds = sorted({*range(self.step_s, self.end_s + 1, self.step_s), self.end_s})
        times = [self.span.begin + r * 1_000_000 for r in rounds]
        columns = {"round": pa.array(rounds, pa.int32()), "now": pa.array(times, pa.int64())}
        return stage.frame_of(pa.table(columns))


def rounds_table(
    course: Course, rows: DataFrame, sessions: DataFrame, reports: DataFrame, events: DataFrame, deliveries: DataFrame
) -> DataFrame:
    """The table `rounds`. `rows` are the course's, `reports` those of `live_nodes.link_reports`; `events` and
    `deliveries` are the tables of these names, with the round of the row that each belongs to as `row`."""
    there = sessions.crossJoin(rows).where(F.col("now").between(F.col("start"), F.col("stop")))
    online = there.select("round", "node", "session").dropDuplicates(["round", "node"])
    found = rows.select("round")
    for part in (
        online.groupBy("round").agg(F.count("*").alias("online")),
        _counted(sessions, course.row(F.col("start")), "joined"),
        _counted(sessions.where(F.col("stop") < course.span.end), course.row(F.col("stop")), "left"),
        _degrees(online, reports, course),
        _outcome(events),
        _delays(deliveries),
    ):
        found = found.join(part, "round", "left")
    nothing = "ring", "utility", "connected_topics", "stretch_p50", "stretch_p95", "diameter", "diameter_max"
    counts = ["online", "joined", "left"]
    return found.na.fill(0, counts).select("*", *(F.lit(None).alias(name) for name in nothing)).orderBy("round")


def _counted(rows: DataFrame, row: Column, name: str) -> DataFrame:
    return rows.groupBy(row.alias("round")).agg(F.count("*").alias(name))


def _degrees(online: DataFrame, reports: DataFrame, course: Course) -> DataFrame:
    """Mean and largest number of neighbours of the nodes online at each row, as each last reported in that session."""
    lately = reports.groupBy("node", "session", course.row(F.col("time")).alias("round")).agg(
        F.max_by("neighbours", "time").alias("neighbours")
    )
    so_far = Window.partitionBy("node", "session").orderBy("round")
    known = online.join(lately, ["node", "session", "round"], "left").select(
        "round", F.last("neighbours", ignorenulls=True).over(so_far).alias("neighbours")
    )
    return known.groupBy("round").agg(
        F.avg("neighbours").alias(DEGREE.name), F.max("neighbours").alias(DEGREE_MAX.name)
    )


def _outcome(events: DataFrame) -> DataFrame:
    """What became of the events of each row, by the definitions of `metrics/traffic.py`."""
    measures = [measure for measure in TRAFFIC.measures if measure.metric in OUTCOME]
    of_events = [F.expr(measure.sql).alias(measure.metric.name) for measure in measures]
    return events.groupBy(F.col("row").alias("round")).agg(*of_events)


def _delays(deliveries: DataFrame) -> DataFrame:
    shares = {"delay_ms_p50": 0.5, "delay_ms_p95": 0.95}
    quantiles = [F.percentile("delay_ms", F.lit(share)).alias(name) for name, share in shares.items()]
    return deliveries.groupBy(F.col("row").alias("round")).agg(*quantiles)


def messages_table(diaries: Diaries, course: Course) -> DataFrame:
    """The table `messages`: sent messages by kind. Live nodes do not count descriptors: these are 0."""
    sent = diaries.of("traffic").select(course.row(F.col("time")).alias("round"), F.explode("sent"))
    counted = sent.groupBy("round", F.col("key").alias("kind")).agg(F.sum("value").alias("count"))
    return counted.select("*", F.lit(0).alias("descriptors")).orderBy("round", "kind")
