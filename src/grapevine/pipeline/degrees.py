"""Degree histograms of a stored workload, counted by Spark."""

from __future__ import annotations

from functools import reduce

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from grapevine.metrics.distributions import Histogram
from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.model.location import Location
from grapevine.pipeline.stage import Stage

DEGREES = {"subscriptions": "node", "subscribers": "topic"}  # what is counted → for whom


def degree_histograms(stage: Stage, folder: Location, name: str) -> dict[str, Histogram]:
    """The histograms of `DEGREES`: subscriptions per subscriber, subscribers per topic. `name` is for the progress bar.

    Who has none is not counted (docs/papers.md). UsageError if there are no subscriptions.
    """
    pairs = stage.read(folder, tables.SUBSCRIPTIONS)
    ends = [
        pairs.select(F.lit(degree).alias("degree"), F.col(owner).alias("owner")) for degree, owner in DEGREES.items()
    ]
    degrees = reduce(DataFrame.union, ends).groupBy("degree", "owner").agg(F.count("*").alias("value"))
    with stage.step(f"counting degrees of {name}"):
        rows = degrees.groupBy("degree", "value").count().collect()
    if not rows:
        raise UsageError(f"{folder}: has no subscriptions")
    found = {}
    for degree in DEGREES:
        values, counts = zip(*sorted((row.value, row["count"]) for row in rows if row.degree == degree), strict=True)
        found[degree] = Histogram(np.array(values, np.int64), np.array(counts, np.int64))
    return found
