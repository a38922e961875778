"""From a description to runs: every system on its workloads, for every point of the grid and every seed."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grapevine import __version__
from grapevine.experiment.description import Experiment, WorkloadEntry
from grapevine.model.config import field_types
from grapevine.model.errors import UsageError
from grapevine.sim.churn import ChurnConfig
from grapevine.sim.simulate import make_config
from grapevine.synthetic import MODELS

_DECIDING = "kernels", "blocks", "systems", "sim", "metrics", "synthetic"  # folders whose code a result depends on


def _code_version() -> str:
    """The version and a digest of the code that decides results: an edit elsewhere does not make runs stale."""
    package, digest = Path(__file__).resolve().parents[1], hashlib.sha1(usedforsecurity=False)
    for folder in _DECIDING:
        for source in sorted((package / folder).rglob("*.py")):
            digest.update(source.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:8]}"


CODE = _code_version()


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """One workload to make: a model with its parameters, or a trace, whole or a sample. `key` names its folder."""

    name: str
    seed: int
    model: str | None
    parameters: dict[str, Any]
    trace: str | None
    path: str | None
    users: int | None

    @property
    def key(self) -> str:
        """The same workload has the same key, whatever the experiment calls it."""
        content = {field: value for field, value in asdict(self).items() if field != "name"}
        return f"{self.model or self.trace}-{_digest(content)[:12]}"


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
    recorded: tuple[str, ...] = ()  # latency matrices of a run in virtual time

    @property
    def run_id(self) -> str:
        """A hash of all that decides the run, the code included: the same run is never done twice."""
        made_from = [self.system, self.driver, self.config, self.workload.key, self.churn, self.run, self.seed, CODE]
        return _digest(made_from + ([self.recorded] if self.recorded else []))[:16]

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


def plan(experiment: Experiment) -> list[RunPlan]:
    """All runs of the experiment, each once."""
    workloads = {entry.name: entry for entry in experiment.workloads}
    runs: dict[str, RunPlan] = {}
    for entry in experiment.systems:
        for name, seed in itertools.product(entry.workloads, experiment.seeds):
            made, churns = _workloads(workloads[name], seed), _churns(workloads[name])
            points = itertools.product(made, churns, _points(entry.parameters))
            for (workload, workload_grid), (churn, churn_grid), (parameters, grid) in points:
                timed = entry.driver == "peers"
                run = RunPlan(
                    entry.system,
                    entry.driver,
                    make_config(entry.system, parameters, entry.driver).as_dict(),
                    workload,
                    churn or None,
                    (experiment.clock if timed else experiment.run).as_dict(),
                    seed,
                    workload_grid | churn_grid | ({"driver": entry.driver} if entry.names_driver else {}) | grid,
                    experiment.recorded if timed else (),
                )
                runs.setdefault(run.run_id, run)
    return sorted(runs.values(), key=lambda run: (-run.effort, run.run_id))


def _workloads(entry: WorkloadEntry, seed: int) -> list[tuple[WorkloadPlan, dict[str, Any]]]:
    if entry.model is None:
        # A trace is what it is; its sample is drawn once, so that seeds differ by the run alone.
        return [(WorkloadPlan(entry.name, 1, None, entry.parameters, entry.trace, entry.path, entry.users), {})]
    made = []
    for parameters, grid in _points(entry.parameters):
        try:
            full = MODELS[entry.model](**parameters).as_dict()
        except UsageError as error:
            raise UsageError(f"workload {entry.name}: {error}") from None
        made.append((WorkloadPlan(entry.name, seed, entry.model, full, None, None, None), grid))
    return made


def split_churn(described: dict[str, Any]) -> tuple[dict[str, Any], ChurnConfig]:
    """A `churn` table, without lists, as where sessions come from (path and format, or model and its parameters) and
    how they are played; UsageError if its values contradict each other."""
    playing = field_types(ChurnConfig)
    source = {key: value for key, value in described.items() if key not in playing}
    return source, ChurnConfig(**{key: value for key, value in described.items() if key in playing})


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
