"""The runs of a sweep as Spark tasks, one each. A run that fails is written down, and stops no other.

Where tasks reach the experiment's folder, each writes its own run there. Where only the driver does (URLs, see
`pipeline/shipping.py`), tasks return the files of their runs, and a thread of the driver for each stores them as soon
as they come, so that a killed sweep leaves what was finished there, too.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark import inheritable_thread_target

from grapevine.experiment.plan import RunPlan, WorkloadPlan
from grapevine.experiment.play import play
from grapevine.model.drafts import write_whole
from grapevine.model.folder import new_folder
from grapevine.model.location import Location, local_draft
from grapevine.model.manifest import is_complete, read_manifest
from grapevine.model.workload import Workload, load_churn, load_latency
from grapevine.pipeline.shipping import TRACES, WORKLOAD, Files, Shipped, pack, ship, unpack
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.workloads import KIND as WORKLOAD_KIND
from grapevine.pipeline.workloads import Folders, WorkloadMaker
from grapevine.sim.result import KIND, SIMULATIONS, Simulation, run_folder

_MOST_AT_ONCE = 64  # runs that the driver hands to a cluster at a time and has a thread waiting for
_FAILED = "failed"
_LOST = "the task was lost; resume to try again"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What runs read, as tasks get it: workloads by their keys, ingested traces by the paths that the plan names."""

    workloads: dict[str, Shipped]
    traces: dict[tuple[str, ...], Shipped]

    @classmethod
    def of(cls, stage: Stage, runs: list[RunPlan], made: WorkloadMaker, traces: Folders) -> Inputs:
        """Ship what these runs need."""
        workloads = {run.workload.key: made.folder(run.workload.key) for run in runs}
        return cls(
            {key: _shipped(stage, folder, whole=True) for key, folder in workloads.items()},
            {paths: _shipped(stage, folder, whole=False) for paths, folder in traces.items()},
        )

    def simulate(self, run: RunPlan, threads: int) -> Simulation:
        """Do one run, inside its task."""
        with self.workloads[run.workload.key].opened() as folder:
            workload = Workload.load(folder)
        churn = latency = None
        if run.churn and "path" in run.churn:
            with self.traces[run.churn["path"],].opened() as folder:
                churn = load_churn(folder)
        if run.recorded:
            with self.traces[run.recorded].opened() as folder:
                latency = load_latency(folder)
        return play(run, workload, churn, latency, threads=threads)


def _shipped(stage: Stage, folder: Location, *, whole: bool) -> Shipped:
    return ship(stage, folder, read_manifest(folder, WORKLOAD_KIND), WORKLOAD if whole else TRACES)


def run_all(stage: Stage, runs: list[RunPlan], out: Location, inputs: Inputs, *, force: bool) -> None:
    """Do these runs; each is stored below `out`, or why it failed. `force` replaces runs that are there."""
    if not runs:
        return
    out = out.resolve()
    context = stage.spark.sparkContext
    threads = max(1, context.defaultParallelism // len(runs))
    with stage.step(f"{len(runs)} runs"):
        if isinstance(out, Path):
            tasks = [_as_text(run, threads) for run in runs]
            context.parallelize(tasks, numSlices=len(tasks)).foreach(_storing(out, inputs, force=force))
        else:
            _through_the_driver(stage, runs, out, _returning(inputs), threads=threads, force=force)


def _storing(out: Path, inputs: Inputs, *, force: bool) -> Callable[[str], None]:
    """What a worker does with one run that it can store itself."""
    path = str(out)

    def work(text: str) -> None:
        run, threads = _from_text(text)
        try:
            inputs.simulate(run, threads).save(run_folder(Path(path) / SIMULATIONS, run.run_id), force=force)
        except Exception as error:  # whatever went wrong in this run, the others go on
            _write_failure(Path(path), run, _as_sentence(error))
        else:
            _failure_file(Path(path), run).unlink(missing_ok=True)

    return work


def _returning(inputs: Inputs) -> Callable[[str], Files | str]:
    """What a worker does with one run that the driver stores: the answer is the run's files, or why it failed."""

    def work(text: str) -> Files | str:
        run, threads = _from_text(text)
        try:
            with tempfile.TemporaryDirectory(prefix="grapevine-run-") as scratch:
                inputs.simulate(run, threads).write(Path(scratch))
                return pack(Path(scratch))
        except Exception as error:
            return _as_sentence(error)

    return work


def _through_the_driver(
    stage: Stage, runs: list[RunPlan], out: Location, work: Callable[[str], Files | str], *, threads: int, force: bool
) -> None:
    context = stage.spark.sparkContext

    def do(run: RunPlan) -> None:
        (answer,) = context.parallelize([_as_text(run, threads)], numSlices=1).map(work).collect()
        if isinstance(answer, str):
            _write_failure(out, run, answer)
            return
        target = run_folder(out / SIMULATIONS, run.run_id)
        with new_folder(target, kind=KIND, force=force) as draft, local_draft(draft) as local:
            unpack(answer, local)
        _failure_file(out, run).unlink(missing_ok=True)

    pool = ThreadPoolExecutor(min(len(runs), _MOST_AT_ONCE), thread_name_prefix="run")
    try:
        for _ in pool.map(inheritable_thread_target(stage.spark)(do), runs):
            pass
    finally:  # when one could not be done, or the process is told to stop, those that wait are not begun
        pool.shutdown(wait=False, cancel_futures=True)


def _as_text(run: RunPlan, threads: int) -> str:
    return json.dumps({**asdict(run), "threads": threads})


def _from_text(text: str) -> tuple[RunPlan, int]:
    described = json.loads(text)
    threads = described.pop("threads")
    described["workload"] = WorkloadPlan(**described["workload"])
    described |= {key: tuple(described[key]) for key in ("recorded", "contents")}  # JSON made lists of them
    return RunPlan(**described), threads


def _as_sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _failure_file(out: Location, run: RunPlan) -> Location:
    return out / _FAILED / f"{run.run_id}.json"


def _write_failure(out: Location, run: RunPlan, error: str) -> None:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_whole(_failure_file(out, run), json.dumps({"error": error, "at": at}))


def failures(out: Location, runs: list[RunPlan], *, force: bool) -> dict[str, str]:
    """Why runs failed, by their ids: those that are not there, and after `force` those that only an older sweep did."""
    found = {}
    for run in runs:
        stored, done = _failure_file(out, run), is_complete(run_folder(out / SIMULATIONS, run.run_id))
        if (force or not done) and stored.is_file():
            found[run.run_id] = _error_in(stored.read_text())
        elif not done:
            found[run.run_id] = _LOST
    return found


def _error_in(text: str) -> str:
    try:
        return str(json.loads(text)["error"])
    except ValueError:  # killed while it was being written
        return _LOST
