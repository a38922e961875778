"""The archive of Spark's classes: made once, used where it fits, and missed by nobody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from grapevine.pipeline import class_archive
from grapevine.pipeline.java import Java, find_java


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python environment of its own, as far as archives are concerned."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def java(folder: Path) -> Java:
    executable = folder / "java"
    executable.touch()
    return Java(executable, 21, "PATH")


def test_without_an_archive_java_is_told_nothing(environment: Path) -> None:
    assert class_archive.java_options(java(environment)) == ""


def test_an_archive_is_that_of_one_java(environment: Path) -> None:
    ours = java(environment)
    archive = class_archive.archive_of(ours)
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive} " in class_archive.java_options(ours)
    (environment / "java").write_text("another version")
    assert class_archive.java_options(java(environment)) == ""


def test_an_archive_that_is_there_is_not_made_again(environment: Path) -> None:
    archive = class_archive.archive_of(find_java())
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert class_archive.make_archive() == archive


def test_a_broken_archive_harms_nobody(environment: Path) -> None:
    ours = find_java()
    archive = class_archive.archive_of(ours)
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"no archive")
    command = [str(ours.executable), *class_archive.java_options(ours).split(), "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "version" in done.stderr
    assert done.stdout == "" and "rror" not in done.stderr


@pytest.mark.slow
def test_java_maps_the_archive_that_was_made(tmp_path: Path) -> None:
    """In a process of its own, since a session of this one could be running."""
    script = f"""
import sys
sys.prefix = {str(tmp_path)!r}
from grapevine.pipeline.class_archive import archive_of, java_options, make_archive
from grapevine.pipeline.java import find_java
print(make_archive())
print(java_options(find_java()))
"""
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    archive, options = made.stdout.splitlines()
    assert Path(archive).stat().st_size > 20_000_000
    assert [path.name for path in Path(archive).parent.iterdir()] == [Path(archive).name]  # nothing else is left
    command = [str(find_java().executable), *options.split()[:1], "-Xshare:auto", "-Xlog:cds", "-version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "rror" not in said.stderr
