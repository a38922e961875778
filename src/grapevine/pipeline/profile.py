"""Profile: what a workload looks like. Spark counts degrees; kernels inside tasks measure overlap on a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions as F

from grapevine.kernels import overlap
from grapevine.kernels.rng import priorities
from grapevine.metrics.distributions import Histogram, ccdf, gini, moments
from grapevine.metrics.power_law import fit_power_law
from grapevine.model import tables
from grapevine.model.config import Config, check_seed, parameter
from grapevine.model.errors import UsageError
from grapevine.model.folder import new_folder
from grapevine.model.location import Location, local_draft
from grapevine.model.manifest import Manifest, read_manifest
from grapevine.model.store import write_table
from grapevine.model.workload import Workload
from grapevine.pipeline.degrees import degree_histograms
from grapevine.pipeline.shipping import WORKLOAD, Shipped, ship
from grapevine.pipeline.stage import Stage
from grapevine.version import __version__

MOST_FRIENDS = 10
_SAMPLE = 301  # the `round` word of these draws


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileConfig(Config):
    """How much of the workload the overlap measures look at; degrees are always complete."""

    sample: int = parameter(1_000, "subscribers sampled for overlap measures", source="Rappel §1: 1,000", low=2)
    least_subscriptions: int = parameter(
        5, "fewest subscriptions of a subscriber in the friends sample", source="Rappel Fig. 1", low=1
    )
    tdi_depth: int = parameter(20, "d of tdi(d)", source="SpiderCast §3.4", low=1)


def profile(
    stage: Stage,
    folders: Sequence[Location],
    out: Location,
    config: ProfileConfig | None = None,
    *,
    seed: int = 1,
    force: bool = False,
    finish: Callable[[Path], object] = lambda folder: None,
) -> Manifest:
    """Write the profile of one or several workloads, side by side, into a new folder.

    `finish` may add to the folder (a picture) before it appears under its name. UsageError if a workload is given
    twice, or has no subscriptions.
    """
    config = config or ProfileConfig()
    check_seed(seed)
    names = _distinct_names(folders)
    manifests = [read_manifest(folder, "workload") for folder in folders]
    for folder, manifest in zip(folders, manifests, strict=True):
        if "subscriptions" not in manifest.tables:
            raise UsageError(f"{folder}: has no subscriptions to profile")
    rows: dict[str, list[dict[str, Any]]] = {table.name: [] for table in tables.PROFILE_TABLES}
    with new_folder(out, kind="profile", force=force) as draft, local_draft(draft) as target:
        for name, folder, stored in zip(names, folders, manifests, strict=True):
            for degree, histogram in degree_histograms(stage, stored.tables_in(folder), name).items():
                label = {"workload": name, "degree": degree}
                rows["degree_statistics"].append(label | _statistics(histogram))
                rows["degree_ccdf"] += [label | row for row in _ccdf_rows(histogram)]
            shipped = ship(stage, folder, stored, WORKLOAD)
            for table, row in _overlap_rows(stage, name, shipped, config, seed):
                rows[table].append({"workload": name} | row)
        written = {
            table.name: write_table(pa.Table.from_pylist(rows[table.name], table.schema), target, table)
            for table in tables.PROFILE_TABLES
        }
        manifest = Manifest(
            kind="profile",
            stage="profile",
            version=__version__,
            config=config.as_dict(),
            seed=seed,
            inputs=[str(folder) for folder in folders],
            tables=written,
        )
        manifest.write(target)
        finish(target)
    return manifest


def _distinct_names(folders: Sequence[Location]) -> list[str]:
    """The folders' names where these differ, else their paths."""
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UsageError(f"{', '.join(map(str, folders))}: the same workload is given twice")
    names = [folder.absolute().name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def _statistics(histogram: Histogram) -> dict[str, Any]:
    """A row of `degree_statistics`; the fit's columns are None where no power law can be fitted."""
    fit, whole = fit_power_law(histogram), fit_power_law(histogram, tail_start=1)
    tail = {
        "exponent": fit and fit.exponent,
        "exponent_error": fit and fit.error,
        "tail_start": fit and fit.tail_start,
        "tail_share": fit and fit.tail_share,
        "fit_distance": fit and fit.distance,
        "whole_exponent": whole and whole.exponent,
        "whole_fit_distance": whole and whole.distance,
    }
    return {"count": histogram.total, **moments(histogram)._asdict(), "gini": gini(histogram)} | tail


def _ccdf_rows(histogram: Histogram) -> list[dict[str, Any]]:
    shares = ccdf(histogram)
    return [
        {"value": int(value), "count": int(count), "ccdf": float(share)}
        for value, count, share in zip(histogram.values, histogram.counts, shares, strict=True)
    ]


def _overlap_rows(
    stage: Stage, name: str, stored: Shipped, config: ProfileConfig, seed: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of `interest_coverage` and `interest_overlap`, each with its table's name.

    Each task loads the workload once and measures its share of the sample; Spark averages.
    """
    tasks = stage.spark.sparkContext.defaultParallelism

    def measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        workload = None
        for batch in batches:
            for part in batch.column(0).to_pylist():
                if workload is None:
                    with stored.opened() as folder:
                        workload = Workload.load(folder)
                yield from measure_overlap(workload, config, seed, part, tasks)

    with stage.step(f"measuring overlap in {name}"):
        shares = stage.spark.range(0, tasks, 1, tasks).mapInArrow(measure, "measure string, d int, value double")
        found = {
            (row.measure, row.d): (row.value, row.sampled)
            for row in shares.groupBy("measure", "d")
            .agg(F.avg("value").alias("value"), F.count("*").alias("sampled"))
            .collect()
        }
    for friends in range(1, MOST_FRIENDS + 1):
        if ("complete", friends) in found:
            names = ("complete", "complete_coverable", "mean_coverage")
            values = {name: found[name, friends][0] for name in names}
            yield "interest_coverage", {"friends": friends, **values, "sampled": found["complete", friends][1]}
    for measure_name, d in (("tdi", config.tdi_depth), ("jaccard", 0)):
        if (measure_name, d) in found:
            value, sampled = found[measure_name, d]
            yield "interest_overlap", {"measure": measure_name, "d": d or None, "value": value, "sampled": sampled}


def measure_overlap(
    workload: Workload, config: ProfileConfig, seed: int, part: int, parts: int
) -> Iterator[pa.RecordBatch]:
    """(measure, d, value) of every `parts`-th sampled subscriber, from the `part`-th on; parts 0 … parts-1 make up the
    sample.

    `d` is the depth of tdi, the number of friends of the coverage measures, and 0 for jaccard.
    """
    sizes = workload.node_topics.sizes()
    rank = priorities(seed, _SAMPLE, workload.node_count)
    subscribers = _lowest(rank, np.flatnonzero(sizes > 0), config.sample)
    by_node, by_topic = workload.node_topics, workload.topic_nodes
    interests = overlap.Interests.of(by_node.starts, by_node.columns, by_topic.starts, by_topic.columns)
    measured: list[tuple[str, int, float]] = []
    for node in subscribers[part::parts]:
        measured.append(("tdi", config.tdi_depth, overlap.top_intersection(node, config.tdi_depth, interests)))
        alike = [
            overlap.jaccard(workload.topics_of(node), workload.topics_of(other))
            for other in subscribers
            if other != node
        ]
        if alike:
            measured.append(("jaccard", 0, float(np.mean(alike))))
    covered = np.empty(MOST_FRIENDS, np.int64)
    for node in _lowest(rank, np.flatnonzero(sizes >= config.least_subscriptions), config.sample)[part::parts]:
        coverable = overlap.cover_by_friends(seed, node, interests, covered)
        for k in range(MOST_FRIENDS):
            measured.append(("complete", k + 1, float(covered[k] == sizes[node])))
            measured.append(("complete_coverable", k + 1, float(covered[k] == coverable)))
            measured.append(("mean_coverage", k + 1, covered[k] / sizes[node]))
    names, depths, values = zip(*measured, strict=True) if measured else ((), (), ())
    yield pa.record_batch(
        {
            "measure": pa.array(names, pa.string()),
            "d": pa.array(depths, pa.int32()),
            "value": pa.array(values, pa.float64()),
        }
    )


def _lowest(rank: NDArray[np.uint64], nodes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The so many nodes of lowest rank, in the order of rank."""
    return nodes[np.argsort(rank[nodes], kind="stable")[:count]]
