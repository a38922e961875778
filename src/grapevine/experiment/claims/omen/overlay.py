"""OMen's claims about the overlay under churn: degrees and diameters (§6.5, §6.7)."""

from __future__ import annotations

from grapevine.experiment.claims.base import (
    Evidence,
    Finding,
    Grade,
    claim,
    graded,
    met_if,
)
from grapevine.experiment.claims.omen.series import SIGHT, SIGHTS, several
from grapevine.metrics.catalogue import Metric
from grapevine.metrics.course import (
    DEGREE_MAX_ON_THE_WAY,
    DEGREE_ON_THE_WAY,
    DIAMETER_MAX_ON_THE_WAY,
    DIAMETER_ON_THE_WAY,
)
from grapevine.metrics.structure import DEGREE_MAX

_EVENTS = 2000  # of omen_fig8 and omen_fig9


def _to_lowoda(evidence: Evidence, sight: str) -> tuple[float, float]:
    """Largest degree over that of LowODA-Re, and mean degree less that of LowODA-Re, in the mean over the churn."""

    def of(metric: Metric) -> tuple[float, float]:
        mended = several(evidence.estimate("omen_fig9", metric, "omen", "FB 1K", view="partial", sight=sight))
        return mended.mean, evidence.value("omen_fig9", metric, "lowoda", "FB 1K", repair="rebuild")

    most, mean = of(DEGREE_MAX_ON_THE_WAY), of(DEGREE_ON_THE_WAY)
    return most[0] / most[1], mean[0] - mean[1]


@claim("O5", "§6.5", "FB: D_OMen ≤ 1.15 · D_LowODA-Re; mean degree within + 1.12, on average", "≤", "omen_fig9")
def _(evidence: Evidence) -> Finding:
    """§6.5, first point: largest and mean degree against LowODA-Re, averaged over the whole churn on Facebook."""
    found = {sight: _to_lowoda(evidence, sight) for sight in SIGHTS}
    met = {sight: most <= 1.15 and more <= 1.12 for sight, (most, more) in found.items()}
    measured = "; ".join(
        f"sight `{sight}` {most:.2f} · D_LowODA-Re, mean degree {more:+.2f}" for sight, (most, more) in found.items()
    )
    if met["shadow"] or met["neighbours"]:
        return Finding(measured, Grade.MET, f"the default is `{SIGHT}`")
    return Finding(
        measured,
        Grade.CALIBRATED if met["overlay"] else Grade.NOT_MET,
        "Algorithm 1 as printed adds links until the shadow set is connected by itself. A coordinator that does not "
        "see beyond it, or beyond its members' neighbours, also joins what is joined elsewhere; only one that searches "
        "the whole overlay stays within both bounds, and that reading was chosen because of them",
        "omen_fig9",
    )


@claim("O6", "§6.5", "FB 1K: largest degree of SpiderCast (3, 1) higher by 355 on average", "direction", "omen_fig9")
def _(evidence: Evidence) -> Finding:
    """§6.5, third point: how far the largest degree of SpiderCast (3, 1) lies above OMen's, averaged over the churn."""
    omen = evidence.estimate("omen_fig9", DEGREE_MAX_ON_THE_WAY, "omen", "FB 1K", view="partial", sight=SIGHT)
    rivals = [
        evidence.estimate("omen_fig9", DEGREE_MAX_ON_THE_WAY, "spidercast", "FB 1K", random_coverage=random)
        for random in (1, 0)
    ]
    return met_if(
        rivals[0].mean > omen.mean,
        f"higher by {rivals[0].mean - omen.mean:.0f} ({rivals[0]} against {omen}); that of SpiderCast (4, 0) by "
        f"{rivals[1].mean - omen.mean:.0f}",
    )


@claim("O8", "Fig. 11", "TW 1K: mean topic diameter 1.45 above that of SpiderCast (3, 1)", "± 1", "omen_fig11")
def _(evidence: Evidence) -> Finding:
    """§6.7 with Fig. 11: the difference of the mean topic diameters, averaged over the churn."""
    omen = several(evidence.estimate("omen_fig11", DIAMETER_ON_THE_WAY, "omen", "TW 1K", sight=SIGHT))
    rival = evidence.estimate("omen_fig11", DIAMETER_ON_THE_WAY, "spidercast", "TW 1K", random_coverage=1)
    central = evidence.estimate("omen_fig11", DIAMETER_ON_THE_WAY, "lowoda", "TW 1K", repair="rebuild")
    return graded(
        band=abs(omen.mean - rival.mean - 1.45) <= 1,
        direction=omen.mean > rival.mean,
        measured=f"{omen.mean - rival.mean:+.2f}: OMen {omen}, SpiderCast {rival}, LowODA-Re {central}",
    )


@claim("O12", "§6.7", "TW 1K: largest topic diameter 3.67 above that of SpiderCast (3, 1)", "± 1", "omen_fig11")
def _(evidence: Evidence) -> Finding:
    """§6.7: the difference of the largest topic diameters, averaged over the churn."""
    omen = several(evidence.estimate("omen_fig11", DIAMETER_MAX_ON_THE_WAY, "omen", "TW 1K", sight=SIGHT))
    rival = evidence.estimate("omen_fig11", DIAMETER_MAX_ON_THE_WAY, "spidercast", "TW 1K", random_coverage=1)
    return graded(
        band=abs(omen.mean - rival.mean - 3.67) <= 1,
        direction=omen.mean > rival.mean,
        measured=f"{omen.mean - rival.mean:+.2f}: OMen {omen}, SpiderCast {rival}",
    )


@claim(
    "O13",
    "§6.5",
    "FB 1K: OMen lies close to OMen-G: D_OMen ≤ 1.04 · D_OMen-G, mean degree within + 0.76, on average",
    "≤",
    "omen_fig9",
)
def _(evidence: Evidence) -> Finding:
    """§6.5: what partial views cost in degrees against full knowledge, averaged over the churn on Facebook."""

    def pair(metric: Metric) -> list[float]:
        return [
            several(evidence.estimate("omen_fig9", metric, "omen", "FB 1K", view=view, sight=SIGHT)).mean
            for view in ("partial", "global")
        ]

    most, mean = pair(DEGREE_MAX_ON_THE_WAY), pair(DEGREE_ON_THE_WAY)
    return graded(
        band=most[0] <= 1.04 * most[1] and mean[0] - mean[1] <= 0.76,
        direction=mean[0] - mean[1] <= 0.76,
        measured=f"{most[0] / most[1]:.2f} · D_OMen-G; mean degree {mean[0] - mean[1]:+.2f}",
    )


@claim(
    "O14",
    "§6.5",
    "FB 1K: the largest degree grows slowly, from 232 to 283 in 2,000 churn rounds (0.025 a round)",
    "≤ 0.025 a round",
    "omen_fig9",
)
def _(evidence: Evidence) -> Finding:
    """§6.5, second point: the growth of the largest degree over 2,000 events. It starts at LowODA's, which LowODA-Re
    shows in the mean over the churn."""
    first = evidence.estimate("omen_fig9", DEGREE_MAX_ON_THE_WAY, "lowoda", "FB 1K", repair="rebuild")
    last = {
        sight: several(evidence.estimate("omen_fig9", DEGREE_MAX, "omen", "FB 1K", view="partial", sight=sight))
        for sight in SIGHTS
    }
    rate = {sight: (found.mean - first.mean) / _EVENTS for sight, found in last.items()}
    return met_if(
        rate[SIGHT] <= 0.025,
        f"from {first} to "
        + ", ".join(f"{found} (sight `{sight}`, {rate[sight]:.3f} a round)" for sight, found in last.items()),
        "the fewer links a coordinator sees, the more it adds that were not needed",
        cause="omen_fig9",
    )
