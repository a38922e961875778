"""The workloads of an experiment: generated, ingested and sampled once, and taken from neighbours that have them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from grapevine.experiment.plan import RunPlan, WorkloadPlan, trace_key
from grapevine.model.errors import UsageError
from grapevine.model.folder import new_folder
from grapevine.model.manifest import FILE_NAME
from grapevine.model.tables import CHURN, LATENCY, SUBSCRIPTIONS, Table
from grapevine.pipeline.formats import FORMATS
from grapevine.pipeline.generate import generate
from grapevine.pipeline.ingest import ingest
from grapevine.pipeline.sample import BfsSample, SubscriberSample, sample
from grapevine.pipeline.stage import Stage
from grapevine.synthetic import MODELS

Folders = dict[tuple[str, ...], str]  # ingested traces by their paths


def borrow(target: Path, pattern: str, out: Path, kind: str) -> bool:
    """Whether the folder is there, taken from a neighbour of `out` that has it if need be."""
    if (target / FILE_NAME).is_file():
        return True
    for found in sorted(out.resolve().parent.glob(f"{pattern}/{FILE_NAME}")):
        with new_folder(target, kind=kind, force=False) as partial:
            shutil.copytree(found.parent, partial, dirs_exist_ok=True, copy_function=_link_or_copy)
        return True
    return False


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def make_workload(stage: Stage, workload: WorkloadPlan, folder: Path, traces: Path | None) -> None:
    """Make the workload below the folder, under its key, unless it is there."""
    target = folder / workload.key
    if borrow(target, f"*/workloads/{workload.key}", folder.parent, "workload"):
        return
    if workload.model is not None:
        model = MODELS[workload.model](**workload.parameters)
        generate(stage, workload.model, model, target, seed=workload.seed)
        return
    assert workload.trace is not None and workload.path is not None
    whole = _ingested(stage, workload.trace, (workload.path,), folder, traces, wanted=SUBSCRIPTIONS)
    if workload.parameters:
        sample(stage, whole, target, SubscriberSample(**workload.parameters), seed=workload.seed)
    elif workload.users is not None:
        sample(stage, whole, target, BfsSample(users=workload.users), seed=workload.seed)
    else:
        shutil.copytree(whole, target, copy_function=_link_or_copy)


def trace_folders(stage: Stage, runs: list[RunPlan], folder: Path, traces: Path | None) -> Folders:
    """Where the recorded churn and latency of the runs lie, by the paths that the experiment names."""
    latency = {("latency-matrix", run.recorded) for run in runs if run.recorded}
    churn = {(run.churn["format"], (run.churn["path"],)) for run in runs if run.churn and "path" in run.churn}
    return {
        paths: str(_ingested(stage, format, paths, folder, traces, wanted=table))
        for named, table in ((latency, LATENCY), (churn, CHURN))
        for format, paths in sorted(named)
    }


def _ingested(
    stage: Stage, format: str, paths: Sequence[str], folder: Path, traces: Path | None, *, wanted: Table
) -> Path:
    """The whole trace as a workload that has the wanted table, read once."""
    fitting = [name for name, known in FORMATS.items() if known.meaning.makes == wanted]
    if format not in fitting:
        raise UsageError(f"trace {format!r}: choose a format that makes {wanted.name}, one of {', '.join(fitting)}")
    if traces is None:
        raise UsageError(f"{paths[0]}: no folder of real traces here; set GRAPEVINE_DATA to one that has it")
    sources = [traces / path for path in paths]
    for source in sources:
        if not source.exists():
            raise UsageError(f"{source}: no such file; set GRAPEVINE_DATA to the folder of traces that has it")
    target = folder / trace_key(format, sources)
    if not borrow(target, f"*/workloads/{target.name}", folder.parent, "workload"):
        ingest(stage, format, [str(source) for source in sources], target)
    return target
