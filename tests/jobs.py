"""The Spark jobs that a stage takes: more than processor time, they are what a stage on few rows costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from grapevine.pipeline.stage import Stage


@contextmanager
def jobs_of(stage: Stage) -> Iterator[list[int]]:
    """The ids of the jobs that a quiet stage runs inside the block, on this stage's session; there when it ends."""
    context, group = stage.spark.sparkContext, uuid4().hex
    found: list[int] = []
    context.setJobGroup(group, "counted")
    try:
        yield found
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    found += context.statusTracker().getJobIdsForGroup(group)
