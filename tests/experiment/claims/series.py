"""Series that were written down by hand, and what a judge says of them."""

from __future__ import annotations

from typing import Any

from grapevine.experiment.claims import CLAIMS, Evidence, Grade, judge_all


def row(
    system: str,
    workload: str,
    metric: str,
    mean: float,
    *,
    half: float = 0.0,
    runs: int = 1,
    parameters: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """One point of a series: a mean over so many runs, with half its interval; every run had the mean."""
    return {
        "system": system,
        "workload": workload,
        "metric": metric,
        "runs": runs,
        "mean": mean,
        "low": mean - half,
        "high": mean + half,
        "parameters": (parameters or {}) | more,
        "by_seed": dict.fromkeys(range(1, runs + 1), mean),
    }


def verdict(claim: str, series: dict[str, list[dict[str, Any]]]) -> tuple[Grade, str]:
    """The grade of a claim on these series by experiment, and what was measured."""
    (judged,) = judge_all([CLAIMS[claim]], Evidence(series, {}))
    return judged.finding.grade, judged.finding.measured
