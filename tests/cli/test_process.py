"""The command as a process of its own, with a Spark of its own, as users have it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command import PATIENCE_S, run_process


@pytest.mark.slow
def test_a_command_starts_spark_does_its_work_and_leaves_no_litter(tmp_path: Path) -> None:
    asked = "workload", "generate", "vitis-high", "--nodes", "60", "--topics", "40", "--buckets", "4"
    more = "--subscriptions-per-node", "10", "--partitions", "2", "--out", "w", "--json"
    done = run_process(*asked, *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tables"] == {"nodes": 60, "topics": 40, "subscriptions": 600}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["w"]


_FOR_HOURS = """
import sys, time
from pathlib import Path
from grapevine.cli.console import one_line_errors, stop_on_signals
from grapevine.pipeline.stage import Stage

def work(marker):
    Path(marker).touch()
    time.sleep(10_000)

stop_on_signals()
stage = Stage(quiet=True)
with one_line_errors(), stage.step("working for hours"):
    stage.spark.sparkContext.parallelize(sys.argv[1:], 1).foreach(work)
"""


@pytest.mark.parametrize("kill", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_command_told_to_stop_does_not_wait_for_the_job_that_runs(tmp_path: Path, kill: signal.Signals) -> None:
    marker = tmp_path / "begun"
    process = subprocess.Popen([sys.executable, "-c", _FOR_HOURS, str(marker)], stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not marker.exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(kill)
        _, said = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert (process.returncode, said) == (130, "stopped; nothing was left half-written\n")
