"""The command on the suite's Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grapevine.pipeline.stage import Stage
from tests.cli.command import run


def test_doctor_finds_everything_well(stage: Stage) -> None:
    assert stage.spark.version
    done = run("doctor", "--json")
    found = json.loads(done.stdout)
    parts = [finding["part"] for finding in found["findings"]]
    assert {"Python", "Java", "Cores", "Memory", "Data", "Spark"} <= set(parts)
    assert done.returncode == 0


@pytest.mark.slow
def test_from_raw_trace_to_picture(stage: Stage, tmp_path: Path) -> None:
    """In a session whose working folder is another, so that paths have to be whole ones."""
    raw, out = tmp_path / "raw.csv", tmp_path / "w"
    raw.write_text("".join(f"u{i},u{i * 7 % 41}\n" for i in range(41)) + "broken\n")
    assert stage.spark.version
    ingested = run("workload", "ingest", "follows", str(raw), "-o", str(out), "--json", cwd=tmp_path)
    assert ingested.returncode == 0, ingested.stderr
    assert json.loads(ingested.stdout)["tables"] == {"rejected": 1, "nodes": 40, "topics": 40, "subscriptions": 40}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["raw.csv", "w"], "no litter"
    profiled = run("workload", "profile", str(out), cwd=tmp_path)
    assert profiled.returncode == 0, profiled.stderr
    assert "Subscriptions per subscriber" in profiled.stdout
    assert sorted(p.name for p in (tmp_path / "w-profile").glob("profile.*")) == ["profile.png", "profile.svg"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["raw.csv", "w", "w-profile"], "no litter"
