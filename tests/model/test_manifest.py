"""What a folder says of itself, and what is said when it says something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from grapevine.model.errors import UsageError
from grapevine.model.manifest import FILE_NAME, Manifest, read_manifest

WHOLE = Manifest(
    kind="workload",
    stage="generate",
    version="1.2",
    config={"nodes": 3},
    seed=7,
    inputs=["größe.tsv"],
    tables={"nodes": 3},
    counts={"ks": 0.25},
)


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    WHOLE.write(tmp_path)
    assert read_manifest(tmp_path, "workload") == WHOLE
    assert "größe.tsv" in (tmp_path / FILE_NAME).read_text()


def test_a_number_that_json_does_not_know_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        Manifest(kind="workload", stage="x", version="1", counts={"mean": float("nan")}).write(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "is not a complete workload; write it again"),
        ("{", "is not a manifest of Grapevine"),
        ("[]", "is not a manifest of Grapevine"),
        ('{"kind": "workload"}', "is not a manifest of Grapevine"),
    ],
)
def test_what_is_no_manifest_is_one_sentence(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / FILE_NAME).write_text(content)
    with pytest.raises(UsageError, match=said):
        read_manifest(tmp_path, "workload")


def test_a_folder_of_another_kind_or_format_is_refused(tmp_path: Path) -> None:
    WHOLE.write(tmp_path)
    with pytest.raises(UsageError, match="holds a workload, expected a simulation"):
        read_manifest(tmp_path, "simulation")
    Manifest(kind="workload", stage="x", version="1", format=99).write(tmp_path)
    with pytest.raises(UsageError, match="has format 99, this version reads format 1"):
        read_manifest(tmp_path, "workload")
    with pytest.raises(UsageError, match="no such folder; expected a workload"):
        read_manifest(tmp_path / "nowhere", "workload")
