"""What a claim and its judge are; the claims of each paper are in a module of their own.

A judge looks at stored series alone and answers with a grade (`Grade`) on means over seeds; numbers in its texts come
from these series, too, never from memory. Its docstring says which sentence or figure of the paper it judges, in our
own words. Bands are those of the claim's row. Judges name metrics by the constants of `metrics/`, so that a wrong name
fails at once.

A grade other than `met` needs a cause. It is *shown* if a run isolates it (an optimum, an ablation, another network):
then the finding names that experiment as its `cause`, which the claim lists among its experiments, so that
`grapevine reproduce ID` runs it. Without one, the remark is a guess, and the table says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

from grapevine.metrics.catalogue import Metric


class Grade(StrEnum):
    """How far a measured claim agrees with the printed one."""

    MET = "met"  # direction and band
    DIRECTION = "direction"  # the direction holds, the value is outside the band
    OTHER_DEFINITION = "other definition"  # met under a second definition; both values are shown
    CALIBRATED = "calibrated"  # a reading was chosen by this very number, so it is no evidence
    OTHER_DATA = "other data"  # the paper's data are not at hand, and ours differ in what decides
    NOT_MET = "not met"
    NOT_HERE = "not here"  # not measured, with the reason


class MissingError(LookupError):
    """A series that a judge needs is not there."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds with half its 95 % confidence interval; written out as a person reads it."""

    metric: Metric
    mean: float
    half: float
    seeds: int

    def __str__(self) -> str:
        return self.metric.shown_with_spread(self.mean, self.half) if self.seeds > 1 else self.metric.shown(self.mean)


@dataclass(frozen=True, slots=True)
class Effort:
    """What an experiment took."""

    runs: int
    seeds: int
    cpu_s: float  # of all runs together


@dataclass(frozen=True, slots=True)
class Evidence:
    """The series of measured experiments, and why others could not be measured."""

    series: dict[str, list[dict[str, Any]]]  # by experiment; `by_seed` of a row are the values that its mean is of
    absent: dict[str, str]  # experiment → reason
    efforts: dict[str, Effort] = field(default_factory=dict)  # by experiment
    quick: bool = False  # of the quick versions, which are smaller and shorter than the papers'

    def needs_full_length(self, why: str) -> None:
        """MissingError if the series are of quick versions, for a judge whose verdict would be another one there."""
        if self.quick:
            raise MissingError(f"not in the quick version: {why}")

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
            raise self._not_measured(experiment, metric, system, workload, {})
        return found

    def value(self, experiment: str, metric: Metric, system: str, workload: str, **point: Any) -> float:
        """One point: the mean over seeds at these parameters."""
        return self.estimate(experiment, metric, system, workload, **point).mean

    def estimate(self, experiment: str, metric: Metric, system: str, workload: str, **point: Any) -> Estimate:
        """One point with its 95 % interval over seeds."""
        row = self._row(experiment, metric, system, workload, point)
        return Estimate(metric, float(row["mean"]), (row["high"] - row["low"]) / 2, row["runs"])

    def difference(
        self,
        experiment: str,
        metric: Metric,
        system: str,
        of: tuple[str, Mapping[str, Any]],
        minus: tuple[str, Mapping[str, Any]],
    ) -> Estimate:
        """How much more there is `of` one workload and point than of another, `minus`, run by run.

        Runs of the same seed are pairs, so what they share does not widen the 95 % interval of the mean difference.
        """
        more, less = (self._row(experiment, metric, system, *side)["by_seed"] for side in (of, minus))
        found = [more[seed] - less[seed] for seed in sorted(more.keys() & less.keys())]
        if not found:
            raise MissingError(f"{experiment} has no runs of one seed on both {of[0]} and {minus[0]}")
        return Estimate(metric, fmean(found), half_interval(found), len(found))

    def _row(
        self, experiment: str, metric: Metric, system: str, workload: str, point: Mapping[str, Any]
    ) -> dict[str, Any]:
        for row in self.rows(experiment, metric, system, workload):
            if all(row["parameters"].get(key) == value for key, value in point.items()):
                return row
        raise self._not_measured(experiment, metric, system, workload, point)

    def _not_measured(
        self,
        experiment: str,
        metric: Metric,
        system: str,
        workload: str | None,
        point: Mapping[str, Any],
        along: str = "",
    ) -> MissingError:
        """What a judge wanted and the experiment does not have, as a sentence."""
        version = f"the quick version of {experiment}" if self.quick else experiment
        at = "".join(f", {key} = {value}" for key, value in point.items())
        over = f" over several values of {along}" if along else ""
        where = f" on {workload}" if workload else ""
        return MissingError(f"{version} does not measure {metric.name} of {system}{where}{at}{over}")

    def curve(self, experiment: str, metric: Metric, system: str, workload: str, x: str, **point: Any) -> list[float]:
        """The means along x, ascending; a grid of one point, as quick experiments have it, is no curve."""
        rows = [
            row
            for row in self.rows(experiment, metric, system, workload)
            if all(row["parameters"].get(key) == value for key, value in point.items())
        ]
        if len(rows) < 2 or any(x not in row["parameters"] for row in rows):
            raise self._not_measured(experiment, metric, system, workload, point, along=x)
        return [float(row["mean"]) for row in sorted(rows, key=lambda row: row["parameters"][x])]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a judge says of a claim."""

    measured: str  # values with their intervals
    grade: Grade
    remark: str = ""  # why, or under which conditions
    cause: str = ""  # the experiment that shows the remark to be right; none: it is a guess


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

    @property
    def number(self) -> int:
        """Its place among the claims of the paper."""
        return int(self.id[1:])


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
            finding = Finding("–", Grade.NOT_HERE, str(reason))
        if finding.cause and finding.cause not in item.experiments:
            raise ValueError(f"{item.id}: its cause {finding.cause} is not among its experiments {item.experiments}")
        made.append(Judgement(item, finding))
    return made


def met_if(
    condition: bool, measured: str, remark: str = "", *, cause: str = "", otherwise: Grade = Grade.NOT_MET
) -> Finding:
    """A finding that the claim is met exactly if the condition holds; `otherwise` is its grade if it does not."""
    return Finding(measured, Grade.MET if condition else otherwise, remark, cause)


def graded(*, band: bool, direction: bool, measured: str, remark: str = "", cause: str = "") -> Finding:
    """A finding with the grade `met` if direction and band hold, `direction` if the direction alone does."""
    return met_if(
        band and direction, measured, remark, cause=cause, otherwise=Grade.DIRECTION if direction else Grade.NOT_MET
    )


def half_interval(values: Sequence[float]) -> float:
    """Half the 95 % confidence interval (Student) of their mean; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    from scipy.stats import t as student  # here, because it takes half a second to import

    return float(student.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))


def within(value: float, claimed: float, share: float) -> bool:
    """Whether a value is off the claimed one by no more than this share of it."""
    return abs(value / claimed - 1) <= share


def falls(curve: list[float]) -> bool:
    """Every point lies below the one before."""
    return all(a > b for a, b in pairwise(curve))


def percent(value: float) -> str:
    """A share as a person reads it."""
    return f"{100 * value:.1f} %" if abs(value) < 0.9995 or value == 1 else f"{100 * value:.3f} %"


def listed(values: list[float], digits: int = 0) -> str:
    """Values of a curve, with slashes between."""
    return "/".join(f"{value:,.{digits}f}" for value in values)
