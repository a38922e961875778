"""The claims of Vitis (Rahimian et al. 2011)."""

from __future__ import annotations

import math

from grapevine.experiment.claims.base import Evidence, Finding, claim, falls, met_if, percent
from grapevine.metrics.catalogue import Metric
from grapevine.metrics.course import HIT_RATIO_MIN, HIT_RATIO_MIN_CROWD
from grapevine.metrics.findings import LOOKUP_HOPS
from grapevine.metrics.structure import DEGREE_MAX, DEGREE_OVER, NODES_OVER_20_PERCENT
from grapevine.metrics.traffic import HIT_RATIO, HOPS, OVERHEAD, RELAYS_PER_EVENT

PATTERNS = "random", "low", "high"


@claim(
    "V1", "§IV-B", "hit ratio 100 % for Vitis and RVR in all static settings", "≥ 99.99 %", "vitis_fig4", "vitis_fig6"
)
def _(evidence: Evidence) -> Finding:
    rows = [
        row
        for experiment, systems in (("vitis_fig4", ("vitis", "rvr")), ("vitis_fig6", ("vitis", "rvr")))
        for system in systems
        for row in evidence.rows(experiment, HIT_RATIO, system)
    ]
    least = min(row["mean"] for row in rows)
    return met_if(least >= 0.9999, f"at least {percent(least)} in {len(rows)} settings")


@claim("V2", "Fig. 4a", "correlated: overhead reduced by 88 % against RVR", "≥ 80 % less", "vitis_fig4")
def _(evidence: Evidence) -> Finding:
    vitis = evidence.value("vitis_fig4", OVERHEAD, "vitis", "high", ring_and_long_links=3)
    rvr = evidence.value("vitis_fig4", OVERHEAD, "rvr", "random")
    saved = 1 - vitis / rvr
    return met_if(saved >= 0.8, f"{percent(saved)} less ({percent(vitis)} against {percent(rvr)})")


@claim("V3", "Fig. 4a", "random: overhead less than 1/3 of RVR's", "< 1/3", "vitis_fig4")
def _(evidence: Evidence) -> Finding:
    vitis = evidence.value("vitis_fig4", OVERHEAD, "vitis", "random", ring_and_long_links=3)
    rvr = evidence.value("vitis_fig4", OVERHEAD, "rvr", "random")
    relays = [
        evidence.value("vitis_fig4", RELAYS_PER_EVENT, "vitis", "random", ring_and_long_links=3),
        evidence.value("vitis_fig4", RELAYS_PER_EVENT, "rvr", "random"),
    ]
    return met_if(
        vitis / rvr < 1 / 3,
        f"{vitis / rvr:.2f} of it ({percent(vitis)} against {percent(rvr)}); "
        f"relays {relays[0]:.0f} against {relays[1]:.0f}",
        "not reached by any reading that was tried: with 12 friends the 100 subscribers of a random topic elect 48 "
        "gateways",
    )


@claim("V4", "Fig. 4b", "more friends: delay falls when correlated, rises when random", "direction", "vitis_fig4")
def _(evidence: Evidence) -> Finding:
    ends = {
        pattern: [evidence.value("vitis_fig4", HOPS, "vitis", pattern, ring_and_long_links=k) for k in (15, 3)]
        for pattern in PATTERNS
    }
    right = (
        ends["high"][1] < ends["high"][0] and ends["low"][1] < ends["low"][0] and ends["random"][1] > ends["random"][0]
    )
    ranges = ", ".join(f"{pattern} {a:.1f} → {b:.1f}" for pattern, (a, b) in ends.items())
    return met_if(right, f"hops from 0 to 12 friends: {ranges}")


@claim("V5", "Fig. 5", "share of nodes with over 20 % overhead below 1/3 of RVR's", "< 1/3", "vitis_fig5")
def _(evidence: Evidence) -> Finding:
    rvr = evidence.value("vitis_fig5", NODES_OVER_20_PERCENT, "rvr", "random")
    vitis = {p: evidence.value("vitis_fig5", NODES_OVER_20_PERCENT, "vitis", p) for p in PATTERNS}
    shares = ", ".join(f"{pattern} {percent(value)}" for pattern, value in vitis.items())
    return met_if(
        vitis["high"] < rvr / 3,
        f"{shares}; RVR {percent(rvr)}",
        "judged on high correlation; at RT = 15 it does not hold for the other two patterns",
    )


@claim(
    "V6",
    "Fig. 6",
    "RT 15 → 35: overhead and delay fall in both; random Vitis beats RVR's delay beyond 30",
    "direction",
    "vitis_fig6",
)
def _(evidence: Evidence) -> Finding:
    name = "vitis_fig6"
    curves = [
        evidence.curve(name, metric, system, workload, "table_size")
        for metric in (OVERHEAD, HOPS)
        for system, workload in (*(("vitis", pattern) for pattern in PATTERNS), ("rvr", "random"))
    ]
    vitis = evidence.value(name, HOPS, "vitis", "random", table_size=35)
    rvr = evidence.value(name, HOPS, "rvr", "random", table_size=35)
    down = sum(falls(curve) for curve in curves)
    return met_if(
        down == len(curves) and vitis < rvr,
        f"{down} of {len(curves)} curves fall throughout; at 35 random Vitis {vitis:.1f} hops, RVR {rvr:.1f}",
    )


@claim("V7", "Fig. 7", "rates ∝ rank^-α, α 0.3 → 3: random approaches high correlation", "direction", "vitis_fig7")
def _(evidence: Evidence) -> Finding:
    gaps = {
        metric: [
            abs(
                evidence.value("vitis_fig7", metric, "vitis", "random", rate_exponent=alpha)
                - evidence.value("vitis_fig7", metric, "vitis", "high", rate_exponent=alpha)
            )
            for alpha in (0.3, 3.0)
        ]
        for metric in (OVERHEAD, HOPS)
    }
    right = all(last < first / 2 for first, last in gaps.values())
    over, hops = gaps[OVERHEAD], gaps[HOPS]
    return met_if(
        right,
        f"gap in overhead {100 * over[0]:.1f} → {100 * over[1]:.1f} points, in hops {hops[0]:.1f} → {hops[1]:.1f}",
        "overhead does; delay overtakes: at α = 3 subscribers of the one hot topic rank each other by the next hottest "
        "topic of their bucket, which half of them have, so in the high pattern friends fall into two far clusters",
    )


@claim(
    "V9", "Fig. 10a", "Twitter: Vitis and RVR 100 %; OPT bounded at 35 links about 80 %", "±10 points", "vitis_fig10"
)
def _(evidence: Evidence) -> Finding:
    least = min(row["mean"] for s in ("vitis", "rvr") for row in evidence.rows("vitis_fig10", HIT_RATIO, s))
    opt = evidence.value("vitis_fig10", HIT_RATIO, "opt", "twitter", table_size=35)
    return met_if(
        least >= 0.9999 and abs(opt - 0.8) <= 0.1, f"Vitis and RVR {percent(least)}; OPT at 35 {percent(opt)}", _TWITTER
    )


_TWITTER = "our trace is ego-Twitter: 32 subscriptions a node instead of 80, and much more clustered"


@claim(
    "V10",
    "Fig. 10b",
    "Twitter: Vitis 30 % (RT 15) and 40 % (RT 35) less overhead than RVR",
    "±10 points",
    "vitis_fig10",
)
def _(evidence: Evidence) -> Finding:
    saved = [
        1
        - evidence.value("vitis_fig10", OVERHEAD, "vitis", "twitter", table_size=size)
        / evidence.value("vitis_fig10", OVERHEAD, "rvr", "twitter", table_size=size)
        for size in (15, 35)
    ]
    right = abs(saved[0] - 0.3) <= 0.1 and abs(saved[1] - 0.4) <= 0.1
    return met_if(right, f"{percent(saved[0])} and {percent(saved[1])} less", f"more than claimed: {_TWITTER}")


@claim(
    "V11",
    "Fig. 10c",
    "Twitter: Vitis over 1.5 times faster than RVR, 1.7 times faster than OPT",
    "direction, ±30 %",
    "vitis_fig10",
)
def _(evidence: Evidence) -> Finding:
    ratios = {
        system: [
            evidence.value("vitis_fig10", HOPS, system, "twitter", table_size=size)
            / evidence.value("vitis_fig10", HOPS, "vitis", "twitter", table_size=size)
            for size in (15, 35)
        ]
        for system in ("rvr", "opt")
    }
    right = min(ratios["rvr"]) >= 1.5 * 0.7 and min(ratios["opt"]) >= 1.7 * 0.7
    times = "; ".join(f"{system.upper()} {a:.2f} and {b:.2f} times Vitis' hops" for system, (a, b) in ratios.items())
    return met_if(right, f"{times} (RT 15, 35)", "OPT's hops count only whom it reaches, which are the near ones")


@claim(
    "V12",
    "Fig. 11",
    "OPT unbounded: over 2/3 of nodes above degree 15; 0.3 % above 200; max 708",
    "direction",
    "vitis_fig11",
)
def _(evidence: Evidence) -> Finding:
    above, far, most = (
        evidence.value("vitis_fig11", metric, "opt", "twitter")
        for metric in (DEGREE_OVER.of(number=15), DEGREE_OVER.of(number=200), DEGREE_MAX)
    )
    return met_if(
        above > 2 / 3 and far > 0,
        f"{percent(above)} above 15; {percent(far)} above 200; max {most:,.0f}",
        f"{_TWITTER}; degrees count connections both ways",
    )


@claim(
    "V13",
    "Fig. 12",
    "Skype churn, flash crowd: RVR drops to 87 %, Vitis stays at about 99 %",
    "direction, Vitis ≥ 98 %",
    "vitis_fig12",
)
def _(evidence: Evidence) -> Finding:
    def pair(metric: Metric, workload: str, backups: int, settle: int) -> tuple[float, float]:
        vitis, rvr = (
            evidence.value("vitis_fig12", metric, system, workload, ring_backups=backups, settle_rounds=settle)
            for system in ("vitis", "rvr")
        )
        return vitis, rvr

    def shown(pair: tuple[float, float]) -> str:
        return f"Vitis {percent(pair[0])}, RVR {percent(pair[1])}"

    crowd = HIT_RATIO_MIN_CROWD
    vitis, rvr = pair(crowd, "bursts", 4, 10)
    return met_if(
        vitis >= 0.98 and vitis >= rvr,
        f"worst round of the crowd, bursts: as printed {shown(pair(crowd, 'bursts', 0, 0))}; with ring backups "
        f"{shown(pair(crowd, 'bursts', 4, 0))}; with backups and settling {shown((vitis, rvr))}; spread "
        f"{shown(pair(crowd, 'spread', 4, 10))}",
        "judged on bursts, where the network doubles within a second, with backups and settling, our deviations: they "
        "lift Vitis above 98 % and RVR even more; with backups alone the paper's order and its RVR are seen. The "
        "blackout before the crowd, in whose round half of the nodes vanish, is worse: "
        f"{shown(pair(HIT_RATIO_MIN, 'bursts', 4, 10))}",
    )


@claim("V14", "§III-B", "lookup O(log² N / k), delay O(log² N + d)", "measured growth", "vitis_growth")
def _(evidence: Evidence) -> Finding:
    hops = evidence.curve("vitis_growth", LOOKUP_HOPS, "rvr", "random", "nodes")
    delay = evidence.curve("vitis_growth", HOPS, "vitis", "random", "nodes")
    sizes = sorted(row["parameters"]["nodes"] for row in evidence.rows("vitis_growth", LOOKUP_HOPS, "rvr"))
    bound = (math.log(sizes[-1]) / math.log(sizes[0])) ** 2
    growth = hops[-1] / hops[0], delay[-1] / delay[0]
    return met_if(
        max(growth) <= bound,
        f"{sizes[0]:,} → {sizes[-1]:,} nodes: lookups {hops[0]:.1f} → {hops[-1]:.1f} hops ({growth[0]:.2f}-fold), "
        f"Vitis' delay {delay[0]:.1f} → {delay[-1]:.1f} ({growth[1]:.2f}-fold); log² N grows {bound:.2f}-fold",
    )
