"""The stage of a command about workloads, from its options."""

from __future__ import annotations

from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage


def stage_of(master: str | None, driver_memory: str | None, conf: list[str] | None, *, quiet: bool) -> Stage:
    """A stage with these settings of Spark, which starts when it is needed."""
    return Stage(SparkSettings.gather(master=master, driver_memory=driver_memory, conf=tuple(conf or ())), quiet=quiet)
