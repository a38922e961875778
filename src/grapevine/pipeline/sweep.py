"""Sweep: the runs of an experiment as Spark tasks, one each; what is done is never done again.

    OUT/experiment.json               what is being run
    OUT/workloads/KEY                 workloads, made once
    OUT/simulations/run_id=ID         one finished run; appears whole or not at all
    OUT/failed/ID.json                why a run failed; tried again when resumed
    OUT/runs, metrics, series, …      tables over all runs, and manifest.json last

A killed sweep leaves finished runs behind, and `--resume` does the others; runs that the experiment, or the code, no
longer asks for are removed. Runs depend on their seed alone, so tables are the same wherever, in whatever order and in
however many attempts they were made.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from grapevine import __version__
from grapevine.experiment.code import RUN_CODE, code_digest
from grapevine.experiment.description import Experiment
from grapevine.experiment.plan import RunPlan, WorkloadPlan, plan
from grapevine.experiment.play import play
from grapevine.model.errors import UsageError
from grapevine.model.manifest import FILE_NAME, Manifest
from grapevine.model.workload import Workload, load_churn, load_latency
from grapevine.pipeline.measure import Run, measure
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.workloads import Folders, borrow, make_workload, trace_folders
from grapevine.sim.churn import mass_failure
from grapevine.sim.clock import ClockConfig
from grapevine.sim.result import KIND as SIMULATION
from grapevine.sim.simulate import simulate
from grapevine.synthetic import generate as generate_in_memory

_DESCRIPTION = "experiment.json"


def sweep(
    stage: Stage,
    experiment: Experiment,
    out: Path,
    *,
    traces: Path | None = None,
    resume: bool = False,
    force: bool = False,
    most_runs: int | None = None,
) -> Manifest | None:
    """Do all runs that are missing, then measure. `most_runs` stops after so many, as an interruption would."""
    runs = plan(experiment, traces=traces)
    _open(out, experiment, resume=resume, force=force)
    _reuse(out, runs)
    missing = [run for run in runs if not _is_done(out, run)]
    workloads = {run.workload.key: run.workload for run in missing}
    for workload in workloads.values():
        make_workload(stage, workload, out / "workloads", traces)
    folders = trace_folders(stage, missing, out / "workloads", traces)
    spent = 0.0
    if missing:
        _warm_up({run.system for run in missing})
        began = time.perf_counter()
        _run_all(stage, missing[:most_runs], out, folders)
        spent = time.perf_counter() - began
    if most_runs is not None and most_runs < len(missing):
        return None
    _remove_stale(out, runs)
    failed = {run.run_id: _failure(out, run) for run in runs if not _is_done(out, run)}
    return measure(
        stage,
        [Run(r.run_id, r.system, r.workload.name, r.parameters, r.seed, show_course=bool(r.churn)) for r in runs],
        failed,
        out,
        made_by=f"run {experiment.name}",
        config=experiment.as_dict(),
        inputs=sorted({run.workload.key for run in runs}),
        counts={"made": len(missing), "made_in_s": spent},
    )


def _open(out: Path, experiment: Experiment, *, resume: bool, force: bool) -> None:
    """A new folder, or the one of the same experiment to go on with."""
    code = f"{__version__}+{code_digest(RUN_CODE)}"
    described = json.dumps({"code": code, **experiment.as_dict()}, indent=2, sort_keys=True)
    stored = out / _DESCRIPTION
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out}: is a file; choose another --out")
    if out.exists() and any(out.iterdir()):
        if not stored.is_file():
            raise UsageError(f"{out}: holds something else than an experiment; choose another --out")
        if force:
            shutil.rmtree(out)
        elif not resume:
            raise UsageError(f"{out}: exists already; go on with --resume, or start anew with --force")
    try:
        out.mkdir(parents=True, exist_ok=True)
        partial = stored.with_suffix(".partial")
        partial.write_text(described)
        partial.rename(stored)
    except OSError as error:
        raise UsageError(f"{out}: cannot be written ({error.strerror}); choose another --out") from None


def _folder(out: Path, run: RunPlan) -> Path:
    return out / "simulations" / f"run_id={run.run_id}"


def _is_done(out: Path, run: RunPlan) -> bool:
    return (_folder(out, run) / FILE_NAME).is_file()


def _remove_stale(out: Path, runs: list[RunPlan]) -> None:
    wanted = {_folder(out, run).name for run in runs}
    for folder in (out / "simulations").glob("run_id=*"):
        if folder.name not in wanted:
            shutil.rmtree(folder)


def _reuse(out: Path, runs: list[RunPlan]) -> None:
    """Take runs that a neighbouring experiment has done: the same run_id is the same result."""
    for run in runs:
        borrow(_folder(out, run), f"*/simulations/{_folder(out, run).name}", out, SIMULATION)


def _warm_up(systems: set[str]) -> None:
    """Compile once, here: otherwise every worker would compile the same kernels at the same time. Somebody crashes, so
    that what is only needed then is compiled, too."""
    tiny = generate_in_memory("vitis-random", nodes=40, topics=10, subscriptions_per_node=2)
    crash = mass_failure(tiny.node_count, share=0.1, round=2)
    clock = ClockConfig(latency="constant", hours=0.1, start_s=10)
    for system in sorted(systems):
        simulate(system, tiny, rounds=6, threads=1, schedule=crash, clock=clock)


def _run_all(stage: Stage, runs: list[RunPlan], out: Path, folders: Folders) -> None:
    context = stage.spark.sparkContext
    threads = max(1, context.defaultParallelism // len(runs)) if runs else 1
    tasks = [json.dumps({**asdict(run), "threads": threads}) for run in runs]
    work = _task(str(out.resolve()), folders)
    with stage.step(f"{len(runs)} runs"):
        context.parallelize(tasks, numSlices=len(tasks)).foreach(work)


def _task(out: str, folders: Folders) -> Callable[[str], None]:
    """What a worker does with one run. A failure is written down and does not fail the sweep."""

    def work(text: str) -> None:
        described = json.loads(text)
        threads = described.pop("threads")
        described["workload"] = WorkloadPlan(**described["workload"])
        described |= {key: tuple(described[key]) for key in ("recorded", "contents")}  # JSON made lists of them
        run = RunPlan(**described)
        try:
            _run_one(run, Path(out), folders, threads)
        except Exception as error:  # whatever went wrong in this run, the others go on
            _write_failure(Path(out), run, f"{type(error).__name__}: {error}")

    return work


def _run_one(run: RunPlan, out: Path, folders: Folders, threads: int) -> None:
    workload = Workload.load(out / "workloads" / run.workload.key)
    recorded = run.churn and run.churn.get("path")
    churn = load_churn(folders[(str(recorded),)]) if recorded else None
    latency = load_latency(folders[run.recorded]) if run.recorded else None
    play(run, workload, churn, latency, threads=threads).save(_folder(out, run))
    (out / "failed" / f"{run.run_id}.json").unlink(missing_ok=True)


def _write_failure(out: Path, run: RunPlan, error: str) -> None:
    (out / "failed").mkdir(exist_ok=True)
    partial = out / "failed" / f".{run.run_id}.partial"
    partial.write_text(json.dumps({"error": error, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}))
    partial.rename(out / "failed" / f"{run.run_id}.json")


def _failure(out: Path, run: RunPlan) -> str:
    stored = out / "failed" / f"{run.run_id}.json"
    return (
        str(json.loads(stored.read_text())["error"]) if stored.is_file() else "the task was lost; resume to try again"
    )
