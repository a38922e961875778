"""How well a sweep uses the cores: 20 equal runs, against the CPU time that they took.

    .venv/bin/python -m bench.sweep

The reference is the sum of the runs' own CPU seconds over the number of cores: what a perfect schedule without any
cost of its own would need. Start-up (Spark, workloads, loading compiled kernels) and measuring are told apart.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from grapevine.experiment.description import read_experiment
from grapevine.model import tables
from grapevine.model.store import read_table
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.sweep import sweep

EXPERIMENT = """
title = "20 equal runs"
seeds = [1, 2]

[run]
rounds = 100
measure_topics = 0

[[workloads]]
name = "high"
model = "vitis-high"
nodes = 5000

[[systems]]
system = "vitis"
gateway_reach = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
"""


def main() -> None:
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "bench.toml", Path(folder) / "out"
        path.write_text(EXPERIMENT)
        began = time.perf_counter()
        manifest = sweep(Stage(quiet=True), read_experiment(path), out)
        whole = time.perf_counter() - began
        assert manifest is not None
        cpu = sum(row["cpu_s"] for row in read_table(out, tables.RUNS).to_pylist())
    made = manifest.counts["made_in_s"]
    print(f"{manifest.counts['runs']} runs on {cores} cores: {made:.1f} s, {cpu:.1f} CPU s inside the runs")
    print(f"  {made / (cpu / cores):.2f} times the perfect schedule")
    print(f"  start-up and measuring: {whole - made:.1f} s")


if __name__ == "__main__":
    main()
