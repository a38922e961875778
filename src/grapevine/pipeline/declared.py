"""Metrics of a table as `metrics/` declares them, computed natively by Spark for all runs at once."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from grapevine.metrics.measured import Measure, MeasuredTable, Quantiles
from grapevine.pipeline.frames import long_form


def metrics_of(rows: DataFrame, measured: MeasuredTable) -> DataFrame:
    """One row (`run_id`, `metric`, `value`) per run and metric of the declaration, from the table's rows of all runs.

    `rows` have the table's columns and `run_id`. A run without rows has no metrics; one whose rows do not tell a metric
    has it with an empty value.
    """
    if measured.where is not None:
        rows = rows.where(measured.where.sql())
    for name, sql in measured.derived:
        rows = rows.withColumn(name, F.expr(sql))
    parts = [_by_value(rows, measure) for measure in measured.measures if measure.by is not None]
    parts += [_quantiles(rows, quantiles) for quantiles in measured.quantiles]
    of_runs = [F.expr(measure.sql).alias(measure.metric.name) for measure in measured.measures if measure.by is None]
    if of_runs:
        parts.append(long_form(rows.groupBy("run_id").agg(*of_runs)))
    return reduce(DataFrame.union, parts)


def _by_value(rows: DataFrame, measure: Measure) -> DataFrame:
    """A metric for each value of a column, named after it."""
    assert measure.by is not None
    value = F.col(measure.by)
    found = rows.where(value.isNotNull()).groupBy("run_id", measure.by).agg(F.expr(measure.sql).alias("value"))
    named = F.regexp_replace(F.lit(measure.metric.name), r"\{\w+\}", value.cast("string"))
    return found.select("run_id", named.alias("metric"), F.col("value").cast("double").alias("value"))


def _quantiles(rows: DataFrame, quantiles: Quantiles) -> DataFrame:
    """Nearest-rank quantiles of rounded values, from their counts: exact, and in any order of rows.

    Spark's own exact percentile is slow, and its approximate one depends on the partitions.
    """
    if quantiles.where is not None:
        rows = rows.where(quantiles.where.sql())
    value = F.round(F.expr(quantiles.sql), quantiles.digits).alias("value")
    known = rows.select("run_id", value).where(F.col("value").isNotNull())
    counted = known.groupBy("run_id", "value").agg(F.count("*").alias("count"))
    up_to = F.sum("count").over(Window.partitionBy("run_id").orderBy("value"))
    total = F.sum("count").over(Window.partitionBy("run_id"))
    ranked = counted.select("run_id", "value", up_to.alias("up_to"), total.alias("total"))
    at = [
        F.min(F.when(F.col("up_to") >= F.ceil(F.col("total") * share), F.col("value"))).alias(
            quantiles.metric.of(quantile=f"p{round(100 * share)}").name
        )
        for share in quantiles.shares
    ]
    return long_form(ranked.groupBy("run_id").agg(*at))
