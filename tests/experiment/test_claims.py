"""Judges: what they say about series that were written down by hand."""

from __future__ import annotations

from typing import Any

from grapevine.experiment.claims import CLAIMS, MET, NOT_HERE, NOT_MET, Evidence, judge_all


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
        rows = [row("spidercast", name, "degree", v, nodes=10_000) for name, v in zip(names, values, strict=True)]
        return {"spidercast_fig8c": rows}

    assert verdict("S7", degrees(9, 10, 11, 10, 9))[0] == MET
    assert verdict("S7", degrees(9, 10, 11, 12, 9))[0] == NOT_MET


def test_s10_is_judged_on_both_sizes() -> None:
    def messages(small: float, large: float) -> dict[str, list[dict[str, Any]]]:
        kinds = "messages", "connect", "connect_ok", "redirect", "disconnect", "disconnect_ok", "leave"
        return {
            "spidercast_fig11": [
                row("spidercast", f"{n} online", f"{kind}_per_change", value, mean_up_s=100.0)
                for n, value in ((1000, small), (2000, large))
                for kind in kinds
            ]
        }

    assert verdict("S10", messages(40, 40))[0] == MET
    assert verdict("S10", messages(40, 50))[0] == NOT_MET


def test_s12_wants_both_ends_of_the_range() -> None:
    def degrees(ring: float) -> dict[str, list[dict[str, Any]]]:
        own = [row("spidercast", "RSS", "degree", 10.0, nodes=n) for n in (1000, 10000)]
        rings = [row("ring-per-topic", "RSS", "degree", value, nodes=n) for n, value in ((1000, 15.0), (10000, ring))]
        return {"spidercast_fig14": own + rings}

    assert verdict("S12", degrees(18.0)) == (MET, "50 % higher at 1,000 nodes to 80 % at 10,000")
    assert verdict("S12", degrees(15.0))[0] == NOT_MET


def test_without_evidence_the_reason_is_told() -> None:
    (judged,) = judge_all([CLAIMS["V9"]], Evidence({}, {"vitis_fig10": "no folder of real traces here"}))
    assert judged.finding.verdict == NOT_HERE
    assert judged.finding.remark == "no folder of real traces here"


def test_every_claim_survives_missing_evidence() -> None:
    assert {judged.finding.verdict for judged in judge_all(CLAIMS.values(), Evidence({}, {}))} == {NOT_HERE}
