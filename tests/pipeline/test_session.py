"""How Spark is set up, and what is said when it fails."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.pipeline import session as session_module
from grapevine.pipeline import stage as stage_module
from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage, explain


def test_flags_win_over_environment_over_file(tmp_path: Path) -> None:
    (tmp_path / "grapevine.toml").write_text(
        '[spark]\nmaster = "local[1]"\ndriver_memory = "1g"\n[spark.conf]\nspark.ui.enabled = true\n"spark.a.b" = 3\n'
    )
    stored = SparkSettings.gather(environment={}, folder=tmp_path)
    assert (stored.master, stored.driver_memory) == ("local[1]", "1g")
    assert stored.conf == {"spark.ui.enabled": "True", "spark.a.b": "3"}
    environment = {"GRAPEVINE_MASTER": "local[2]", "GRAPEVINE_DRIVER_MEMORY": "2g"}
    assert SparkSettings.gather(environment=environment, folder=tmp_path).master == "local[2]"
    flagged = SparkSettings.gather(master="local[3]", conf=("spark.a.b=4",), environment=environment, folder=tmp_path)
    assert (flagged.master, flagged.driver_memory, flagged.conf["spark.a.b"]) == ("local[3]", "2g", "4")


def test_under_spark_submit_only_flags_overrule_what_was_submitted(tmp_path: Path) -> None:
    (tmp_path / "grapevine.toml").write_text('[spark]\nmaster = "local[1]"\n')
    environment = {"PYSPARK_GATEWAY_PORT": "1", "GRAPEVINE_MASTER": "local[2]"}
    assert SparkSettings.gather(environment=environment, folder=tmp_path).master is None
    assert SparkSettings.gather(master="local[3]", environment=environment, folder=tmp_path).master == "local[3]"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[spark", "not valid TOML"),
        ("spark = 3", "are tables"),
        ("[spark]\nconf = 'x'", "are tables"),
        ("[spark]\nmastr = 'x'", "no key mastr; it has conf, driver_memory, master"),
    ],
)
def test_a_wrong_settings_file_is_one_sentence(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "grapevine.toml").write_text(content)
    with pytest.raises(UsageError, match=expected):
        SparkSettings.gather(environment={}, folder=tmp_path)


def test_a_wrong_conf_flag_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"spark\.KEY=VALUE"):
        SparkSettings.gather(conf=("memory",), folder=tmp_path)


def test_the_session_is_adaptive_quiet_and_leaves_no_litter(stage: Stage) -> None:
    conf = stage.spark.conf
    assert conf.get("spark.sql.adaptive.enabled") == "true"
    assert conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert int(str(conf.get("spark.sql.shuffle.partitions"))) == 8
    stage.spark.range(10).createOrReplaceTempView("v")
    stage.spark.sql("select sum(id) from v").collect()
    assert not {"metastore_db", "spark-warehouse", "derby.log", "artifacts"} & {
        path.name for path in Path.cwd().iterdir()
    }


def test_unforeseen_failures_inside_spark_are_one_sentence(stage: Stage) -> None:
    with pytest.raises(GrapevineError, match=r"^Spark failed while dividing: .*zero") as caught, stage.step("dividing"):
        stage.spark.sql("select 1 div 0").collect()
    assert "\n" not in str(caught.value)
    assert isinstance(explain(Exception("x OutOfMemoryError y"), "sorting"), GrapevineError)
    assert "--driver-memory" in str(explain(Exception("x OutOfMemoryError y"), "sorting"))


@pytest.mark.parametrize(
    ("sizes", "also", "rows"),
    [([100, 60], [], 10), ([9 << 20], [], 9 << 16), ([5 << 20, 5 << 20], [], 10 << 16), ([10], ["hdfs:///a"], None)],
)
def test_spark_starts_for_as_many_rows_as_bytes_tell_where_all_are_here(
    sizes: list[int], also: list[str], rows: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int | None] = []
    monkeypatch.setattr(stage_module, "open_session", lambda settings, *, rows: asked.append(rows))
    monkeypatch.setattr(stage_module, "one_partition", lambda session, settings: nullcontext())
    (tmp_path / "folder").mkdir()
    for i, size in enumerate(sizes):
        with (tmp_path / "folder" / str(i)).open("wb") as file:
            file.truncate(size)
    for inputs in ([tmp_path / "folder", *also], [*(tmp_path / "folder").iterdir(), *also]):
        stage = Stage(quiet=True)
        with stage.expecting(*inputs):
            _ = stage.spark
    assert asked == [rows, rows]


def test_few_rows_are_planned_for_one_partition_and_others_after_them_as_before(stage: Stage, tmp_path: Path) -> None:
    def plan() -> tuple[bool, str | None, int]:
        names = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")
        adaptive, partitions = (stage.spark.conf.get(name) for name in names)
        return stage.is_little, f"{adaptive} {partitions}", stage.gather(stage.spark.range(9)).rdd.getNumPartitions()

    before = plan()
    (tmp_path / "few").write_text("a b\n")
    with stage.expecting(tmp_path / "few"):
        assert plan() == (True, "false 1", 1)
        held = stage.hold(stage.spark.range(9).toDF("x"), tmp_path / "held", "holding")
        assert held.is_cached and not (tmp_path / "held").exists()
    assert plan() == before == (False, "true 8", 2)
    assert not held.storageLevel.useMemory
    with stage.expecting(tmp_path / "few", "hdfs:///elsewhere"):
        assert plan() == before
    with pytest.raises(UsageError), stage.expecting(tmp_path / "few"):
        raise UsageError("a mistake")
    assert plan() == before


def test_for_few_rows_queries_are_interpreted_unless_somebody_asks_otherwise(tmp_path: Path) -> None:
    def conf(rows: int | None, **asked: str) -> dict[str, str]:
        return session_module._conf(SparkSettings(conf=asked), tmp_path, "", submitted=False, rows=rows)

    whole, options = "spark.sql.codegen.wholeStage", "spark.driver.extraJavaOptions"
    few, some, many = 1 << 10, 1 << 18, 1 << 20
    assert conf(few)[whole] == "false" and "-XX:TieredStopAtLevel=1" in conf(few)[options]
    assert whole not in conf(some) and "-XX:TieredStopAtLevel=1" in conf(some)[options]
    for unknown in (many, None):
        assert whole not in conf(unknown) and "Tiered" not in conf(unknown)[options]
    assert conf(few, **{whole: "true"})[whole] == "true"
