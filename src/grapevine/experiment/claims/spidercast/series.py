"""SpiderCast's series as its judges look at them: along sizes, along λ, by the period of the loop, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

from grapevine.experiment.claims.base import Estimate, Evidence, MissingError, listed
from grapevine.metrics.catalogue import Metric
from grapevine.metrics.structure import PARTITIONED_TOPICS

SIZES = 1_000, 2_000, 4_000, 6_000, 8_000, 10_000
DEGREES = 10.81, 10.11, 9.53, 9.24, 9.08, 8.95
RIVALS = {  # Fig. 12: similarity(x, y), of which (0, 10) is random(10)
    (10, 0): (10.08, 10.07, 10.08, 10.09, 10.08, 10.08),
    (9, 1): (10.22, 10.22, 10.20, 10.22, 10.21, 10.22),
    (8, 2): (10.20, 10.19, 10.19, 10.20, 10.20, 10.20),
    (7, 3): (10.21, 10.21, 10.20, 10.22, 10.21, 10.21),
    (0, 10): (10.82, 10.54, 10.34, 10.12, 10.08, 10.11),
    (20, 0): (20.04, 20.04, 20.04, 20.04, 20.03, 20.04),
}
DISTRIBUTIONS = "RSS", "Zipf 1", "NYSE", "uniform"
DIAMETERS = 6, 7, 8, 6  # of these, §3.4
PERIODS = {  # seconds of an iteration → the experiment
    0.2: "spidercast_fig11",
    0.4: "spidercast_fig11_400ms",
    0.8: "spidercast_fig11_800ms",
}
LAMBDAS = 100.0, 200.0, 300.0, 400.0, 500.0


def sizes_run(evidence: Evidence, experiment: str, metric: Metric, system: str = "spidercast") -> tuple[int, ...]:
    """The paper's sizes that were run, two at least: quick experiments have the smallest alone."""
    run = {row["parameters"].get("nodes") for row in evidence.rows(experiment, metric, system)}
    found = tuple(size for size in SIZES if size in run)
    if len(found) < 2:
        raise MissingError(f"{experiment} has fewer than two of the paper's sizes")
    return found


def along_sizes(
    evidence: Evidence,
    experiment: str,
    metric: Metric,
    workload: str = "RSS",
    *,
    system: str = "spidercast",
    sizes: Sequence[int] = SIZES,
    **point: object,
) -> list[Estimate]:
    """The estimates at these sizes; a parameter of the point that is None was not set."""
    return [evidence.estimate(experiment, metric, system, workload, nodes=n, **point) for n in sizes]


def means(estimates: Sequence[Estimate]) -> list[float]:
    """Without their intervals."""
    return [estimate.mean for estimate in estimates]


def shown(estimates: Sequence[Estimate], digits: int = 0) -> str:
    """Means with slashes between, and half of the widest 95 % interval."""
    half = max(estimate.half for estimate in estimates)
    return listed(means(estimates), digits) + (f" (± {half:.{max(digits, 1)}f} at most)" if half > 0 else "")


def near(measured: Sequence[float], claimed: Sequence[float], share: float) -> bool:
    """Whether every value is within this share of the claimed one."""
    return all(abs(m / c - 1) <= share for m, c in zip(measured, claimed, strict=True))


def partitions(evidence: Evidence, experiment: str, ties: str | None = None) -> tuple[bool, str]:
    """Whether most runs at every point have all topics connected, and where they have not, means over seeds."""
    rows = [
        row
        for row in evidence.rows(experiment, PARTITIONED_TOPICS, "spidercast")
        if row["parameters"].get("ties") == ties
    ]
    some = [row for row in rows if row["mean"] > 0]
    where = "; ".join(f"{row['workload']}, {row['parameters']['nodes']:,} nodes: {row['mean']:.2g}" for row in some)
    text = f"partitioned topics in the mean: {where}" if some else "no partitioned topics"
    return all(row["mean"] < 0.5 for row in rows), text


def by_period(evidence: Evidence, metric: Metric, rule: str) -> dict[float, list[Estimate]]:
    """With 1,000 online, at λ = 100 and 500 s, for every period of the loop."""
    return {
        seconds: [
            evidence.estimate(name, metric, "spidercast", "1000 online", mean_up_s=up, target_rule=rule)
            for up in (LAMBDAS[0], LAMBDAS[-1])
        ]
        for seconds, name in PERIODS.items()
    }


def under_churn(evidence: Evidence, metric: Metric, online: int, rule: str) -> list[Estimate]:
    """Along λ, with an iteration of 0.2 s."""
    return [
        evidence.estimate("spidercast_fig11", metric, "spidercast", f"{online} online", mean_up_s=up, target_rule=rule)
        for up in LAMBDAS
    ]


def rival(evidence: Evidence, metric: Metric, pair: tuple[int, int], sizes: Sequence[int] = SIZES) -> list[Estimate]:
    """Of similarity(x, y), at these sizes."""
    similar, random = pair
    return along_sizes(
        evidence, "spidercast_fig13", metric, system="similarity", sizes=sizes, similar=similar, random=random
    )


def mean_of(estimates: Sequence[Estimate]) -> float:
    """The mean of several points."""
    return sum(means(estimates)) / len(estimates)
