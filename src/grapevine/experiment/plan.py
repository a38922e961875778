"""From a description to runs: every system on its workloads, for every point of the grid and every seed."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grapevine.experiment.churn import split_churn
from grapevine.experiment.code import PACKAGE, WORKLOAD_CODE, code_digest, content_digest, run_digest
from grapevine.experiment.description import Experiment, WorkloadEntry
from grapevine.model.errors import UsageError
from grapevine.model.location import Location
from grapevine.sim.simulate import make_config
from grapevine.synthetic import MODELS
from grapevine.systems.registry import system_named


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """One workload to make: a model with its parameters, a trace, whole or a sample, or the copy of a folder. `key`
    names its folder."""

    name: str
    seed: int
    model: str | None
    parameters: dict[str, Any]
    trace: str | None
    path: str | None
    users: int | None
    sample: str  # how the users of a trace are chosen
    code: str  # digest of what makes workloads
    content: str | None = None  # digest of the trace or folder; None: generated, or it is not here
    folder: str | None = None

    @property
    def key(self) -> str:
        """The same workload has the same key, whatever the experiment calls it and wherever its trace lies; another
        trace under the same name, or other code, has another one."""
        content = {field: value for field, value in asdict(self).items() if field not in ("name", "folder")}
        return f"{self.model or self.trace or 'folder'}-{_digest(content)[:12]}"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One run: what it takes to repeat it, and how a plot shows it."""

    system: str
    driver: str
    config: dict[str, Any]
    workload: WorkloadPlan
    churn: dict[str, Any] | None
    run: dict[str, Any]
    seed: int
    shown: dict[str, Any]  # what the grid set
    code: str  # digest of what decides runs
    recorded: tuple[str, ...] = ()  # latency matrices of a run in virtual time
    contents: tuple[str | None, ...] = ()  # digests of the churn trace and of the matrices that it names

    @property
    def run_id(self) -> str:
        """A hash of everything that decides the run: the same run is never done twice."""
        named = [self.recorded, self.contents]
        return _digest(
            [
                self.system,
                self.driver,
                self.config,
                self.workload.key,
                self.churn,
                self.run,
                self.seed,
                self.code,
                named,
            ]
        )[:16]

    @property
    def parameters(self) -> str:
        """The grid point as JSON with sorted keys."""
        return json.dumps(self.shown, sort_keys=True)

    @property
    def effort(self) -> float:
        """A guess at its length, for starting long runs first."""
        nodes = self.workload.parameters.get("nodes") or self.workload.users or 10_000
        if self.driver == "peers":
            return float(nodes * self.run["hours"] * 1e6)
        return float(nodes * self.run["rounds"] * (10 + (self.config.get("table_size") or 60)))


class _Deciding:
    """What besides the description decides keys: digests of the code, and of traces as far as they are here."""

    def __init__(self, traces: Location | None, package: Path) -> None:
        self.workload_code, self._package = code_digest(WORKLOAD_CODE, package), package
        self._traces, self._contents, self._codes = traces, dict[str, str | None](), dict[str, str]()

    def code_of(self, system: str, driver: str) -> str:
        """The digest of all code that decides a run of the system; each is made once."""
        module = system_named(system).facet(driver).__module__
        if module not in self._codes:
            self._codes[module] = run_digest(module, self._package)
        return self._codes[module]

    def content(self, path: str | None) -> str | None:
        """The digest of a trace; each is read once."""
        if path is None or self._traces is None:
            return None
        if path not in self._contents:
            self._contents[path] = content_digest(self._traces / path)
        return self._contents[path]


def plan(experiment: Experiment, *, traces: Location | None = None, package: Path = PACKAGE) -> list[RunPlan]:
    """All runs of the experiment, each once, long ones first.

    `traces` is the folder of real traces, whose contents are part of the keys: without it runs on traces have other ids
    than with it. `package` is where the code lies that decides results.
    """
    workloads = {entry.name: entry for entry in experiment.workloads}
    deciding = _Deciding(traces, package)
    runs: dict[str, RunPlan] = {}
    for entry in experiment.systems:
        timed = entry.driver == "peers"
        recorded = experiment.recorded if timed else ()
        for name, seed in itertools.product(entry.workloads, experiment.seeds):
            made, churns = _workloads(workloads[name], seed, deciding), _churns(workloads[name])
            points = itertools.product(made, churns, _points(entry.parameters))
            for (workload, workload_grid), (churn, churn_grid), (parameters, grid) in points:
                named = (*([churn["path"]] if "path" in churn else []), *recorded)
                run = RunPlan(
                    entry.system,
                    entry.driver,
                    make_config(entry.system, parameters, entry.driver).as_dict(),
                    workload,
                    churn or None,
                    (experiment.clock if timed else experiment.run).as_dict(),
                    seed,
                    workload_grid | churn_grid | ({"driver": entry.driver} if entry.names_driver else {}) | grid,
                    deciding.code_of(entry.system, entry.driver),
                    recorded,
                    tuple(map(deciding.content, named)),
                )
                runs.setdefault(run.run_id, run)
    return sorted(runs.values(), key=lambda run: (-run.effort, run.run_id))


def trace_key(format: str, sources: Sequence[Location]) -> str:
    """The name of the folder that a whole trace is ingested into: its format, its files, and a digest of their contents
    and of the code that reads them."""
    names = [source.name.split(".")[0] for source in sources]
    digest = _digest([format, [content_digest(source) for source in sources], code_digest(WORKLOAD_CODE)])
    return "-".join([format, *names, digest[:12]])


def _workloads(entry: WorkloadEntry, seed: int, deciding: _Deciding) -> list[tuple[WorkloadPlan, dict[str, Any]]]:
    code = deciding.workload_code
    if entry.folder is not None:  # it is what it is, whatever made it
        content = content_digest(Path(entry.folder))
        cut = None, {}, None, None, None, entry.sample
        return [(WorkloadPlan(entry.name, 1, *cut, "", content, entry.folder), {})]
    if entry.model is None:
        # A trace is what it is; its sample is drawn once, so that seeds differ by the run alone.
        content = deciding.content(entry.path)
        cut = entry.trace, entry.path, entry.users, entry.sample
        return [(WorkloadPlan(entry.name, 1, None, entry.parameters, *cut, code, content), {})]
    made = []
    for parameters, grid in _points(entry.parameters):
        try:
            full = MODELS[entry.model](**parameters).as_dict()
        except UsageError as error:
            raise UsageError(f"workload {entry.name}: {error}") from None
        made.append((WorkloadPlan(entry.name, seed, entry.model, full, None, None, None, entry.sample, code), grid))
    return made


def _churns(entry: WorkloadEntry) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every point of the grid in the workload's `churn` table, each of which can be played."""
    points = _points(entry.churn or {})
    for churn, _ in points:
        try:
            source, _ = split_churn(churn)
            if "model" in source:
                MODELS[source.pop("model")](**source)
        except UsageError as error:
            raise UsageError(f"workload {entry.name}: churn: {error}") from None
    return points


def _points(parameters: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every combination of the lists among the parameters, with the part that the lists decided."""
    lists = {key: value for key, value in parameters.items() if isinstance(value, list)}
    fixed = {key: value for key, value in parameters.items() if key not in lists}
    points = []
    for values in itertools.product(*lists.values()):
        grid = dict(zip(lists, values, strict=True))
        points.append((fixed | grid, grid))
    return points


def _digest(content: Any) -> str:
    return hashlib.sha1(json.dumps(content, sort_keys=True).encode(), usedforsecurity=False).hexdigest()
