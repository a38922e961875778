"""Judges: what they say about series that were written down by hand."""

from __future__ import annotations

from typing import Any

import pytest

from grapevine.experiment.claims import CLAIMS, MET, NOT_HERE, NOT_MET, Evidence, judge_all
from grapevine.experiment.description import published_experiments, read_experiment
from grapevine.experiment.plan import plan

SPIDERCAST_MESSAGES = "messages", "connect", "connect_ok", "redirect", "disconnect", "disconnect_ok", "leave"
OMEN_MESSAGES = "gossip", "join", "notify", "collect", "neighbours", "done"


def row(system: str, workload: str, metric: str, mean: float, **parameters: Any) -> dict[str, Any]:
    return {"system": system, "workload": workload, "metric": metric, "mean": mean, "parameters": parameters}


def verdict(claim: str, series: dict[str, list[dict[str, Any]]]) -> tuple[str, str]:
    (judged,) = judge_all([CLAIMS[claim]], Evidence(series, {}))
    return judged.finding.verdict, judged.finding.measured


def fig4(high: float, rvr: float) -> dict[str, list[dict[str, Any]]]:
    return {
        "vitis_fig4": [
            row("vitis", "high", "overhead", 0.7, ring_and_long_links=15),
            row("vitis", "high", "overhead", high, ring_and_long_links=3),
            row("rvr", "random", "overhead", rvr),
        ]
    }


def test_v2_is_met_when_correlated_overhead_is_80_percent_less() -> None:
    assert verdict("V2", fig4(0.09, 0.75)) == (MET, "88.0 % less (9.0 % against 75.0 %)")
    assert verdict("V2", fig4(0.16, 0.75))[0] == NOT_MET


def test_v6_wants_every_curve_to_fall() -> None:
    def series(last: float) -> dict[str, list[dict[str, Any]]]:
        rows = [
            row(system, workload, metric, value, table_size=size)
            for system, workload in (("vitis", "random"), ("vitis", "low"), ("vitis", "high"), ("rvr", "random"))
            for metric in ("overhead", "hops")
            for size, value in ((15, 9.0), (25, 7.0), (35, last if system == "vitis" else 6.0))
        ]
        return {"vitis_fig6": rows}

    assert verdict("V6", series(5.0))[0] == MET
    assert verdict("V6", series(6.5))[0] == NOT_MET  # slower than RVR at 35
    assert verdict("V6", series(8.0))[0] == NOT_MET  # rises from 25 to 35


def test_s1_wants_every_degree_within_ten_percent() -> None:
    sizes, claimed = (1000, 2000, 4000, 6000, 8000, 10000), (10.81, 10.11, 9.53, 9.24, 9.08, 8.95)

    def degrees(last: float) -> dict[str, list[dict[str, Any]]]:
        shown = [*claimed[:-1], last]
        return {
            "spidercast_fig12": [
                row("spidercast", "RSS", "degree", value, nodes=n) for n, value in zip(sizes, shown, strict=True)
            ]
        }

    assert verdict("S1", degrees(9.8))[0] == MET
    assert verdict("S1", degrees(9.9))[0] == NOT_MET
    assert verdict("S1", degrees(8.0))[0] == NOT_MET


def test_s7_wants_a_peak_at_twenty_topics() -> None:
    def degrees(*values: float) -> dict[str, list[dict[str, Any]]]:
        names = [f"{s} topics a node" for s in (10, 15, 20, 30, 40)]
        rows = [
            row("spidercast", name, "degree", v, nodes=n)
            for name, v in zip(names, values, strict=True)
            for n in (1_000, 4_000, 10_000)
        ]
        return {"spidercast_fig8c": rows}

    assert verdict("S7", degrees(9, 10, 11, 10, 9))[0] == MET
    assert verdict("S7", degrees(9, 10, 11, 12, 9))[0] == NOT_MET


def test_s10_is_judged_on_both_sizes() -> None:
    def messages(small: float, large: float) -> dict[str, list[dict[str, Any]]]:
        return {
            "spidercast_fig11": [
                row("spidercast", f"{n} online", f"{kind}_per_change", value, mean_up_s=100.0)
                for n, value in ((1000, small), (2000, large))
                for kind in SPIDERCAST_MESSAGES
            ]
        }

    assert verdict("S10", messages(40, 40))[0] == MET
    assert verdict("S10", messages(40, 50))[0] == NOT_MET


def test_s12_wants_both_ends_of_the_range_and_a_rise_between() -> None:
    def degrees(*rings: float) -> dict[str, list[dict[str, Any]]]:
        sizes = 1000, 2000, 4000, 6000, 8000, 10000
        own = [row("spidercast", "RSS", "degree", 10.0, nodes=n) for n in sizes]
        more = [row("ring-per-topic", "RSS", "degree", v, nodes=n) for n, v in zip(sizes, rings, strict=True)]
        return {"spidercast_fig14": own + more}

    good = 15.0, 15.5, 16.0, 16.5, 17.0, 18.0
    assert verdict("S12", degrees(*good)) == (MET, "50/55/60/65/70/80 % higher at 1,000 … 10,000 nodes")
    assert verdict("S12", degrees(*good[:5], 15.0))[0] == NOT_MET
    assert verdict("S12", degrees(15.0, 40.0, *good[2:]))[0] == NOT_MET


def test_m3_wants_the_saving_to_grow_and_to_reach_65_percent() -> None:
    def relays(*magnet: float) -> dict[str, list[dict[str, Any]]]:
        points = [(n, t) for n in (1_000, 4_000, 10_000) for t in (8.0, 16.0, 32.0)]
        own = [
            row("magnet", "spatial", "relays_per_event", magnet[i % 3], nodes=n, mean_subscriptions=t)
            for i, (n, t) in enumerate(points)
        ]
        rival = [
            row("strawman", "spatial", "relays_per_event", 100.0, nodes=n, mean_subscriptions=t) for n, t in points
        ]
        return {"magnet_fig6": own + rival}

    assert verdict("M3", relays(50.0, 40.0, 20.0))[0] == MET
    assert verdict("M3", relays(50.0, 40.0, 36.0))[0] == NOT_MET
    assert verdict("M3", relays(30.0, 40.0, 20.0))[0] == NOT_MET


def test_o7_wants_all_three_ratios() -> None:
    def times(small: float, large: float, everyone: float) -> dict[str, list[dict[str, Any]]]:
        def rows(workload: str, mended: float, **repair: str) -> list[dict[str, Any]]:
            return [
                row("omen", workload, "repair_ms", mended, view="partial"),
                row("omen", workload, "repair_ms", mended / everyone, view="global"),
                row("lowoda", workload, "repair_ms", 1000.0, **repair),
            ]

        return {
            "omen_fig9": rows("FB 1K", small, repair="rebuild"),
            "omen_fig11": rows("TW 1K", small, repair="rebuild"),
            "omen_fig10": rows("TW 10K", large),
        }

    assert verdict("O7", times(3.9, 0.19, 0.09))[0] == MET
    assert verdict("O7", times(4.1, 0.19, 0.09))[0] == NOT_MET
    assert verdict("O7", times(3.9, 0.21, 0.09))[0] == NOT_MET
    assert verdict("O7", times(3.9, 0.19, 0.1))[0] == NOT_MET


def test_o10_wants_every_topic_connected_and_no_event_lost() -> None:
    def after(least: float, lost: float) -> dict[str, list[dict[str, Any]]]:
        return {
            "omen_concurrent": [
                row("omen", "Unif", metric, value, events_at_once=n)
                for n in (1, 8)
                for metric, value in (("connected_topics_min", least if n == 8 else 1.0), ("lost_events", lost))
            ]
        }

    assert verdict("O10", after(1.0, 0.0))[0] == MET
    assert verdict("O10", after(0.999, 0.0))[0] == NOT_MET
    assert verdict("O10", after(1.0, 1.0))[0] == NOT_MET


def test_a_missing_run_is_no_evidence() -> None:
    full = {"spidercast_fig14": [row(s, "RSS", "degree", 9.0, nodes=1000) for s in ("spidercast", "ring-per-topic")]}
    assert verdict("S12", full)[0] == NOT_HERE


def test_without_evidence_the_reason_is_told() -> None:
    (judged,) = judge_all([CLAIMS["V9"]], Evidence({}, {"vitis_fig10": "no folder of real traces here"}))
    assert judged.finding.verdict == NOT_HERE
    assert judged.finding.remark == "no folder of real traces here"


@pytest.mark.parametrize("quick", [True, False])
def test_every_claim_is_judged_on_what_its_experiments_would_bring(quick: bool) -> None:
    """Rows of ones for every planned run: whatever the verdict, no judge stumbles; a quick grid may be too small."""
    metrics = "hit_ratio hit_ratio_min hit_ratio_min_crowd overhead hops hops_max lookup_hops relays_per_event degree "
    metrics += (
        "degree_max degree_over_15 degree_over_200 degree_on_the_way nodes_over_20_percent clusters random_coverage "
    )
    metrics += "partitioned_topics connected_topics connected_topics_min diameter_max top_intersection "
    metrics += "popularity_exponent backups_share backup_of_min backup_of_max backup_of_rarely view small_views "
    metrics += "repair_ms lost_events degree_max_on_the_way diameter_on_the_way "
    metrics += (
        "best_friends_cover false_positives_50 false_positives_100 false_positives_200 delay_ms_p50 delay_ms_p95 "
    )
    metrics += "delay_ms_max stretch_p50 stretch_p95 direct_stretch_p50 observer_delay_ms_p50 observer_within_1s "
    metrics += "fully_covered fully_covered_multi load_correlation messages_per_s_p50 "
    metrics += " ".join(f"rejoins_at_height_{height} " for height in range(5))
    metrics += " ".join(f"{kind}_per_change" for kind in (*SPIDERCAST_MESSAGES, *OMEN_MESSAGES))
    published = published_experiments()
    for claim in CLAIMS.values():
        series = {}
        for name in claim.experiments:
            runs = plan(read_experiment(published[name], quick=quick))
            series[name] = [
                row(run.system, run.workload.name, metric, 1.0, **run.shown)
                for run in runs
                for metric in metrics.split()
            ]
        (judged,) = judge_all([claim], Evidence(series, {}))
        if not quick:
            assert judged.finding.verdict in (MET, NOT_MET), (claim.id, judged.finding)


def test_every_claim_survives_missing_evidence() -> None:
    assert {judged.finding.verdict for judged in judge_all(CLAIMS.values(), Evidence({}, {}))} == {NOT_HERE}
