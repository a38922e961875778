"""Connectivity and diameter of every topic of an overlay, in Spark: for overlays too large for one machine.

The links between subscribers of the same topic come from two joins; each topic's graph is then one group for a kernel.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from grapevine.kernels import csr
from grapevine.metrics.diameters import topic_diameters
from grapevine.metrics.overlay import topic_clusters
from grapevine.model import tables
from grapevine.model.location import Location
from grapevine.model.manifest import read_manifest
from grapevine.pipeline.stage import Stage, spark_schema


def topic_graphs(stage: Stage, simulation: Location, workload: Location) -> DataFrame:
    """The table `topic_graphs` of a stored run: of each topic that somebody online wants, from links and subscriptions.

    UsageError if one of the folders is not complete.
    """
    ran = read_manifest(simulation, "simulation").tables_in(simulation)
    wanted = read_manifest(workload, "workload").tables_in(workload)
    online = stage.read(ran, tables.NODE_LOAD).where("online").select("node")
    links = stage.read(ran, tables.LINKS).select("source", "target")
    return graphs_of(stage, stage.read(wanted, tables.SUBSCRIPTIONS).join(online, "node"), links)


def graphs_of(stage: Stage, wants: DataFrame, links: DataFrame) -> DataFrame:
    """The table `topic_graphs` from (node, topic) of the online subscribers, and (source, target) of all links.

    Links count both ways; those to nodes that are not among the topic's subscribers do not count.
    """
    both = links.union(links.select(F.col("target"), F.col("source"))).distinct()
    sources = wants.select("topic", F.col("node").alias("source"))
    targets = wants.select("topic", F.col("node").alias("target"))
    edges = sources.join(both, "source").join(targets, ["topic", "target"]).select("topic", "source", "target")
    alone = wants.select("topic", F.col("node").alias("source"), F.lit(-1).alias("target"))  # who has no such link
    rows, schema = edges.union(alone), spark_schema(tables.TOPIC_GRAPHS)
    return stage.apply(rows, F.col("topic"), _measure, schema, "looking at the topics' graphs")


def _measure(rows: pa.Table) -> pa.Table:
    """One topic's row from its directed edges; a target of -1 only names the member."""
    source, target = rows["source"].to_numpy(), rows["target"].to_numpy()
    members = np.unique(source)
    linked = target >= 0
    ends = np.searchsorted(members, source[linked]), np.searchsorted(members, target[linked])
    links = csr.from_pairs(ends[0].astype(np.int32), ends[1].astype(np.int32), len(members), len(members))
    subscribers = np.array([0, len(members)], np.int64), np.arange(len(members), dtype=np.int32)
    alive, found, far = np.ones(len(members), np.bool_), np.zeros((1, 3), np.int64), np.zeros(1, np.int64)
    topic_clusters(0, 1, subscribers, links, alive, alive, found)
    topic_diameters(np.zeros(1, np.int32), subscribers, links, alive, far)
    values = rows["topic"][0].as_py(), *found[0].tolist(), int(far[0])
    columns = [pa.array([value], field.type) for value, field in zip(values, tables.TOPIC_GRAPHS.schema, strict=True)]
    return pa.table(columns, schema=tables.TOPIC_GRAPHS.schema)
