"""Measure: from the stored tables of all runs to metrics, series over seeds, distributions and progress.

Aggregation is native Spark over the runs' Parquet files. What is measured of which table is declared in `metrics/`, or
by the system that fills the table; only what takes several tables is written here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from grapevine.metrics.course import PER_CHANGE
from grapevine.metrics.course import PROGRESS as COURSE_METRICS
from grapevine.metrics.findings import CPU_S, WALL_S, is_finding
from grapevine.metrics.measured import MeasuredTable, Quantity, measured_tables
from grapevine.model import tables
from grapevine.model.location import Location
from grapevine.model.manifest import Manifest, read_manifest
from grapevine.model.store import read_table, write_table
from grapevine.pipeline.declared import metrics_of
from grapevine.pipeline.frames import long_form
from grapevine.pipeline.stage import Stage, spark_path, spark_schema
from grapevine.sim.result import KIND as SIMULATION
from grapevine.sim.result import run_folder
from grapevine.systems.registry import all_systems

KIND = "experiment"
_GROUP = "system", "workload", "parameters"


@dataclass(frozen=True, slots=True)
class Run:
    """What a measurement needs to know of a run, simulated or live."""

    run_id: str  # its tables lie in the folder `run_id=…` of the simulations
    system: str
    workload: str
    parameters: str  # what the grid set, as JSON with sorted keys
    seed: int
    show_course: bool  # whether it has churn, so that `progress` is to tell how it went


def measure(
    stage: Stage,
    runs: list[Run],
    failed: dict[str, str],
    simulations: Location,
    out: Location,
    about: Manifest,
) -> Manifest:
    """Write the tables over all finished runs into `out`, a draft of the caller's, and the manifest last.

    The runs lie in `simulations`; `failed` says why the others failed, by run id. `about` is the manifest but for the
    tables and the counts of runs.
    """
    done = [run for run in runs if run.run_id not in failed]
    stored = Stored.of(stage, simulations, done)
    rows = {tables.RUNS.name: write_table(_runs(runs, failed, stored.manifests), out, tables.RUNS)}
    if done:
        rows |= _measure_finished(stored, done, out)
    else:
        for table in tables.EXPERIMENT_TABLES[1:]:
            rows[table.name] = write_table(table.schema.empty_table(), out, table)
    manifest = replace(about, tables=rows, counts={"runs": len(runs), "failed": len(failed)} | about.counts)
    manifest.write(out)
    return manifest


@dataclass(frozen=True, slots=True)
class Stored:
    """The finished runs where they are stored."""

    stage: Stage
    simulations: Location
    manifests: dict[str, Manifest]  # by run id

    @classmethod
    def of(cls, stage: Stage, simulations: Location, done: list[Run]) -> Stored:
        """Look at the runs; UsageError if one is not complete."""
        folders = {run.run_id: run_folder(simulations, run.run_id) for run in done}
        return cls(stage, simulations, {run: read_manifest(folder, SIMULATION) for run, folder in folders.items()})

    def all(self, done: list[Run], table: tables.Table) -> DataFrame:
        """One table of all these runs, with the run's id from the folder's name."""
        folders = [(self.manifests[run.run_id], run_folder(self.simulations, run.run_id)) for run in done]
        paths = [spark_path(manifest.tables_in(folder) / table.name) for manifest, folder in folders]
        schema = spark_schema(table).add("run_id", "string")
        reader = self.stage.spark.read.schema(schema).option("basePath", str(self.simulations))
        return self.stage.gather(reader.parquet(*paths))

    def filled(self, done: list[Run]) -> Iterator[tuple[MeasuredTable, list[Run]]]:
        """What is declared, with the runs that have rows in that table; without those that no run has."""
        all_systems()  # they declare tables of their own
        for measured in measured_tables():
            runs = [run for run in done if self.manifests[run.run_id].tables.get(measured.table.name)]
            if runs:
                yield measured, runs


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
            **{name: summaries.get(run.run_id, {}).get(name) for name in (WALL_S.name, CPU_S.name)},
        }
        for run in runs
    ]
    return pa.Table.from_pylist(rows, schema=tables.RUNS.schema)


def _measure_finished(stored: Stored, done: list[Run], out: Location) -> dict[str, int]:
    stage = stored.stage
    described = [{name: getattr(run, name) for name in ("run_id", *_GROUP)} for run in done]
    runs = stage.frame_of(pa.Table.from_pylist(described))
    rows = {tables.METRICS.name: stage.write(_metrics(stored, done), out, tables.METRICS, "measuring runs")}
    metrics = stage.read(out, tables.METRICS)
    series = over_seeds(metrics.join(runs, "run_id"), *_GROUP, "metric")
    rows[tables.SERIES.name] = stage.write(series.coalesce(1), out, tables.SERIES, "series over seeds")
    spread = distributions(
        [
            (stored.all(filled, measured.table).join(runs, "run_id"), measured.quantities)
            for measured, filled in stored.filled(done)
            if measured.quantities
        ]
    )
    rows[tables.DISTRIBUTIONS.name] = stage.write(spread.coalesce(1), out, tables.DISTRIBUTIONS, "distributions")
    rounds, shown = stored.all(done, tables.ROUNDS), sorted({run.run_id for run in done if run.show_course})
    chosen = rounds.where(F.col("run_id").isin(shown)) if shown else rounds.limit(0)
    course = over_seeds(progress_rows(chosen).join(runs, "run_id"), *_GROUP, "round", "metric")
    rows[tables.PROGRESS.name] = stage.write(course.coalesce(1), out, tables.PROGRESS, "progress")
    return rows


def _metrics(stored: Stored, done: list[Run]) -> DataFrame:
    """The table `metrics`: of every declared table where a run has rows in it, of messages, and from the manifests."""
    parts = []
    for measured, filled in stored.filled(done):
        if measured.metrics:
            parts.append(metrics_of(stored.all(filled, measured.table), measured))
    messages, rounds = (stored.all(done, table) for table in (tables.MESSAGES, tables.ROUNDS))
    parts.append(message_metrics(messages, rounds))
    findings = [
        {"run_id": run_id, "metric": name, "value": float(value)}
        for run_id, manifest in stored.manifests.items()
        for name, value in manifest.counts.items()
        if value is not None and is_finding(name)
    ]
    if findings:
        parts.append(stored.stage.frame_of(pa.Table.from_pylist(findings)))
    return reduce(DataFrame.union, parts)


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
    named = F.regexp_replace(F.lit(PER_CHANGE.name), r"\{kind\}", F.regexp_replace("kind", "-", "_")).alias("metric")
    both = counts.unionByName(everything).unionByName(carried).join(changes, "run_id").where("n > 0")
    return both.select("run_id", named, (F.col("sent") / F.col("n")).alias("value"))


def progress_rows(rounds: DataFrame) -> DataFrame:
    """One row per run, round and metric."""
    chosen = rounds.select("run_id", "round", *(metric.name for metric in COURSE_METRICS))
    return long_form(chosen, "run_id", "round").where(F.col("value").isNotNull())


def over_seeds(rows: DataFrame, *group: str) -> DataFrame:
    """Mean and 95 % confidence interval (Student) of `value` in each group; the mean itself for a single run.

    Values are summed in ascending order: sums of floats depend on their order, and that of rows on the partitions.
    """
    from scipy.stats import t as student  # here, because it takes half a second to import

    # As one text: a call of Spark for each of the numbers would take longer than the query.
    of_counts = ", ".join(f"{n}, {float(student.ppf(0.975, n - 1))!r}D" for n in range(2, 101))
    quantile = F.expr(f"map({of_counts})")
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


def distributions(measured: Iterable[tuple[DataFrame, Iterable[Quantity]]]) -> DataFrame:
    """Shares of online nodes by each quantity of these tables: by its value, or by the step that the value is in."""
    parts = [_counted(nodes, quantity) for nodes, quantities in measured for quantity in quantities]
    counted = reduce(DataFrame.union, parts)
    counted = counted.groupBy(*_GROUP, "quantity", "at").agg(F.count("*").alias("count"))
    totals = counted.groupBy(*_GROUP, "quantity").agg(F.sum("count").alias("total"))
    joined = counted.join(totals, [*_GROUP, "quantity"])
    return joined.select(*_GROUP, "quantity", "at", (F.col("count") / F.col("total")).alias("share")).orderBy(
        *_GROUP, "quantity", "at"
    )


def _counted(nodes: DataFrame, quantity: Quantity) -> DataFrame:
    """A row per online node whose value is known: the lower end of its step, or the value itself."""
    at = F.col(quantity.column)
    if quantity.steps is not None:
        last = (quantity.steps - 1) / quantity.steps
        at = F.least(F.floor(at * quantity.steps + 1e-9) / quantity.steps, F.lit(last))
    known = nodes.where(F.col("online") & F.col(quantity.column).isNotNull())
    return known.select(*_GROUP, F.lit(quantity.column).alias("quantity"), at.cast("double").alias("at"))


def series_rows(folder: Location) -> list[dict[str, Any]]:
    """The series of a measured experiment; UsageError if the folder is none.

    Parameters are a dict, and `by_seed` holds the values, by seed, that a point is the mean of.
    """
    stored = read_manifest(folder, KIND).tables_in(folder)
    runs = {row["run_id"]: row for row in read_table(stored, tables.RUNS).to_pylist()}
    values: dict[tuple[str, ...], dict[int, float]] = {}
    for found in read_table(stored, tables.METRICS).to_pylist():
        if found["value"] is not None:
            run = runs[found["run_id"]]
            values.setdefault(_point(run, found["metric"]), {})[run["seed"]] = found["value"]
    rows: list[dict[str, Any]] = read_table(stored, tables.SERIES).to_pylist()
    parameters = (json.loads(row["parameters"]) for row in rows)
    return [
        row | {"parameters": read, "by_seed": values[_point(row, row["metric"])]}
        for row, read in zip(rows, parameters, strict=True)
    ]


def _point(row: dict[str, Any], metric: str) -> tuple[str, ...]:
    return *(row[key] for key in _GROUP), metric
