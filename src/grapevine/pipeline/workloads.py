"""The workloads of an experiment: generated, ingested and sampled once, and taken from neighbours that have them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from grapevine.experiment.plan import RunPlan, WorkloadPlan, trace_key
from grapevine.model.errors import UsageError
from grapevine.model.folder import new_folder
from grapevine.model.location import Location, local_copy, local_draft
from grapevine.model.manifest import is_complete, read_manifest
from grapevine.model.tables import CHURN, LATENCY, SUBSCRIPTIONS, Table
from grapevine.pipeline.formats import FORMATS
from grapevine.pipeline.generate import generate
from grapevine.pipeline.ingest import ingest
from grapevine.pipeline.sample import USER_SAMPLES, SubscriberSample, sample
from grapevine.pipeline.stage import Stage
from grapevine.synthetic import MODELS
from grapevine.synthetic.base import SubscriptionModel
from grapevine.synthetic.folder import fits_a_task, generate_here

KIND = "workload"
WORKLOADS = "workloads"  # the folder of an experiment's workloads
Folders = dict[tuple[str, ...], Location]  # ingested traces by their paths


def borrow(target: Location, out: Location, kind: str, *, force: bool = False) -> bool:
    """Whether the folder, which is or will be two levels below the experiment `out`, has been taken from a neighbour of
    `out` that has it; or is there already, unless `force` asks for a new one."""
    if not force and is_complete(target):
        return True
    lent = _lent(target, out.resolve())
    if lent is not None:
        copy_folder(lent, target, kind, force=force)
    return lent is not None


def _lent(target: Location, out: Location) -> Location | None:
    """The same folder below a neighbour of `out`, the first by its name. What may not be looked into lends nothing."""
    neighbours: list[Location] = []
    with suppress(OSError, UsageError):
        neighbours += out.parent.iterdir()
    for neighbour in sorted(neighbours, key=str):
        found = neighbour / target.parent.name / target.name
        with suppress(OSError, UsageError):
            if neighbour != out and is_complete(found):
                return found
    return None


def copy_folder(source: Location, target: Location, kind: str, *, force: bool = False) -> None:
    """Make a complete folder that is a copy of another one; on one local disk its files are links to the same."""
    manifest = read_manifest(source, kind)
    with (
        new_folder(target, kind=kind, force=force) as draft,
        local_copy(manifest.tables_in(source)) as local,
        local_draft(draft) as into,
    ):
        shutil.copytree(local, into, dirs_exist_ok=True, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _model(workload: WorkloadPlan) -> SubscriptionModel:
    """The model of a workload that is generated; that it makes subscriptions was checked with the description."""
    assert workload.model is not None
    model = MODELS[workload.model](**workload.parameters)
    assert isinstance(model, SubscriptionModel)
    return model


@dataclass(frozen=True, slots=True)
class WorkloadMaker:
    """Makes the workloads of one experiment, below its folder `out`, from models and from the folder of `traces`.

    What is there is not made again, unless `force` asks for it.
    """

    stage: Stage
    out: Location
    traces: Location | None
    force: bool = False

    def folder(self, key: str) -> Location:
        """Where the workload of this key is, or will be."""
        return self.out / WORKLOADS / key

    def make(self, workloads: Iterable[WorkloadPlan]) -> None:
        """Make these workloads, each under its key. UsageError if the trace of one is not here.

        Small ones are made at the same time, by a task each, where tasks reach the experiment's folder.
        """
        by_key = {workload.key: workload for workload in workloads}
        missing = [w for key, w in by_key.items() if not borrow(self.folder(key), self.out, KIND, force=self.force)]
        missing.sort(key=lambda workload: workload.model is not None)  # a trace that is not here is found at once
        small = [w for w in missing if isinstance(self.out, Path) and w.model is not None and fits_a_task(_model(w))]
        for workload in missing:
            if workload not in small or len(small) == 1:
                self._make(workload)
        if len(small) > 1:
            self._make_in_tasks(small)

    def _make_in_tasks(self, workloads: list[WorkloadPlan]) -> None:
        context, force = self.stage.spark.sparkContext, self.force
        tasks = [(json.dumps(asdict(workload)), str(self.folder(workload.key).resolve())) for workload in workloads]

        def work(task: tuple[str, str]) -> None:
            workload = WorkloadPlan(**json.loads(task[0]))
            assert workload.model is not None
            generate_here(workload.model, _model(workload), Path(task[1]), seed=workload.seed, force=force)

        with self.stage.step(f"generating {len(tasks)} workloads"):
            context.parallelize(tasks, numSlices=len(tasks)).foreach(work)

    def _make(self, workload: WorkloadPlan) -> None:
        target, seed, force = self.folder(workload.key), workload.seed, self.force
        if workload.model is not None:
            generate(self.stage, workload.model, _model(workload), target, seed=seed, force=force)
            return
        if workload.folder is not None:
            copy_folder(Path(workload.folder), target, KIND, force=force)
            return
        assert workload.trace is not None and workload.path is not None
        whole = self._ingested(workload.trace, (workload.path,), wanted=SUBSCRIPTIONS)
        if workload.parameters:
            sample(self.stage, whole, target, SubscriberSample(**workload.parameters), seed=seed, force=force)
        elif workload.users is not None:
            kind = USER_SAMPLES[workload.sample]
            sample(self.stage, whole, target, kind(users=workload.users), seed=seed, force=force)
        else:
            copy_folder(whole, target, KIND, force=force)

    def trace_folders(self, runs: list[RunPlan]) -> Folders:
        """Where the recorded churn and latency of the runs lie, by the paths that the experiment names."""
        latency = {("latency-matrix", run.recorded) for run in runs if run.recorded}
        churn = {(run.churn["format"], (run.churn["path"],)) for run in runs if run.churn and "path" in run.churn}
        return {
            paths: self._ingested(format, paths, wanted=table)
            for named, table in ((latency, LATENCY), (churn, CHURN))
            for format, paths in sorted(named)
        }

    def _ingested(self, format: str, paths: Sequence[str], *, wanted: Table) -> Location:
        """The whole trace as a workload that has the wanted table, read once."""
        fitting = [name for name, known in FORMATS.items() if known.meaning.makes == wanted]
        if format not in fitting:
            raise UsageError(f"trace {format!r}: choose a format that makes {wanted.name}, one of {', '.join(fitting)}")
        if self.traces is None:
            raise UsageError(f"{paths[0]}: no folder of real traces here; set GRAPEVINE_DATA to one that has it")
        sources = [self.traces / path for path in paths]
        for source in sources:
            if not source.exists():
                raise UsageError(f"{source}: no such file; set GRAPEVINE_DATA to the folder of traces that has it")
        target = self.folder(trace_key(format, sources))
        if not borrow(target, self.out, KIND):
            ingest(self.stage, format, [str(source) for source in sources], target)
        return target
