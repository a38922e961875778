"""Measure runs in virtual time: delays, stretch, coverage by friends, messages and places in trees."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from grapevine.pipeline.frames import long_form, share_of

_SOON_MS = 1_000.0  # Rappel §6.2.3 asks for the share of deliveries within a second


def delivery_metrics(deliveries: DataFrame) -> DataFrame:
    """Delays and stretch, of all deliveries and of those to nodes that never leave."""
    shares = long_form(
        deliveries.groupBy("run_id").agg(
            share_of(F.col("delay_ms") <= _SOON_MS).alias("within_1s"),
            share_of(F.when(F.col("observer"), F.col("delay_ms") <= _SOON_MS)).alias("observer_within_1s"),
            share_of(F.col("pulled")).alias("pulled"),
            F.max("delay_ms").alias("delay_ms_max"),
        )
    )
    stretch = F.col("path_ms") / F.when(F.col("coordinate_ms") > 0, F.col("coordinate_ms"))
    direct = F.col("delay_ms") / F.when(F.col("direct_ms") > 0, F.col("direct_ms"))
    return (
        shares.union(quantiles(deliveries, "delay_ms", F.col("delay_ms"), 1))
        .union(quantiles(deliveries.where("observer"), "observer_delay_ms", F.col("delay_ms"), 1))
        .union(quantiles(deliveries, "stretch", stretch, 3))
        .union(quantiles(deliveries, "direct_stretch", direct, 3))
    )


def peer_metrics(peers: DataFrame) -> DataFrame:
    """Coverage by friends, neighbours in several roles, messages a second, and how load follows subscriptions."""
    subscribes = F.col("online") & (F.col("subscriptions") > 0) & F.col("covered").isNotNull()
    whole = F.col("covered") == F.col("subscriptions")
    events = F.col("events_in") + F.col("events_out")
    shares = long_form(
        peers.groupBy("run_id").agg(
            share_of(F.when(subscribes, whole)).alias("fully_covered"),
            share_of(F.when(subscribes & (F.col("subscriptions") > 1), whole)).alias("fully_covered_multi"),
            share_of(F.when(F.col("neighbours") > 0, F.col("roles") > F.col("neighbours"))).alias("neighbour_overlap"),
            share_of(F.when(F.col("subscriptions") > 0, F.col("events_out") == 0)).alias("leaves"),
            F.round(F.corr(F.col("subscriptions").cast("double"), events.cast("double")), 6).alias("load_correlation"),
            F.max("subscriptions").alias("subscriptions_max"),
        )
    )
    rate = (F.col("messages_in") + F.col("messages_out")) / F.when(F.col("online_s") > 0, F.col("online_s"))
    return shares.union(quantiles(peers, "messages_per_s", rate, 3))


def place_metrics(places: DataFrame) -> DataFrame:
    """Heights, children, and the rejoins that began at a node of each height (Rappel Fig. 11a)."""
    known = places.where(F.col("height").isNotNull())
    by_height = known.groupBy("run_id", "height").agg(F.avg("rejoins").alias("value"))
    named = F.concat(F.lit("rejoins_at_height_"), F.col("height").cast("string")).alias("metric")
    totals = places.groupBy("run_id").agg(
        F.avg("height").alias("height"),
        F.max("height").alias("height_max"),
        F.max("children").alias("children_max"),
    )
    return long_form(totals).union(by_height.select("run_id", named, "value"))


def quantiles(
    rows: DataFrame, name: str, value: Column, digits: int, shares: Sequence[float] = (0.5, 0.95, 0.99)
) -> DataFrame:
    """Nearest-rank quantiles (`name_p50` …) of rounded values, from their counts: exact, and in any order of rows.

    Spark's own exact percentile is slow, and its approximate one depends on the partitions.
    """
    known = rows.select("run_id", F.round(value, digits).alias("value")).where(F.col("value").isNotNull())
    counted = known.groupBy("run_id", "value").agg(F.count("*").alias("count"))
    up_to = F.sum("count").over(Window.partitionBy("run_id").orderBy("value"))
    total = F.sum("count").over(Window.partitionBy("run_id"))
    ranked = counted.select("run_id", "value", up_to.alias("up_to"), total.alias("total"))
    at = [
        F.min(F.when(F.col("up_to") >= F.ceil(F.col("total") * share), F.col("value"))).alias(f"{name}_p{share:.0%}")
        for share in shares
    ]
    found = ranked.groupBy("run_id").agg(*at)
    return long_form(found.toDF(*[column.removesuffix("%") for column in found.columns]))
