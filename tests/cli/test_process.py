"""The command as a process of its own, with a Spark of its own, as users have it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import run_process


def test_a_command_starts_spark_does_its_work_and_leaves_no_litter(tmp_path: Path) -> None:
    asked = "workload", "generate", "vitis-high", "--nodes", "60", "--topics", "40", "--buckets", "4"
    done = run_process(*asked, "--subscriptions-per-node", "10", "--out", "w", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tables"] == {"nodes": 60, "topics": 40, "subscriptions": 600}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["w"]
