"""The same stages on a real standalone cluster and under spark-submit, from the pip package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from bench.standalone import kill_an_executor, two_workers

from grapevine.pipeline.java import find_java, make_java_home
from tests.conftest import not_atomic
from tests.pipeline.test_sweep import TEXT as EXPERIMENT
from tests.pipeline.test_sweep import content

pytestmark = pytest.mark.slow
SPARK = Path(pyspark.__file__).parent
GRAPEVINE = str(Path(sys.executable).parent / "grapevine")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = make_java_home(find_java(), tmp_path_factory.mktemp("java"))
    own = {"JAVA_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK"))}
    return inherited | own


@pytest.fixture(scope="module")
def master() -> Iterator[str]:
    with two_workers("1500m") as url:
        yield url


def rows(folder: Path) -> list[dict[str, int]]:
    pairs = pq.read_table(folder / "subscriptions").sort_by([("node", "ascending"), ("topic", "ascending")])
    return [dict(row) for row in pairs.to_pylist()]


def test_a_stage_gives_the_same_rows_on_a_cluster_of_two_workers(master: str, tmp_path: Path) -> None:
    raw = tmp_path / "raw.tsv"
    raw.write_text("".join(f"{i % 97}\t{i * i % 89}\n" for i in range(2_000)))
    for name, where in (("local", "local[1]"), ("cluster", master)):
        for command in (
            ["generate", "vitis-high", "--nodes", "500", "--out", str(tmp_path / f"g-{name}")],
            ["ingest", "follows", str(raw), "--out", str(tmp_path / f"i-{name}")],
        ):
            subprocess.run([GRAPEVINE, "workload", *command, "--master", where, "--json"], check=True, cwd=tmp_path)
    assert rows(tmp_path / "g-local") == rows(tmp_path / "g-cluster")
    assert rows(tmp_path / "i-local") == rows(tmp_path / "i-cluster")


def test_an_experiment_gives_the_same_tables_on_a_cluster_of_two_workers(master: str, tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(EXPERIMENT)
    conf = [text for key, value in not_atomic(tmp_path).items() for text in ("--conf", f"{key}={value}")]
    for name, where, out in (
        ("local", "local[1]", str(tmp_path / "local" / "out")),
        ("cluster", master, str(tmp_path / "cluster" / "out")),
        ("url", master, f"notatomic://{tmp_path}/url/out"),
    ):  # apart: neighbours lend each other runs
        done = subprocess.run(
            [GRAPEVINE, "run", str(path), "--out", out, "--master", where, "--json", *conf], check=False, cwd=tmp_path
        )
        assert done.returncode == 1, name  # three runs cannot be done
    first = content(tmp_path / "local" / "out")
    for stored in (tmp_path / "cluster" / "out", next((tmp_path / "url" / "out").glob("_generation-*"))):
        second = content(stored)
        for name, table in first.items():
            assert table.equals(second[name]), (stored, name)


def test_the_command_runs_under_spark_submit(environment: dict[str, str], tmp_path: Path) -> None:
    line = [
        str(SPARK / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g", GRAPEVINE_MAIN,
        "workload", "generate", "vitis-low", "--nodes", "300", "--out", str(tmp_path / "w"), "--json",
    ]  # fmt: skip
    done = subprocess.run(line, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["tables"]["subscriptions"] == 15_000
    assert sorted(p.name for p in tmp_path.iterdir()) == ["w"]


GRAPEVINE_MAIN = str(Path(__file__).resolve().parents[2] / "src" / "grapevine" / "__main__.py")


def test_rounds_on_a_cluster_are_those_of_one_machine_though_an_executor_and_the_driver_are_killed(
    master: str, tmp_path: Path
) -> None:
    """Once undisturbed; once an executor is killed in the middle; once the command itself, which is then resumed."""
    command = [GRAPEVINE, "workload", "generate", "vitis-low", "--nodes", "2000", "--out", str(tmp_path / "w")]
    subprocess.run(command, check=True, capture_output=True)

    def start(name: str, *more: str) -> subprocess.Popen[str]:
        line = [GRAPEVINE, "simulate", "vitis", "-w", str(tmp_path / "w"), "-o", str(tmp_path / name), "--rounds", "9"]
        return subprocess.Popen([*line, *more], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    on_spark = ("--engine", "spark", "--blocks", "5", "--master", master)
    for name, more in (("local", ()), ("cluster", on_spark)):
        process = start(name, *more)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    process = start("wounded", *on_spark)
    wait_for_round(tmp_path / ".wounded.rounds", 3)
    kill_an_executor()
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    process = start("killed", *on_spark)
    wait_for_round(tmp_path / ".killed.rounds", 4)
    process.kill()
    process.communicate()
    assert not (tmp_path / "killed").exists()
    process = start("killed", *on_spark, "--resume")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    expected = {name: pq.read_table(tmp_path / "local" / name) for name in ("links", "events", "node_load", "rounds")}
    for name in ("cluster", "wounded", "killed"):
        for table, rows_of_one in expected.items():
            assert pq.read_table(tmp_path / name / table).equals(rows_of_one), (name, table)


def wait_for_round(folder: Path, number: int) -> None:
    deadline = time.monotonic() + 240
    while not (folder / "note.json").is_file() or json.loads((folder / "note.json").read_text())["round"] < number:
        assert time.monotonic() < deadline, "the run does not get there"
        time.sleep(0.05)
