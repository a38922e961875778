"""One Spark session for the whole suite, in one of its processes; and the folder of real traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling

from grapevine.cli.doctor import data_folder
from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage

settings.register_profile("suite", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

SPARK = "spark"


class OneSparkAndWholeFiles(LoadGroupScheduling):
    """Tests that use Spark go to one process, the others file by file, so that each fixture is made once."""

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if nodeid.endswith(f"@{SPARK}") else nodeid.split("::", 1)[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    """What `--dist loadgroup` means here; other ways are left to xdist."""
    return OneSparkAndWholeFiles(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark's tests first, since they are one long piece of work, and beside them what compiles most."""
    for item in items:
        if "stage" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(SPARK))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if item.get_closest_marker("xdist_group"):
        return 0
    return 1 if item.path.parent.name == "systems" else 2


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """A stage whose session opens with the first test that needs it: small data, so as little machinery as possible."""
    fast_start = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    working = Stage(SparkSettings(master="local[2]", driver_memory="2g", conf=fast_start), quiet=True)
    yield working
    if "spark" in vars(working):  # none may have needed it
        working.spark.stop()


@pytest.fixture(scope="session")
def traces() -> Path:
    folder = data_folder()
    if folder is None:
        pytest.skip("no real traces here: set GRAPEVINE_DATA to their folder")
    return folder
