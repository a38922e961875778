"""Measure: from the stored tables of all runs to metrics, series over seeds, distributions and progress.

Aggregation is native Spark over the runs' Parquet files; the definitions are those of `metrics/traffic.py`, and the
tests compare the two.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from grapevine import __version__
from grapevine.model import tables
from grapevine.model.manifest import Manifest, read_manifest
from grapevine.model.store import read_table, write_table
from grapevine.pipeline.frames import long_form
from grapevine.pipeline.measure_timed import delivery_metrics, peer_metrics, place_metrics
from grapevine.pipeline.stage import Stage, spark_schema

_GROUP = "system", "workload", "parameters"
_FROM_MANIFEST = (  # what no table holds
    "lookup_hops",
    "utility",
    "ring",
    "top_intersection",
    "popularity_exponent",
    "random_coverage",
    "lost_events",
    "repair_ms",
    "repair_ms_p95",
    "best_friends_cover",
    "false_positives_50",
    "false_positives_100",
    "false_positives_200",
    "messages",
    "wall_s",
    "cpu_s",
)
_DEGREES = 15, 200  # Vitis Fig. 11 asks for the shares above these
_RARELY = 5  # OMen §6.3 counts nodes in fewer backup sets
_FEW_OF_ALL = 0.05  # OMen §6.4 counts nodes that know fewer than this share of all
_CROWD_ROUNDS = 20  # twice the time after which a newcomer counts (Vitis §IV-E)


@dataclass(frozen=True, slots=True)
class Run:
    """What a measurement needs to know of a run, simulated or live."""

    run_id: str  # its tables lie in `simulations/run_id=…`
    system: str
    workload: str
    parameters: str  # what the grid set, as JSON with sorted keys
    seed: int
    moving: bool  # whether its course is worth a table of its own


def measure(
    stage: Stage,
    runs: list[Run],
    failed: dict[str, str],
    out: Path,
    *,
    made_by: str,
    config: dict[str, Any],
    inputs: list[str],
    counts: dict[str, Any] | None = None,
) -> Manifest:
    """Write the tables over all finished runs, and the manifest last."""
    for table in tables.EXPERIMENT_TABLES:
        shutil.rmtree(out / table.name, ignore_errors=True)
    (out / "manifest.json").unlink(missing_ok=True)
    done = [run for run in runs if run.run_id not in failed]
    manifests = {run.run_id: read_manifest(_simulation(out, run), "simulation") for run in done}
    rows = {tables.RUNS.name: write_table(_runs(runs, failed, manifests), out, tables.RUNS)}
    if done:
        rows |= _measure_finished(stage, done, manifests, out)
    else:
        for table in tables.EXPERIMENT_TABLES[1:]:
            rows[table.name] = write_table(table.schema.empty_table(), out, table)
    manifest = Manifest(
        kind="experiment",
        stage=made_by,
        version=__version__,
        config=config,
        inputs=inputs,
        tables=rows,
        counts={"runs": len(runs), "failed": len(failed), **(counts or {})},
    )
    manifest.write(out)
    return manifest


def _simulation(out: Path, run: Run) -> Path:
    return out / "simulations" / f"run_id={run.run_id}"


def _runs(runs: list[Run], failed: dict[str, str], manifests: dict[str, Manifest]) -> pa.Table:
    summaries = {run_id: manifest.counts for run_id, manifest in manifests.items()}
    rows = [
        {
            "run_id": run.run_id,
            "system": run.system,
            "workload": run.workload,
            "parameters": run.parameters,
            "seed": run.seed,
            "status": "failed" if run.run_id in failed else "done",
            "error": failed.get(run.run_id),
            "wall_s": summaries.get(run.run_id, {}).get("wall_s"),
            "cpu_s": summaries.get(run.run_id, {}).get("cpu_s"),
        }
        for run in runs
    ]
    return pa.Table.from_pylist(rows, schema=tables.RUNS.schema)


def _measure_finished(stage: Stage, done: list[Run], manifests: dict[str, Manifest], out: Path) -> dict[str, int]:
    spark = stage.spark
    described = [(run.run_id, run.system, run.workload, run.parameters) for run in done]
    runs = F.broadcast(spark.createDataFrame(described, ["run_id", *_GROUP]))
    events, nodes = _all(stage, out, done, tables.EVENTS), _all(stage, out, done, tables.NODE_LOAD)
    topics, rounds = _all(stage, out, done, tables.TOPIC_OVERLAY), _all(stage, out, done, tables.ROUNDS)
    stored = [
        (run_id, name, float(manifest.counts[name]))
        for run_id, manifest in manifests.items()
        for name in _FROM_MANIFEST
        if manifest.counts.get(name) is not None
    ]
    messages = _all(stage, out, done, tables.MESSAGES)
    metrics = (
        traffic_metrics(events)
        .union(node_metrics(nodes))
        .union(topic_metrics(topics))
        .union(round_metrics(rounds))
        .union(message_metrics(messages, rounds))
        .union(repair_metrics(_all(stage, out, done, tables.REPAIRS)))
    )
    timed = [run for run in done if manifests[run.run_id].tables.get(tables.PEERS.name)]
    if timed:
        metrics = (
            metrics.union(delivery_metrics(_all(stage, out, timed, tables.DELIVERIES)))
            .union(peer_metrics(_all(stage, out, timed, tables.PEERS)))
            .union(place_metrics(_all(stage, out, timed, tables.PLACES)))
        )
    if stored:
        metrics = metrics.union(spark.createDataFrame(stored, ["run_id", "metric", "value"]))
    rows = {tables.METRICS.name: stage.write(metrics, out, tables.METRICS, "measuring runs")}
    metrics = stage.read(out, tables.METRICS)
    series = over_seeds(metrics.join(runs, "run_id"), *_GROUP, "metric")
    rows[tables.SERIES.name] = stage.write(series.coalesce(1), out, tables.SERIES, "series over seeds")
    spread = distributions(nodes.join(runs, "run_id"))
    rows[tables.DISTRIBUTIONS.name] = stage.write(spread.coalesce(1), out, tables.DISTRIBUTIONS, "distributions")
    moving = {run.run_id for run in done if run.moving}
    going = rounds.where(F.col("run_id").isin(sorted(moving))) if moving else rounds.limit(0)
    course = over_seeds(progress_rows(going).join(runs, "run_id"), *_GROUP, "round", "metric")
    rows[tables.PROGRESS.name] = stage.write(course.coalesce(1), out, tables.PROGRESS, "progress")
    return rows


def _all(stage: Stage, out: Path, done: list[Run], table: tables.Table) -> DataFrame:
    """One table of all runs, with the run's id from the folder's name."""
    root = out / "simulations"
    schema = spark_schema(table).add("run_id", "string")
    paths = [str(_simulation(out, run) / table.name) for run in done]
    return stage.spark.read.schema(schema).option("basePath", str(root)).parquet(*paths)


def _weighted(name: str) -> Column:
    return F.sum(F.col("rate") * F.col(name))


def _ratio(part: Column, whole: Column) -> Column:
    return F.when(whole != 0, part / whole)


def traffic_metrics(events: DataFrame) -> DataFrame:
    """Hit ratio, overhead, hops and notifications: `metrics.traffic.summarise_events` in Spark."""
    received = _weighted("wanted") + _weighted("duplicate") + _weighted("unwanted")
    total = F.sum("rate")
    return long_form(
        events.groupBy("run_id").agg(
            _ratio(_weighted("reached"), _weighted("subscribers")).alias("hit_ratio"),
            _ratio(_weighted("unwanted"), received).alias("overhead"),
            _ratio(_weighted("hops_sum"), _weighted("reached")).alias("hops"),
            _ratio(_weighted("hops_p99"), total).alias("hops_p99"),
            F.max("hops_max").alias("hops_max"),
            _ratio(received, total).alias("notifications_per_event"),
            _ratio(_weighted("duplicate"), total).alias("duplicates_per_event"),
            _ratio(_weighted("relays"), total).alias("relays_per_event"),
        )
    )


def node_metrics(nodes: DataFrame) -> DataFrame:
    """Degrees of online nodes, and the share of nodes with much overhead."""
    online = F.col("online")
    counted = nodes.withColumn("count", F.sum(online.cast("long")).over(Window.partitionBy("run_id")))
    above = {f"degree_over_{n}": F.avg(F.when(online, (F.col("degree") > n).cast("double"))) for n in _DEGREES}
    return long_form(
        counted.groupBy("run_id").agg(
            F.avg(F.when(online, F.col("degree"))).alias("degree"),
            F.sqrt(
                F.sum(F.when(online, F.col("degree") * F.col("degree"))) / F.sum(online.cast("long"))
                - F.pow(F.avg(F.when(online, F.col("degree"))), 2)
            ).alias("degree_deviation"),
            F.max(F.when(online, F.col("degree"))).alias("degree_max"),
            F.avg((F.col("overhead") > 0.2).cast("double")).alias("nodes_over_20_percent"),
            F.avg(F.when(online, F.col("view"))).alias("view"),
            F.avg(F.when(online, (F.col("view") < _FEW_OF_ALL * F.col("count")).cast("double"))).alias("small_views"),
            F.avg(F.when(online, F.col("backups"))).alias("backups"),
            F.avg(F.when(online, F.col("backups") / F.col("count"))).alias("backups_share"),
            F.min(F.when(online, F.col("backup_of"))).alias("backup_of_min"),
            F.max(F.when(online, F.col("backup_of"))).alias("backup_of_max"),
            F.avg(F.when(online, (F.col("backup_of") < _RARELY).cast("double"))).alias("backup_of_rarely"),
            *(column.alias(name) for name, column in above.items()),
        )
    )


def topic_metrics(topics: DataFrame) -> DataFrame:
    """Clusters, gateways, connectivity and diameter of topics that have online subscribers."""
    return long_form(
        topics.where(F.col("subscribers") > 0)
        .groupBy("run_id")
        .agg(
            F.avg("clusters").alias("clusters_per_topic"),
            F.avg((F.col("clusters") == 1).cast("double")).alias("connected_topics"),
            F.sum("clusters").alias("clusters"),
            F.sum((F.col("clusters") > 1).cast("long")).alias("partitioned_topics"),
            F.avg("gateways").alias("gateways_per_topic"),
            F.max("diameter").alias("diameter_max"),
            F.avg("diameter").alias("diameter"),
        )
    )


def round_metrics(rounds: DataFrame) -> DataFrame:
    """The worst moment of a run, and the worst of its flash crowd: of the rounds after the network grew most."""
    growth = F.col("online") - F.lag("online").over(Window.partitionBy("run_id").orderBy("round"))
    measured = "hit_ratio", "degree", "degree_max", "diameter", "connected_topics"
    grown = rounds.select("run_id", "round", *measured, growth.alias("growth"))
    first = F.max(F.struct("growth", (-F.col("round")).alias("minus_round"))).alias("most")  # the first of equals
    crowd = grown.groupBy("run_id").agg(first)
    since = F.col("round") + F.col("most.minus_round")
    in_crowd = (F.col("most.growth") > 0) & since.between(0, _CROWD_ROUNDS)
    return long_form(
        grown.join(crowd, "run_id")
        .groupBy("run_id")
        .agg(
            F.min("hit_ratio").alias("hit_ratio_min"),
            F.min(F.when(in_crowd, F.col("hit_ratio"))).alias("hit_ratio_min_crowd"),
            F.min("connected_topics").alias("connected_topics_min"),
            F.avg("degree").alias("degree_on_the_way"),
            F.avg("degree_max").alias("degree_max_on_the_way"),
            F.avg("diameter").alias("diameter_on_the_way"),
        )
    )


def message_metrics(messages: DataFrame, rounds: DataFrame) -> DataFrame:
    """Control messages per join or leave, all and by kind, and what they carried, after the first measured round.

    Sums are of whole numbers, so they do not depend on the order of rows.
    """
    begun = rounds.groupBy("run_id").agg(F.min("round").alias("begun"))
    later = F.col("round") > F.col("begun")
    changes = rounds.join(begun, "run_id").where(later).groupBy("run_id").agg(F.sum(F.expr("joined + left")).alias("n"))
    counted = messages.join(begun, "run_id").where(later)
    counts = counted.groupBy("run_id", "kind").agg(F.sum("count").alias("sent"))
    everything = counted.groupBy("run_id").agg(F.sum("count").alias("sent")).withColumn("kind", F.lit("messages"))
    carried = counted.groupBy("run_id").agg(F.sum("descriptors").alias("sent")).withColumn("kind", F.lit("descriptors"))
    named = F.concat(F.regexp_replace("kind", "-", "_"), F.lit("_per_change")).alias("metric")
    both = counts.unionByName(everything).unionByName(carried).join(changes, "run_id").where("n > 0")
    return both.select("run_id", named, (F.col("sent") / F.col("n")).alias("value"))


def repair_metrics(repairs: DataFrame) -> DataFrame:
    """Churn events that were handled: their length in rounds, the shadow set, the links added."""
    return long_form(
        repairs.where(F.col("finished").isNotNull())
        .groupBy("run_id")
        .agg(
            F.avg(F.col("finished") - F.col("round")).alias("repair_rounds"),
            F.avg("shadow").alias("shadow"),
            F.avg("added").alias("links_per_repair"),
        )
    )


def progress_rows(rounds: DataFrame) -> DataFrame:
    """One row per run, round and metric."""
    names = ["online", "ring", "hit_ratio", "overhead", "hops", "degree", "connected_topics", "degree_max", "diameter"]
    names += ["delay_ms_p50", "delay_ms_p95", "stretch_p50", "stretch_p95"]
    shown = rounds.select("run_id", "round", *names)
    return long_form(shown, "run_id", "round").where(F.col("value").isNotNull())


def over_seeds(rows: DataFrame, *group: str) -> DataFrame:
    """Mean and 95 % confidence interval (Student) of `value` in each group; the mean itself for a single run.

    Values are summed in ascending order: sums of floats depend on their order, and that of rows on the partitions.
    """
    from scipy.stats import t as student  # here, because it takes half a second to import

    quantile = F.create_map(*(F.lit(x) for n in range(2, 101) for x in (n, float(student.ppf(0.975, n - 1)))))
    values = F.array_sort(F.collect_list("value")).alias("values")
    known = rows.where(F.col("value").isNotNull()).groupBy(*group).agg(values)
    counted = known.select(*group, "values", F.size("values").alias("runs"))
    mean = F.aggregate("values", F.lit(0.0), lambda total, x: total + x) / F.col("runs")
    found = counted.select(*group, "values", "runs", mean.alias("mean"))
    squares = F.aggregate("values", F.lit(0.0), lambda total, x: total + (x - F.col("mean")) * (x - F.col("mean")))
    spread = F.sqrt(squares / (F.col("runs") - 1) / F.col("runs")) * quantile[F.least("runs", F.lit(100))]
    half = F.when(F.col("runs") > 1, spread).otherwise(0.0)
    low, high = (F.col("mean") - half).alias("low"), (F.col("mean") + half).alias("high")
    return found.select(*group, "runs", "mean", low, high).orderBy(*group)


def distributions(nodes: DataFrame) -> DataFrame:
    """Shares of online nodes by overhead (steps of 0.1), by degree, by the size of their view, and by the backup sets
    that they are in."""
    online = nodes.where("online")
    step = F.least(F.floor(F.col("overhead") * 10 + 1e-9) / 10, F.lit(0.9))
    overhead = online.where(F.col("overhead").isNotNull()).select(
        *_GROUP, F.lit("overhead").alias("quantity"), step.cast("double").alias("at")
    )
    counted = overhead
    for name in ("degree", "view", "backup_of"):
        known = online.where(F.col(name).isNotNull())
        counted = counted.union(
            known.select(*_GROUP, F.lit(name).alias("quantity"), F.col(name).cast("double").alias("at"))
        )
    counted = counted.groupBy(*_GROUP, "quantity", "at").agg(F.count("*").alias("count"))
    totals = counted.groupBy(*_GROUP, "quantity").agg(F.sum("count").alias("total"))
    joined = counted.join(totals, [*_GROUP, "quantity"])
    return joined.select(*_GROUP, "quantity", "at", (F.col("count") / F.col("total")).alias("share")).orderBy(
        *_GROUP, "quantity", "at"
    )


def series_rows(folder: Path) -> list[dict[str, Any]]:
    """The series of a measured experiment, with its parameters as a dict."""
    rows: list[dict[str, Any]] = read_table(folder, tables.SERIES).to_pylist()
    return [row | {"parameters": json.loads(row["parameters"])} for row in rows]
