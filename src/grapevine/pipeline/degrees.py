"""Degree histograms of a stored workload, counted by Spark."""

from __future__ import annotations

import numpy as np
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
    found = {}
    for degree, owner in DEGREES.items():
        with stage.step(f"counting {degree} of {name}"):
            counted = pairs.groupBy(owner).agg(F.count("*").alias("value")).groupBy("value").count()
            rows = sorted(tuple(row) for row in counted.collect())
        if not rows:
            raise UsageError(f"{folder}: has no subscriptions")
        values, counts = zip(*rows, strict=True)
        found[degree] = Histogram(np.array(values, np.int64), np.array(counts, np.int64))
    return found
