"""Vitis' claims about churn (§IV-F): what a flash crowd does."""

from __future__ import annotations

from grapevine.experiment.claims.base import (
    Evidence,
    Finding,
    claim,
    graded,
    met_if,
    percent,
)
from grapevine.experiment.claims.vitis.series import PATTERNS
from grapevine.metrics.catalogue import Metric
from grapevine.metrics.course import (
    HIT_RATIO_MIN_CROWD,
    HOPS_AFTER_CROWD,
    HOPS_BEFORE_CROWD,
    OVERHEAD_AFTER_CROWD,
    OVERHEAD_BEFORE_CROWD,
    OVERHEAD_IN_CROWD,
)

_BURSTS = {pattern: f"bursts, {pattern}" for pattern in PATTERNS}


def _crowd(evidence: Evidence, metric: Metric, workload: str, settle: int = 0) -> tuple[float, float]:
    """Vitis' and RVR's values as printed (`settle` = 0), or with ring backups and settling (10)."""
    vitis, rvr = (evidence.value("vitis_fig12", metric, s, workload, settle_rounds=settle) for s in ("vitis", "rvr"))
    return vitis, rvr


@claim(
    "V13",
    "Fig. 12a",
    "Skype churn, flash crowd: RVR drops to 87 %, Vitis stays at about 99 %",
    "direction, Vitis ≥ 98 %",
    "vitis_fig12",
)
def _(evidence: Evidence) -> Finding:
    """§IV-F on Fig. 12a: the worst hit ratio of the flash crowd, as printed, that is, without our ring backups and
    settling. The paper names no subscription pattern; a claim that is met holds for all three."""

    def shown(pair: tuple[float, float]) -> str:
        return f"Vitis {percent(pair[0])}, RVR {percent(pair[1])}"

    worst = {pattern: _crowd(evidence, HIT_RATIO_MIN_CROWD, name) for pattern, name in _BURSTS.items()}
    ours = {pattern: _crowd(evidence, HIT_RATIO_MIN_CROWD, name, 10) for pattern, name in _BURSTS.items()}
    held = [pattern for pattern, (vitis, rvr) in worst.items() if vitis >= 0.98 and rvr < vitis - 0.02]
    silent = evidence.value("vitis_fig12", HIT_RATIO_MIN_CROWD, "vitis", _BURSTS["high"], notices="by silence")
    spread = _crowd(evidence, HIT_RATIO_MIN_CROWD, "spread, high")
    return graded(
        band=len(held) == len(worst),
        direction=all(vitis > rvr for vitis, rvr in worst.values()),
        measured="worst round of the crowd as printed: "
        + "; ".join(f"{pattern} {shown(pair)}" for pattern, pair in worst.items())
        + f"; high, sessions spread over half an hour: {shown(spread)}",
        remark=f"in the band for {', '.join(held) or 'no pattern'}. With ring backups and settling, which are ours: "
        + "; ".join(f"{pattern} {shown(pair)}" for pattern, pair in ours.items())
        + f". Where failures are noticed by silence alone, Vitis has {percent(silent)} on high",
        cause="vitis_fig12",
    )


@claim(
    "V15",
    "Fig. 12b",
    "flash crowd: RVR's overhead drops sharply, Vitis' rises slightly",
    "direction",
    "vitis_fig12",
)
def _(evidence: Evidence) -> Finding:
    """§IV-F on Fig. 12b: what the flash crowd does to the overhead of both systems, as printed, on all patterns. Judged
    against the rounds after it, when the network is as large: before the crowd of this trace half of it is away."""
    moves, first = {}, {}
    for pattern, name in _BURSTS.items():
        before, during, after = (
            _crowd(evidence, m, name) for m in (OVERHEAD_BEFORE_CROWD, OVERHEAD_IN_CROWD, OVERHEAD_AFTER_CROWD)
        )
        moves[pattern] = during[0] - after[0], during[1] - after[1]
        first[pattern] = before
    return met_if(
        all(vitis > 0 > rvr for vitis, rvr in moves.values()),
        "in the crowd against after it, in points: "
        + "; ".join(f"{p} Vitis {100 * vitis:+.1f}, RVR {100 * rvr:+.1f}" for p, (vitis, rvr) in moves.items())
        + "; before it: "
        + "; ".join(f"{p} Vitis {percent(vitis)}, RVR {percent(rvr)}" for p, (vitis, rvr) in first.items()),
    )


@claim(
    "V16",
    "Fig. 12c",
    "delay is higher after the crowd, when the network is larger",
    "direction",
    "vitis_fig12",
)
def _(evidence: Evidence) -> Finding:
    """§IV-F on Fig. 12c: hops before the crowd and after it, when the network is larger, as printed."""
    hops = {
        pattern: (_crowd(evidence, HOPS_BEFORE_CROWD, name), _crowd(evidence, HOPS_AFTER_CROWD, name))
        for pattern, name in _BURSTS.items()
    }
    return met_if(
        all(after[i] > before[i] for before, after in hops.values() for i in (0, 1)),
        "; ".join(
            f"{p} Vitis {before[0]:.1f} → {after[0]:.1f}, RVR {before[1]:.1f} → {after[1]:.1f} hops"
            for p, (before, after) in hops.items()
        ),
    )
