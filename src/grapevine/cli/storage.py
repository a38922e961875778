"""What users name by paths or URLs, in commands that compute without Spark: it starts only when a URL is opened."""

from __future__ import annotations

import os

from grapevine.cli.doctor import DATA_VARIABLE, data_folder
from grapevine.model.location import Location, is_url
from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage


def for_files(conf: list[str] | None, *, quiet: bool = False) -> Stage:
    """A stage whose Spark, if it is needed at all, serves its file systems and asks no cluster for anything."""
    return Stage(SparkSettings.gather(conf=tuple(conf or ())).for_files(), quiet=quiet)


def traces_folder(stage: Stage) -> Location | None:
    """The folder of real traces, as `data_folder` finds it; GRAPEVINE_DATA may also be a URL."""
    chosen = os.environ.get(DATA_VARIABLE, "")
    return stage.location(chosen) if is_url(chosen) else data_folder()
