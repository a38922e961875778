"""One Spark session for the whole suite, and the folder of real traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from grapevine.cli.doctor import data_folder
from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage

settings.register_profile("suite", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    fast_start = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    working = Stage(SparkSettings(master="local[2]", driver_memory="2g", conf=fast_start), quiet=True)
    yield working
    if "spark" in vars(working):  # opened by the first test that needs it; none may have
        working.spark.stop()


@pytest.fixture(scope="session")
def traces() -> Path:
    folder = data_folder()
    if folder is None:
        pytest.skip("no real traces here: set GRAPEVINE_DATA to their folder")
    return folder
