"""Judges of Vitis's claims: what they say about series that were written down by hand."""

from __future__ import annotations

from typing import Any

from grapevine.experiment.claims import CLAIMS, Evidence, Grade, judge_all
from tests.experiment.claims.series import row, verdict

READINGS = "overhead", "overhead_of_nodes", "overhead_of_payloads"


def fig4(pattern: str, vitis: list[float], rvr: list[float]) -> dict[str, list[dict[str, Any]]]:
    """Overheads of Vitis with 12 friends and of RVR, in the three readings; and what ideal friends give."""
    own = [row("vitis", pattern, m, v, ring_and_long_links=3) for m, v in zip(READINGS, vitis, strict=True)]
    other = [row("rvr", "random", m, v) for m, v in zip(READINGS, rvr, strict=True)]
    ideal = [
        row("vitis", "random", m, v, friends="ideal")
        for m, v in (("overhead", 0.676), ("gateways_per_topic", 46.6), ("clusters_per_topic", 40.0))
    ]
    return {"vitis_fig4": own + other, "vitis_ideal": ideal}


def test_v2_is_met_when_correlated_overhead_is_80_percent_less() -> None:
    grade, measured = verdict("V2", fig4("high", [0.09, 0.1, 0.2], [0.75, 0.8, 0.8]))
    assert grade == Grade.MET
    assert measured.startswith("88.0 % less (9.00% against 75.00% of notifications); in the mean over nodes 88 %")
    assert verdict("V2", fig4("high", [0.16, 0.2, 0.2], [0.75, 0.75, 0.75]))[0] == Grade.NOT_MET
    assert verdict("V2", fig4("high", [0.16, 0.2, 0.1], [0.75, 0.75, 0.75]))[0] == Grade.OTHER_DEFINITION


def test_v2_is_not_judged_on_a_tenth_of_the_nodes_where_its_verdict_would_be_another() -> None:
    small = fig4("high", [0.17, 0.2, 0.2], [0.73, 0.75, 0.75])
    (judged,) = judge_all([CLAIMS["V2"]], Evidence(small, {}, quick=True))
    assert judged.finding.grade == Grade.NOT_HERE
    assert (
        judged.finding.remark == "not in the quick version: topics of few subscribers have more relays for each of them"
    )
    assert verdict("V2", small)[0] == Grade.NOT_MET


def test_v3_says_what_ideal_friends_would_give() -> None:
    (judged,) = judge_all([CLAIMS["V3"]], Evidence(fig4("random", [0.68] * 3, [0.75] * 3), {}))
    assert judged.finding.grade == Grade.NOT_MET
    assert judged.finding.cause == "vitis_ideal"
    assert "67.60%" in judged.finding.remark and "40 clusters with 46.6 gateways" in judged.finding.remark
    assert verdict("V3", fig4("random", [0.2] * 3, [0.75] * 3))[0] == Grade.MET


def test_v7_wants_both_gaps_to_shrink_to_half() -> None:
    def series(hops: float) -> dict[str, list[dict[str, Any]]]:
        values = {"overhead": (0.4, 0.01), "hops": (15.0, hops)}
        return {
            "vitis_fig7": [
                row("vitis", pattern, m, v if pattern == "random" else 0.0, rate_exponent=alpha, ties=ties)
                for pattern in ("random", "high")
                for ties in ("own", "common")
                for m, pair in values.items()
                for alpha, v in zip((0.3, 3.0), pair, strict=True)
            ]
        }

    assert verdict("V7", series(7.0))[0] == Grade.MET
    assert verdict("V7", series(12.0))[0] == Grade.DIRECTION
    assert verdict("V7", series(16.0))[0] == Grade.NOT_MET


def crowd(metric: str, vitis: float, rvr: float, high: float | None = None) -> list[dict[str, Any]]:
    """Values of the crowd on all workloads, as printed and with settling; `high` is Vitis' own on that pattern."""
    names = "bursts, random", "bursts, low", "bursts, high", "spread, high"
    rows = [
        row(
            system, name, metric, high if high and system == "vitis" and "high" in name else value, settle_rounds=settle
        )
        for name in names
        for system, value in (("vitis", vitis), ("rvr", rvr))
        for settle in (0, 10)
    ]
    return [*rows, row("vitis", "bursts, high", metric, 0.97, notices="by silence")]


def test_v13_is_judged_as_printed_on_all_patterns() -> None:
    def of(vitis: float, rvr: float, high: float | None = None) -> Grade:
        return verdict("V13", {"vitis_fig12": crowd("hit_ratio_min_crowd", vitis, rvr, high)})[0]

    assert of(0.99, 0.87) == Grade.MET
    assert of(0.95, 0.87) == Grade.DIRECTION
    assert of(0.95, 0.87, high=0.99) == Grade.DIRECTION
    assert of(0.99, 0.87, high=0.8) == Grade.NOT_MET


def test_v15_wants_vitis_to_rise_and_rvr_to_fall() -> None:
    def of(vitis: float, rvr: float) -> Grade:
        before, after = crowd("overhead_before_crowd", 0.9, 0.1), crowd("overhead_after_crowd", 0.3, 0.7)
        return verdict("V15", {"vitis_fig12": before + crowd("overhead_in_crowd", vitis, rvr) + after})[0]

    assert of(0.32, 0.5) == Grade.MET
    assert of(0.28, 0.5) == Grade.NOT_MET
    assert of(0.32, 0.8) == Grade.NOT_MET


def test_v17_wants_hops_to_halve_with_every_doubling() -> None:
    def of(*hops: float) -> Grade:
        sizes = 4, 6, 10, 18, 34
        points = [row("rvr", "random", "lookup_hops", h, table_size=n) for n, h in zip(sizes, hops, strict=True)]
        return verdict("V17", {"vitis_long_links": points})[0]

    assert of(32, 18, 10, 8, 7) == Grade.MET
    assert of(32, 24, 16, 8, 7) == Grade.DIRECTION
    assert of(32, 33, 16, 8, 7) == Grade.NOT_MET


def test_v6_wants_every_curve_to_fall() -> None:
    def series(last: float) -> dict[str, list[dict[str, Any]]]:
        rows = [
            row(system, workload, metric, value, table_size=size)
            for system, workload in (("vitis", "random"), ("vitis", "low"), ("vitis", "high"), ("rvr", "random"))
            for metric in ("overhead", "hops")
            for size, value in ((15, 9.0), (25, 7.0), (35, last if system == "vitis" else 6.0))
        ]
        return {"vitis_fig6": rows}

    assert verdict("V6", series(5.0))[0] == Grade.MET
    assert verdict("V6", series(6.5))[0] == Grade.NOT_MET  # slower than RVR at 35
    assert verdict("V6", series(8.0))[0] == Grade.NOT_MET  # rises from 25 to 35


TWITTER = "twitter", "followees", "k-core", "generated"


READINGS = "overhead", "overhead_of_nodes", "overhead_of_payloads"


def on_twitter(metric: str, values: dict[str, dict[str, float]]) -> dict[str, list[dict[str, Any]]]:
    """Series of Fig. 10: by workload, then by system, the same value with 15 and 35 links."""
    rows = [row("opt", workload, "subscriptions_mean", 40.0, table_size=15) for workload in TWITTER]
    rows += [
        row(system, workload, one, value, table_size=size)
        for one in (READINGS if metric == "overhead" else (metric,))
        for workload, systems in values.items()
        for system, value in systems.items()
        for size in (15, 35)
    ]
    return {"vitis_fig10": rows}


def test_v9_is_a_matter_of_the_data_when_some_samples_meet_it() -> None:
    def grade(*opt: float, vitis: float = 1.0) -> Grade:
        values = {w: {"vitis": vitis, "rvr": 1.0, "opt": one} for w, one in zip(TWITTER, opt, strict=True)}
        return verdict("V9", on_twitter("hit_ratio", values))[0]

    assert grade(0.8, 0.75, 0.85, 0.89) == Grade.MET
    assert grade(0.8, 0.75, 0.85, 0.5) == Grade.OTHER_DATA
    assert grade(0.99, 0.97, 0.6, 0.5) == Grade.DIRECTION
    assert grade(0.99, 0.97, 1.0, 0.5) == Grade.NOT_MET  # OPT reaches all on one
    assert grade(0.8, 0.75, 0.85, 0.89, vitis=0.98) == Grade.NOT_MET


def test_v10_and_v11_have_a_direction_outside_their_bands() -> None:
    def of(metric: str, vitis: float, rvr: float, opt: float) -> dict[str, list[dict[str, Any]]]:
        return on_twitter(metric, {workload: {"vitis": vitis, "rvr": rvr, "opt": opt} for workload in TWITTER})

    assert verdict("V10", of("overhead", 0.65, 1.0, 0.0))[0] == Grade.MET
    assert verdict("V10", of("overhead", 0.3, 1.0, 0.0))[0] == Grade.DIRECTION
    assert verdict("V10", of("overhead", 1.1, 1.0, 0.0))[0] == Grade.NOT_MET
    assert verdict("V11", of("hops", 1.0, 1.5, 1.7))[0] == Grade.MET
    assert verdict("V11", of("hops", 1.0, 1.5, 1.1))[0] == Grade.DIRECTION
    assert verdict("V11", of("hops", 1.0, 1.5, 0.9))[0] == Grade.NOT_MET


def test_v8_tells_both_degrees_and_is_another_matter_on_other_data() -> None:
    def grade(mean: float, exponent: float) -> tuple[Grade, str]:
        values = {"workload_nodes": 81_306.0, "subscriptions_mean": mean}
        for kind, most in (("subscribers", 3_383.0), ("subscriptions", 1_205.0)):
            values |= {f"workload_{kind}_max": most, f"workload_{kind}_exponent": 3.0}
            values[f"workload_{kind}_whole_exponent"] = exponent
        return verdict(
            "V8", {"vitis_fig9": [row("opt", w, m, v) for w in ("twitter", "generated") for m, v in values.items()]}
        )

    assert grade(87.0, 1.7)[0] == Grade.MET
    assert grade(21.7, 1.7)[0] == grade(87.0, 1.34)[0] == Grade.OTHER_DATA
    assert grade(21.7, 1.34)[1] == (
        "81,306 users, mean 21.7, max 3,383 followers, 1,205 followees; exponents (followers, followees) of all "
        "1.34/1.34, of the tail 3.00/3.00"
    )
