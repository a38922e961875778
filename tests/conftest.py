"""One Spark session for the whole suite, in one of its processes; and the folder of real traces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from grapevine.cli.doctor import data_folder
from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage

_PROPERTIES = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("suite", max_examples=15, derandomize=True, **_PROPERTIES)
settings.register_profile("full", max_examples=100, **_PROPERTIES)

SPARK = "spark"
WAITING = {"net", "cli", "examples"}  # folders of tests that start nodes and commands


def pytest_configure(config: pytest.Config) -> None:
    """`make test` tries the same examples of every property each time; `make test-full` searches for new ones."""
    settings.load_profile("suite" if config.getoption("markexpr") else "full")


@cache
def uses_spark(file: Path) -> bool:
    """Whether tests of this file take the fixture `stage`."""
    return "stage: Stage" in file.read_text()


@cache
def simulates(file: Path) -> bool:
    """Whether tests of this file run experiments or simulations."""
    text = file.read_text()
    return "simulate" in text or "sweep" in text


class OneSparkAndWholeFiles(LoadScopeScheduling):  # type: ignore[misc]
    """Files whose tests use Spark go to one process together, the others file by file: each fixture is made once.

    Files decide, not marks: `--dist loadgroup` of pytest-xdist 3.8 does not see its marks under pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return SPARK if uses_spark(self.config.rootpath / file) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """What `--dist loadfile` means here; other ways are left to xdist."""
    return OneSparkAndWholeFiles(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark's tests first, since they are one long piece of work, and of these the ones that simulate last: by then
    others have compiled what they need. Then a file that computes and one that mostly waits for clocks in turn, so that
    processes do not wait for each other's compilations while a core idles."""
    files = list(dict.fromkeys(item.path for item in items))
    waiting = [file for file in files if not uses_spark(file) and WAITING & set(file.parts)]
    computing = [file for file in files if not uses_spark(file) and not WAITING & set(file.parts)]
    computing.sort(key=lambda file: "systems" not in file.parts)  # what compiles most comes first
    in_turn = [file for pair in zip_longest(computing, waiting) for file in pair if file is not None]
    with_spark = sorted((file for file in files if uses_spark(file)), key=simulates)
    rank = {file: i for i, file in enumerate([*with_spark, *in_turn])}
    items.sort(key=lambda item: rank[item.path])


def not_atomic(folder: Path) -> dict[str, str]:
    """Spark settings for a file system `notatomic://` that shows this folder under its own path.

    Its renames happen to be single steps, but nothing tells us so: it is treated as an object store. The class is one
    of Hadoop's own, meant for giving file systems other names.
    """
    return {
        "spark.hadoop.fs.notatomic.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        f"spark.hadoop.fs.viewfs.mounttable.default.link.{folder}": f"file://{folder}",
    }


@cache
def step_back() -> None:
    """Let Spark's process have the processor when it wants it: its tests are the longest chain."""
    os.nice(5)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A process that has begun with other tests than Spark's gets none of them."""
    if "PYTEST_XDIST_WORKER" in os.environ and not uses_spark(item.path):
        step_back()


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage whose session opens with the first test that needs it.

    For a few rows, compiling a query takes longer than interpreting it. Compiled queries, as users have them, are run
    by the commands that tests start as processes of their own, and by those of `make test-full`. All folders for tests
    can be reached as `notatomic://` and their path.
    """
    for_few_rows = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        **not_atomic(tmp_path_factory.getbasetemp()),
    }
    working = Stage(SparkSettings(master="local[2]", driver_memory="2g", conf=for_few_rows), quiet=True)
    yield working
    if "spark" in vars(working):  # none may have needed it
        working.spark.stop()


@pytest.fixture(scope="session")
def traces() -> Path:
    folder = data_folder()
    if folder is None:
        pytest.skip("no real traces here: set GRAPEVINE_DATA to their folder")
    return folder
