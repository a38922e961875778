"""`grapevine run`: an experiment as a Spark job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from grapevine.cli.console import (
    ConfOption,
    ForceOption,
    JsonOption,
    MasterOption,
    MemoryOption,
    out,
    print_json,
    table,
)
from grapevine.cli.storage import stage_of, traces_folder
from grapevine.experiment.description import Experiment, read_experiment
from grapevine.experiment.plan import plan
from grapevine.metrics.headlines import BRIEF
from grapevine.model import tables
from grapevine.model.location import Location
from grapevine.model.manifest import Manifest, read_manifest
from grapevine.model.store import read_table
from grapevine.pipeline.measure import KIND, series_rows
from grapevine.pipeline.sweep import sweep


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An experiment, e.g. experiments/vitis_fig6.toml.")],
    folder: Annotated[
        str | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results. Default: results/NAME.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted run stopped.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller version, as the file's [quick] table says.")
    ] = False,
    dry: Annotated[bool, typer.Option("--dry", help="Only check the file, and list its runs.")] = False,
    force: ForceOption = False,
    json: JsonOption = False,
    master: MasterOption = None,
    driver_memory: MemoryOption = None,
    conf: ConfOption = None,
) -> None:
    """Run an experiment: every system on every workload for every point of the grid, each run a Spark task.

    A run that fails is recorded and does not stop the others; [bold]--resume[/] does what is missing.
    """
    experiment = read_experiment(file, quick=quick)
    stage = stage_of(conf, master=master, driver_memory=driver_memory, quiet=json)
    if dry:
        _print_plan(experiment, traces_folder(stage))
        return
    target = stage.location(folder or f"results/{experiment.name}")
    manifest = sweep(stage, experiment, target, traces=traces_folder(stage), resume=resume, force=force)
    assert manifest is not None
    if json:
        print_json({"folder": str(target), "runs": manifest.counts["runs"], "failed": manifest.counts["failed"]})
    else:
        print_series(target, manifest)
        out.print(f"\nTables: [bold]{escape(str(target))}[/]    Next: grapevine report {escape(str(target))}")
    if manifest.counts["failed"]:
        raise SystemExit(1)


def _print_plan(experiment: Experiment, traces: Location | None) -> None:
    made = table(escape(experiment.title), "run", "system", "workload", "grid", "seed")
    for run in plan(experiment, traces=traces):
        made.add_row(run.run_id, run.system, escape(run.workload.name), escape(run.parameters), str(run.seed))
    out.print(made)


def print_series(folder: Location, manifest: Manifest) -> None:
    """Headline numbers of an experiment: a row per point, and what failed."""
    points: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in series_rows(folder):
        label = ", ".join(f"{key}={'none' if value is None else value}" for key, value in row["parameters"].items())
        points.setdefault((row["system"], row["workload"], label), {})[row["metric"]] = row["mean"]
    made = table(escape(str(manifest.config["title"])), "system", "workload", "", *(metric.heading for metric in BRIEF))
    for (system, workload, label), values in points.items():
        cells = (metric.shown(values.get(metric.name)) for metric in BRIEF)
        made.add_row(system, escape(workload), escape(label), *cells)
    out.print(made)
    stored = read_manifest(folder, KIND).tables_in(folder)
    for row in read_table(stored, tables.RUNS).to_pylist():
        if row["status"] == "failed":
            out.print(f"[red]failed[/] {row['system']} on {escape(row['workload'])}: {escape(row['error'])}")
