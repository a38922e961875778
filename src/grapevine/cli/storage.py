"""Stages from the options of commands, and where traces are."""

from __future__ import annotations

import os

from grapevine.cli.doctor import DATA_VARIABLE, data_folder
from grapevine.model.location import Location, is_url
from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage


def stage_of(
    conf: list[str] | None, *, master: str | None = None, driver_memory: str | None = None, quiet: bool = False
) -> Stage:
    """A stage with these options of a command; its Spark starts when it is needed."""
    return Stage(SparkSettings.gather(master=master, driver_memory=driver_memory, conf=tuple(conf or ())), quiet=quiet)


def for_files(conf: list[str] | None, *, quiet: bool = False) -> Stage:
    """A stage whose Spark, if it is needed at all, serves its file systems and asks no cluster for anything."""
    return Stage(SparkSettings.gather(conf=tuple(conf or ())).for_files(), quiet=quiet)


def traces_folder(stage: Stage) -> Location | None:
    """The folder of real traces, as `data_folder` finds it; GRAPEVINE_DATA may also be a URL."""
    chosen = os.environ.get(DATA_VARIABLE, "")
    return stage.location(chosen) if is_url(chosen) else data_folder()
