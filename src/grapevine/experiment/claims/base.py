"""What a claim and its judge are; the claims of each paper are in a module of their own.

A verdict is `met`, `not met`, or `not here` with the reason. Bands are those of the claim's row; a judge never looks at
anything but stored series. Judges name metrics by the constants of `metrics/`, so that a wrong name fails at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from grapevine.metrics.catalogue import Metric

MET, NOT_MET, NOT_HERE = "met", "not met", "not here"


class MissingError(LookupError):
    """A series that a judge needs is not there."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The series of measured experiments, and why others could not be measured."""

    series: dict[str, list[dict[str, Any]]]  # by experiment
    absent: dict[str, str]  # experiment → reason

    def rows(self, experiment: str, metric: Metric, system: str, workload: str | None = None) -> list[dict[str, Any]]:
        """The points of one metric; of all workloads when none is named."""
        if experiment in self.absent or experiment not in self.series:
            raise MissingError(self.absent.get(experiment, f"{experiment} was not run"))
        found = [
            row
            for row in self.series[experiment]
            if row["metric"] == metric.name and row["system"] == system and workload in (None, row["workload"])
        ]
        if not found:
            raise MissingError(f"{experiment} has no {metric.name} of {system} on {workload or 'anything'}")
        return found

    def value(self, experiment: str, metric: Metric, system: str, workload: str, **point: Any) -> float:
        """One point: the mean over seeds at these parameters."""
        for row in self.rows(experiment, metric, system, workload):
            if all(row["parameters"].get(key) == value for key, value in point.items()):
                return float(row["mean"])
        raise MissingError(f"{experiment} has no {metric.name} of {system} on {workload} at {point}")

    def curve(self, experiment: str, metric: Metric, system: str, workload: str, x: str, **point: Any) -> list[float]:
        """The means along x, ascending; a grid of one point, as quick experiments have it, is no curve."""
        rows = [
            row
            for row in self.rows(experiment, metric, system, workload)
            if all(row["parameters"].get(key) == value for key, value in point.items())
        ]
        if len(rows) < 2 or any(x not in row["parameters"] for row in rows):
            raise MissingError(f"{experiment} has no {metric.name} of {system} on {workload} along {x} at {point}")
        return [float(row["mean"]) for row in sorted(rows, key=lambda row: row["parameters"][x])]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a judge says of a claim: whether it is met, what was measured, and why."""

    measured: str
    verdict: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A row of a paper's results."""

    id: str
    paper: str
    where: str
    claimed: str
    band: str
    experiments: tuple[str, ...]
    judge: Callable[[Evidence], Finding]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim with its finding."""

    claim: Claim
    finding: Finding


CLAIMS: dict[str, Claim] = {}


def claim(
    id: str, where: str, claimed: str, band: str, *experiments: str
) -> Callable[[Callable[[Evidence], Finding]], Callable[[Evidence], Finding]]:
    """Register a function as the judge of this claim; `grapevine reproduce ID` calls it with the evidence."""
    papers = {"V": "vitis", "S": "spidercast", "M": "magnet", "R": "rappel", "O": "omen"}

    def add(judge: Callable[[Evidence], Finding]) -> Callable[[Evidence], Finding]:
        CLAIMS[id] = Claim(id, papers[id[0]], where, claimed, band, experiments, judge)
        return judge

    return add


def judge_all(claims: Iterable[Claim], evidence: Evidence) -> list[Judgement]:
    """Every claim judged; what lacks its evidence says why."""
    made = []
    for item in claims:
        try:
            finding = item.judge(evidence)
        except MissingError as reason:
            finding = Finding("–", NOT_HERE, str(reason))
        made.append(Judgement(item, finding))
    return made


def met_if(condition: bool, measured: str, remark: str = "") -> Finding:
    """A finding that the claim is met exactly if the condition holds."""
    return Finding(measured, MET if condition else NOT_MET, remark)


def falls(curve: list[float]) -> bool:
    """Every point lies below the one before."""
    return all(a > b for a, b in pairwise(curve))


def percent(value: float) -> str:
    """A share as a person reads it."""
    return f"{100 * value:.1f} %" if abs(value) < 0.9995 or value == 1 else f"{100 * value:.3f} %"


def listed(values: list[float], digits: int = 0) -> str:
    """Values of a curve, with slashes between."""
    return "/".join(f"{value:,.{digits}f}" for value in values)
