"""Sweep: the runs of an experiment as Spark tasks, one each; what is done is never done again.

    OUT/experiment.json               what is being run
    OUT/workloads/KEY                 workloads, made once
    OUT/simulations/run_id=ID         one finished run; appears whole or not at all
    OUT/failed/ID.json                why a run failed; tried again when resumed
    OUT/runs, metrics, series, …      tables over all runs, and manifest.json last

A killed sweep leaves finished runs behind, and `--resume` does the others; `--force` does all of them again. Either
way each run, and at the end the tables over all of them, replace what was there whole or not at all (`model/folder`),
and only then runs that the experiment, or the code, no longer asks for are removed. Runs depend on their seed alone, so
tables are the same wherever, in whatever order and in however many attempts they were made.
"""

from __future__ import annotations

import json
import time

from grapevine.experiment.code import measuring_digest
from grapevine.experiment.description import Experiment
from grapevine.experiment.plan import RunPlan, plan
from grapevine.model import tables
from grapevine.model.drafts import write_whole
from grapevine.model.errors import UsageError
from grapevine.model.folder import new_tables, one_sentence
from grapevine.model.location import Location, remove
from grapevine.model.manifest import Manifest, is_complete, read_manifest
from grapevine.model.store import read_table
from grapevine.pipeline.measure import KIND, Run, measure
from grapevine.pipeline.run_tasks import Inputs, failures, run_all
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.workloads import WorkloadMaker, borrow
from grapevine.sim.result import KIND as SIMULATION
from grapevine.sim.result import SIMULATIONS, run_folder
from grapevine.sim.warm_up import warm_up
from grapevine.version import __version__

_DESCRIPTION = "experiment.json"


def sweep(
    stage: Stage,
    experiment: Experiment,
    out: Location,
    *,
    traces: Location | None = None,
    resume: bool = False,
    force: bool = False,
    most_runs: int | None = None,
) -> Manifest | None:
    """Do all runs that are missing, then measure. `most_runs` stops after so many, as an interruption would.

    Where nothing is missing and the tables are those of these runs, they stay, and Spark is not started.
    """
    runs = plan(experiment, traces=traces)
    _open(out, experiment, resume=resume, force=force)
    missing = [run for run in runs if not borrow(_folder(out, run), out, SIMULATION, force=force)]
    if not missing and (measured := _measured(out, experiment, runs)) is not None:
        return measured
    spent = _do(stage, missing, most_runs, WorkloadMaker(stage, out, traces, force))
    if most_runs is not None and most_runs < len(missing):
        return None
    failed = failures(out, runs, force=force)
    about = Manifest(
        kind=KIND,
        stage=f"run {experiment.name}",
        version=__version__,
        config=experiment.as_dict(),
        inputs=sorted({run.workload.key for run in runs}),
        counts={"made": len(missing), "made_in_s": spent, "measured_by": measuring_digest()},
    )
    shown = [Run(r.run_id, r.system, r.workload.name, r.parameters, r.seed, show_course=bool(r.churn)) for r in runs]
    with new_tables(out, kind=KIND) as draft:
        manifest = measure(stage, shown, failed, out / SIMULATIONS, draft, about)
    _remove_stale(out, runs)
    return manifest


def _open(out: Location, experiment: Experiment, *, resume: bool, force: bool) -> None:
    """A new folder, or the one of the same experiment to go on with."""
    described = json.dumps({"version": __version__, **experiment.as_dict()}, indent=2, sort_keys=True)
    stored = out / _DESCRIPTION
    if out.is_file():
        raise UsageError(f"{out}: is a file; choose another --out")
    if out.is_dir() and any(out.iterdir()):
        if not stored.is_file():
            raise UsageError(f"{out}: holds something else than an experiment; choose another --out")
        if not (resume or force):
            raise UsageError(f"{out}: exists already; go on with --resume, or do it all again with --force")
    with one_sentence(out):
        write_whole(stored, described)


def _measured(out: Location, experiment: Experiment, runs: list[RunPlan]) -> Manifest | None:
    """What is stored of the experiment, if its tables were made from just these runs, all done, and by the code of now;
    None if they have to be made."""
    if not is_complete(out):
        return None
    manifest = read_manifest(out, KIND)
    described = json.loads(json.dumps(experiment.as_dict()))
    found = manifest.version, manifest.config, manifest.counts.get("measured_by")
    if found != (__version__, described, measuring_digest()):
        return None
    stored = read_table(manifest.tables_in(out), tables.RUNS)
    done = dict(zip(stored["run_id"].to_pylist(), stored["status"].to_pylist(), strict=True))
    return manifest if done == dict.fromkeys((run.run_id for run in runs), "done") else None


def _folder(out: Location, run: RunPlan) -> Location:
    return run_folder(out / SIMULATIONS, run.run_id)


def _do(stage: Stage, missing: list[RunPlan], most_runs: int | None, workloads: WorkloadMaker) -> float:
    """Make the workloads that are missing, then the runs; returns the seconds that the runs took."""
    workloads.make(run.workload for run in missing)
    traces = workloads.trace_folders(missing)
    if not missing:
        return 0.0
    warm_up({(run.system, run.driver) for run in missing})
    began, chosen = time.perf_counter(), missing[:most_runs]
    inputs = Inputs.of(stage, chosen, workloads, traces)
    run_all(stage, chosen, workloads.out, inputs, force=workloads.force)
    return time.perf_counter() - began


def _remove_stale(out: Location, runs: list[RunPlan]) -> None:
    wanted = {_folder(out, run).name for run in runs}
    for folder in (out / SIMULATIONS).glob("run_id=*"):
        if folder.name not in wanted:
            remove(folder)
