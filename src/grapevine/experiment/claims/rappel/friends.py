"""Rappel's claims about friends: interest locality, filters, and coverage (§1, §2.2, §6.3)."""

from __future__ import annotations

from grapevine.experiment.claims.base import (
    Evidence,
    Finding,
    Grade,
    claim,
    graded,
    met_if,
    percent,
    within,
)
from grapevine.metrics.catalogue import Metric
from grapevine.metrics.timed import (
    NEIGHBOUR_OVERLAP,
)
from grapevine.systems.rappel.measures import (
    BEST_FRIENDS_COVER,
    BEST_FRIENDS_SHARE,
    COVERED,
    FALSE_POSITIVES,
    FULLY_COVERED,
    FULLY_COVERED_MULTI,
    LEAST_COVERED,
    MANY_FEEDS_COVERED,
)

_FALSE = {50: 0.0025, 100: 0.016, 200: 0.087}  # §2.2


_AUDITS = "audits go through all candidates within hours"


@claim(
    "R1",
    "Fig. 1a",
    "6 best friends, chosen greedily, cover every feed of more than 95 % of users",
    "direction",
    "rappel_fig1",
)
def _(evidence: Evidence) -> Finding:
    """§1 and the caption of Fig. 1: six best friends cover all feeds of more than 95 % of LiveJournal's users."""
    covered = evidence.estimate("rappel_fig1", BEST_FRIENDS_COVER, "rappel", "Twitter")
    return met_if(
        covered.mean > 0.95,
        f"{covered} of users with five feeds or more",
        "ego-Twitter in place of LiveJournal",
        otherwise=Grade.OTHER_DATA,
    )


@claim("R2", "§2.2", "false positives of 0.25 % / 1.6 % / 8.7 % with 50 / 100 / 200 feeds", "±20 %", "rappel_fig1")
def _(evidence: Evidence) -> Finding:
    """§2.2, last paragraph but one: the three rates of 1,024 bits and three hashes."""
    rates = {n: evidence.estimate("rappel_fig1", FALSE_POSITIVES.of(number=n), "rappel", "Twitter") for n in _FALSE}
    met = all(within(rate.mean, _FALSE[n], 0.2) for n, rate in rates.items())
    return met_if(met, " / ".join(str(rate) for rate in rates.values()))


@claim(
    "R5",
    "Fig. 9a",
    "91 % of nodes are fully covered by their 6 friends",
    "±7 points",
    "rappel_fig9",
    "rappel_fig9_planetlab",
)
def _(evidence: Evidence) -> Finding:
    """§6.3 on Fig. 9a: 91 % of the points lie on the line of perfect coverage; of Fig. 9b the remark."""
    evidence.needs_full_length(_AUDITS)
    covered = evidence.value("rappel_fig9", FULLY_COVERED, "rappel", "Twitter", friends=6)
    alone = evidence.value("rappel_fig9", FULLY_COVERED, "rappel", "Twitter", interest="alone")
    real = evidence.value("rappel_fig9_planetlab", FULLY_COVERED, "rappel", "Twitter", friends=6)
    return met_if(
        abs(covered - 0.91) <= 0.07,
        f"{percent(covered)}; on PlanetLab {percent(real)}",
        f"when interest alone counts {percent(alone)}: what is missing is the price of nearness, by which the utility "
        f"divides, on ego-Twitter's feeds",
        cause="rappel_fig9",
        otherwise=Grade.OTHER_DATA if abs(alone - 0.91) > 0.07 else Grade.NOT_MET,
    )


@claim(
    "R6", "§6.3", "with 4 friends, 73 % of subscribers to several feeds are fully covered", "±10 points", "rappel_fig9"
)
def _(evidence: Evidence) -> Finding:
    """§6.3, last paragraph: the coverage of multi-feed subscribers with α = 4, which more friends hardly improve."""
    evidence.needs_full_length(_AUDITS)
    four, six = (
        evidence.value("rappel_fig9", FULLY_COVERED_MULTI, "rappel", "Twitter", friends=friends) for friends in (4, 6)
    )
    alone = evidence.value("rappel_fig9", FULLY_COVERED_MULTI, "rappel", "Twitter", interest="alone")
    return met_if(
        abs(four - 0.73) <= 0.1,
        percent(four),
        f"with 6: {percent(six)}; with 6 and interest alone: {percent(alone)}, so nearness costs coverage",
        cause="rappel_fig9",
    )


@claim(
    "R9",
    "Fig. 1b",
    "coverage by 6 best friends does not degrade with the number of subscriptions",
    "direction",
    "rappel_fig1",
)
def _(evidence: Evidence) -> Finding:
    """§1 on Fig. 1b: coverage does not degrade as users subscribe to more; we allow five points."""
    classes = 5, 10, 20, 40
    shares = [
        evidence.estimate("rappel_fig1", BEST_FRIENDS_SHARE.of(number=least), "rappel", "Twitter") for least in classes
    ]
    measured = ", ".join(f"{share} of {least} – {2 * least - 1}" for least, share in zip(classes, shares, strict=True))
    return met_if(
        min(share.mean for share in shares) >= shares[0].mean - 0.05,
        f"covered: {measured}",
        "on ego-Twitter; the paper has LiveJournal",
        cause="rappel_fig1",
        otherwise=Grade.OTHER_DATA,
    )


@claim(
    "R12",
    "Fig. 9a",
    "whoever subscribes to 9 feeds or more has at least 6 of them covered",
    "all of them",
    "rappel_fig9",
)
def _(evidence: Evidence) -> Finding:
    """§6.3 on Fig. 9a: of nodes with nine feeds or more, each has as many feeds covered as it has friends."""
    evidence.needs_full_length(_AUDITS)
    point: dict[str, object] = {"friends": 6}
    share = evidence.value("rappel_fig9", MANY_FEEDS_COVERED, "rappel", "Twitter", **point)
    least = evidence.value("rappel_fig9", LEAST_COVERED, "rappel", "Twitter", **point)
    alone = evidence.value("rappel_fig9", MANY_FEEDS_COVERED, "rappel", "Twitter", interest="alone")
    return graded(
        band=share == 1,
        direction=share > 0.95,
        measured=f"{percent(share)} of them; the least is {least:.0f} feeds",
        remark=f"when interest alone counts {percent(alone)}",
        cause="rappel_fig9",
    )


@claim(
    "R16",
    "Fig. 9b, c",
    "80 % of nodes have neighbours in several roles, fewer by interest alone; coverage is alike",
    "±10 points; direction",
    "rappel_fig9",
)
def _(evidence: Evidence) -> Finding:
    """§6.3 on Fig. 9b and 9c: nearness hardly costs coverage, and gives 80 % of nodes neighbours in several roles."""
    evidence.needs_full_length(_AUDITS)

    def of(metric: Metric) -> tuple[float, float]:
        both = evidence.value("rappel_fig9", metric, "rappel", "Twitter", friends=6)
        return both, evidence.value("rappel_fig9", metric, "rappel", "Twitter", interest="alone")

    (both, alone), (covered, covered_alone) = of(NEIGHBOUR_OVERLAP), of(COVERED)
    return graded(
        direction=both > alone,
        band=both >= 0.7 and both - alone > 0.1 and covered_alone - covered < 0.1,
        measured=f"{percent(both)}, by interest alone {percent(alone)}; feeds covered {percent(covered)} / "
        f"{percent(covered_alone)}",
        remark="roles of friends, parents and children; fans and candidates do not count",
        cause="rappel_fig9",
    )
