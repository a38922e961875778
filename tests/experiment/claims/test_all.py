"""What holds for the judge of every claim."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from grapevine.experiment.claims import CLAIMS, Claim, Evidence, Finding, Grade, judge_all
from grapevine.experiment.description import published_experiments, read_experiment
from grapevine.experiment.plan import plan
from grapevine.metrics.catalogue import Metric, find
from grapevine.metrics.traffic import OVERHEAD
from tests.experiment.claims.series import row, verdict


def test_a_missing_run_is_no_evidence() -> None:
    full = {"spidercast_fig14": [row(s, "RSS", "degree", 9.0, nodes=1000) for s in ("spidercast", "ring-per-topic")]}
    assert verdict("S12", full)[0] == Grade.NOT_HERE


def test_without_evidence_the_reason_is_told() -> None:
    (judged,) = judge_all([CLAIMS["V9"]], Evidence({}, {"vitis_fig10": "no folder of real traces here"}))
    assert judged.finding.grade == Grade.NOT_HERE
    assert judged.finding.remark == "no folder of real traces here"


class Ones(Evidence):
    """Evidence whose series are the planned runs: it has a one for each, for whichever metric is asked."""

    def rows(self, experiment: str, metric: Metric, system: str, workload: str | None = None) -> list[dict[str, Any]]:
        if find(metric.name) is None:
            raise LookupError(metric.name)
        planned = (one | {"metric": metric.name} for one in self.series[experiment])
        return [one for one in planned if one["system"] == system and workload in (None, one["workload"])]


@cache
def planned_runs(experiment: Path, *, quick: bool) -> list[dict[str, Any]]:
    described = read_experiment(experiment, quick=quick)
    seeds = len(described.seeds)
    return [row(run.system, run.workload.name, "", 1.0, runs=seeds, parameters=run.shown) for run in plan(described)]


@pytest.mark.parametrize("quick", [pytest.param(True, marks=pytest.mark.slow), False])
def test_every_claim_is_judged_on_what_its_experiments_would_bring(quick: bool) -> None:
    """Whatever the grade, no judge stumbles; a quick grid may be too small for some."""
    published = published_experiments()
    for claim in CLAIMS.values():
        planned = {name: planned_runs(published[name], quick=quick) for name in claim.experiments}
        (judged,) = judge_all([claim], Ones(planned, {}))
        if not quick:
            assert judged.finding.grade != Grade.NOT_HERE, (claim.id, judged.finding)


def test_every_claim_survives_missing_evidence() -> None:
    assert {judged.finding.grade for judged in judge_all(CLAIMS.values(), Evidence({}, {}))} == {Grade.NOT_HERE}


def test_a_cause_is_an_experiment_that_the_claim_runs() -> None:
    claim = Claim("V0", "vitis", "§0", "", "", ("vitis_fig4",), lambda _: Finding("", Grade.NOT_MET, "", "vitis_fig5"))
    with pytest.raises(ValueError, match="V0: its cause vitis_fig5 is not among"):
        judge_all([claim], Evidence({}, {}))


def test_an_estimate_is_written_with_its_interval_when_there_are_several_seeds() -> None:
    points = [row("vitis", "high", "overhead", 0.088, half=0.004, runs=5), row("rvr", "high", "overhead", 0.75)]
    evidence = Evidence({"vitis_fig4": points}, {})
    assert str(evidence.estimate("vitis_fig4", OVERHEAD, "vitis", "high")) == "8.80% ± 0.40%"
    assert str(evidence.estimate("vitis_fig4", OVERHEAD, "rvr", "high")) == "75.00%"
