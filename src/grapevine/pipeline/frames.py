"""Shapes of data frames that several stages use."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def long_form(frame: DataFrame, *keys: str) -> DataFrame:
    """(keys…, metric, value), a row per key (default: `run_id`) and metric, from a frame with a column per metric."""
    keys = keys or ("run_id",)
    names = [name for name in frame.columns if name not in keys]
    pairs = F.array(*(F.struct(F.lit(n).alias("metric"), F.col(n).cast("double").alias("value")) for n in names))
    return frame.select(*keys, F.explode(pairs).alias("pair")).select(*keys, "pair.metric", "pair.value")


def share_of(condition: Column) -> Column:
    """The share of rows for which the condition is true, among those for which it is not null."""
    return F.avg(condition.cast("double"))
