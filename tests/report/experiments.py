"""Small experiment folders, written with the same functions that `grapevine run` uses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from grapevine.model import tables
from grapevine.model.manifest import Manifest
from grapevine.model.store import write_table

HOSTILE = "<script>alert(1)</script>"
SIZES = 5, 10, 20
Row = dict[str, Any]

PLOTS: list[Row] = [
    {"title": "Traffic overhead", "kind": "series", "x": "table_size", "y": "overhead",
     "x_label": "routing table size", "y_label": "traffic overhead", "percent": True,
     "claimed": [{"x": 10, "y": 0.09, "label": "paper, high correlation"}, {"y": 0.5, "label": "paper, anywhere"}]},
    {"kind": "series", "x": "table_size", "y": "hops", "log_x": True, "log_y": True},
    {"title": "Over workloads", "kind": "series", "x": "workload", "y": "hops"},
    {"title": "Of nobody's parameter", "kind": "series", "x": "friends", "y": "hops"},
    {"title": "Spread of overhead", "kind": "distribution", "quantity": "overhead", "percent": True},
    {"title": "Spread of degrees", "kind": "distribution", "quantity": "degree"},
    {"title": "Hit ratio under churn", "kind": "progress", "y": "hit_ratio", "percent": True},
    {"title": "Never measured", "kind": "progress", "y": "utility"},
]  # fmt: skip


def run_row(run_id: str, system: str, workload: str, parameters: Row, seed: int, error: str | None = None) -> Row:
    done = error is None
    return {"run_id": run_id, "system": system, "workload": workload, "parameters": json.dumps(parameters),
            "seed": seed, "status": "done" if done else "failed", "error": error,
            "wall_s": 83.0 if done else None, "cpu_s": 160.5 if done else None}  # fmt: skip


def mean_row(system: str, workload: str, parameters: Row, metric: str, mean: float, half: float = 0.0) -> Row:
    return {"system": system, "workload": workload, "parameters": json.dumps(parameters), "metric": metric,
            "runs": 2 if half else 1, "mean": mean, "low": mean - half, "high": mean + half}  # fmt: skip


def write_experiment(folder: Path, config: Row, **rows: Iterable[Row]) -> Path:
    """Tables that are not given are stored empty."""
    counts = {}
    for table in tables.EXPERIMENT_TABLES:
        content = pa.Table.from_pylist(list(rows.get(table.name, ())), schema=table.schema)
        counts[table.name] = write_table(content, folder, table)
    Manifest(kind="experiment", stage="run", version="9.8.7+abc", config=config, tables=counts).write(folder)
    return folder


def write_sample(folder: Path, simulated: dict[str, str]) -> Path:
    """Two systems with a grid of table sizes, a baseline without one, two workloads (one hostile), a failed run.

    `simulated` names the runs (by system) whose simulations lie in the folder already.
    """
    points: list[tuple[str, str, Row]] = [
        (system, workload, {"table_size": size})
        for system in ("vitis", "rvr")
        for workload in ("low", HOSTILE)
        for size in SIZES
    ]
    points.append(("opt", "low", {}))
    runs, metrics, series, distributions, progress = [], [], [], [], []
    for i, (system, workload, parameters) in enumerate(points):
        value = (i + 1) / (2 * len(points))
        for seed in (1, 2):
            first = seed == 1 and workload == "low" and parameters.get("table_size", 5) == 5
            run_id = simulated.get(system, "") if first else ""
            run_id = run_id or f"{i:08x}{seed:08x}"
            runs.append(run_row(run_id, system, workload, parameters, seed))
            metrics.append({"run_id": run_id, "metric": "overhead", "value": value})
        series.append(mean_row(system, workload, parameters, "overhead", value, 0.01))
        series.append(mean_row(system, workload, parameters, "hops", 20 * value, 0.2))
        series.append(mean_row(system, workload, parameters, "degree_max", 12_345.0))
        at = {"system": system, "workload": workload, "parameters": json.dumps(parameters)}
        distributions += [at | {"quantity": "overhead", "at": k / 10, "share": 0.25} for k in (0, 1, 4, 9)]
        distributions += [at | {"quantity": "degree", "at": float(k), "share": 0.5} for k in (3, 9)]
        for now in range(10, 100, 3):
            row = mean_row(system, workload, parameters, "hit_ratio", 1 - value * now / 1000, 0.001)
            progress.append(row | {"round": now})
    runs.append(run_row("f" * 16, "opt", HOSTILE, {}, 1, error="MemoryError: 61 GB <b>too much</b>"))
    config = {"name": "sample", "title": "A sample & its title", "paper": "vitis", "figure": "Fig. 6", "claims": ["V6"],
              "notes": "First part.\n\nSecond <i>part</i>.", "plots": PLOTS, "quick": True,
              "systems": [{"system": name} for name in ("vitis", "rvr", "opt")]}  # fmt: skip
    return write_experiment(
        folder, config, runs=runs, metrics=metrics, series=series, distributions=distributions, progress=progress
    )
