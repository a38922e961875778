"""Judges of OMen's claims: what they say about series that were written down by hand."""

from __future__ import annotations

from typing import Any

import pytest

from grapevine.experiment.claims import CLAIMS, Evidence, Grade, judge_all
from grapevine.systems.omen.config import OmenConfig
from tests.experiment.claims import series
from tests.experiment.claims.series import verdict

Series = dict[str, list[dict[str, Any]]]
SIGHTS = "shadow", "neighbours", "overlay"
DEFAULT = OmenConfig().sight


def row(*what: Any, runs: int = 3, **more: Any) -> dict[str, Any]:
    """A point over three seeds, as full experiments have them."""
    return series.row(*what, runs=runs, **more)


def test_a_quick_run_gives_no_grade_where_it_could_mislead() -> None:
    quick = [
        point | {"runs": 1} for point in degrees(dict.fromkeys(SIGHTS, 4.5), dict.fromkeys(SIGHTS, 42.0))["omen_fig9"]
    ]
    assert verdict("O5", {"omen_fig9": quick})[0] == Grade.NOT_HERE


def degrees(mean: dict[str, float], most: dict[str, float]) -> Series:
    """Facebook under churn, where LowODA-Re has a mean degree of 4 and a largest of 40."""
    rows = [
        row("lowoda", "FB 1K", "degree_on_the_way", 4.0, repair="rebuild"),
        row("lowoda", "FB 1K", "degree_max_on_the_way", 40.0, repair="rebuild"),
    ]
    for sight in SIGHTS:
        for metric, values in (("degree_on_the_way", mean), ("degree_max_on_the_way", most)):
            rows.append(row("omen", "FB 1K", metric, values[sight], view="partial", sight=sight))
    return {"omen_fig9": rows}


def test_o5_is_no_evidence_if_only_the_sight_that_was_chosen_for_it_holds() -> None:
    low, high = {"shadow": 4.5, "neighbours": 4.5, "overlay": 4.5}, {"shadow": 6.0, "neighbours": 5.5, "overlay": 4.5}
    most = dict.fromkeys(SIGHTS, 42.0)
    assert verdict("O5", degrees(low, most))[0] == Grade.MET
    assert verdict("O5", degrees(high, most))[0] == Grade.CALIBRATED
    assert verdict("O5", degrees(high | {"neighbours": 5.1}, most))[0] == Grade.MET
    assert verdict("O5", degrees(high, dict.fromkeys(SIGHTS, 47.0)))[0] == Grade.NOT_MET


@pytest.mark.parametrize(
    ("views", "with_more", "grade"),
    [
        ([20.0, 40.0, 48.0, 58.0], [1.0, 2.0, 3.0, 4.0], Grade.MET),
        ([6.0, 8.0, 12.0, 20.0], [20.0, 40.0, 48.0, 58.0], Grade.CALIBRATED),
        ([6.0, 8.0, 12.0, 20.0], [20.0, 40.0, 48.0, 90.0], Grade.DIRECTION),
        ([6.0, 12.0, 8.0, 20.0], [20.0, 40.0, 48.0, 58.0], Grade.NOT_MET),
    ],
)
def test_o3_is_no_evidence_with_an_l_that_was_looked_for(
    views: list[float], with_more: list[float], grade: Grade
) -> None:
    factors = 1, 3, 5, 9
    churned = [
        row("omen", sample, "view", value, coverage=factor)
        for sample in ("FB 1K", "mutual TW 1K")
        for factor, value in zip(factors, views, strict=True)
    ]
    points = (1, "primal-dual", views), (1, "random", views), (3, "primal-dual", views), (4, "primal-dual", with_more)
    still = [
        row("omen", "FB 1K", "view", value, coverage=factor, resilience=resilience, backups=rule)
        for resilience, rule, found in points
        for factor, value in zip(factors, found, strict=True)
    ]
    assert verdict("O3", {"omen_fig8": churned, "omen_views": still})[0] == grade


def repair_times(small: float, large: float, everyone: float) -> Series:
    """Times of OMen with a LowODA-Re that takes a second; `everyone` is OMen's share of OMen-G's time."""

    def rows(workload: str, mended: float, *, views: tuple[str, ...] = ("partial", "global")) -> list[dict[str, Any]]:
        times = {"partial": mended, "global": mended / everyone}
        return [
            row("omen", workload, "repair_ms", times[view], view=view, sight=sight)
            for view in views
            for sight in SIGHTS
        ]

    lowoda = [
        row("lowoda", name, "repair_ms", spent, repair=repair)
        for name in ("FB 1K", "TW 1K")
        for repair, spent in (("rebuild", 1000.0), ("mend", 500.0))
    ]
    return {
        "omen_repair": rows("FB 1K", small) + rows("TW 1K", small) + lowoda,
        "omen_fig10": [*rows("TW 10K", large, views=("partial",)), row("lowoda", "TW 10K", "repair_ms", 1000.0)],
    }


def test_o7_wants_all_three_ratios() -> None:
    assert verdict("O7", repair_times(3.9, 0.19, 0.09))[0] == Grade.MET
    assert verdict("O7", repair_times(4.1, 0.19, 0.09))[0] == Grade.DIRECTION
    assert verdict("O7", repair_times(3.9, 0.21, 0.09))[0] == Grade.DIRECTION
    assert verdict("O7", repair_times(3.9, 0.19, 0.1))[0] == Grade.DIRECTION
    assert verdict("O7", repair_times(3.9, 4.0, 0.09))[0] == Grade.NOT_MET
    assert verdict("O7", repair_times(3.9, 0.19, 1.1))[0] == Grade.NOT_MET


@pytest.mark.parametrize(
    ("repair", "degree", "grade"),
    [(30.0, 9.0, Grade.MET), (45.0, 9.0, Grade.OTHER_DEFINITION), (45.0, 2.0, Grade.NOT_MET)],
)
def test_o9_counts_with_and_without_upkeep(repair: float, degree: float, grade: Grade) -> None:
    """SpiderCast sends 40 messages an event, and one to each neighbour in every round; 4,000 nodes
    have a round each."""
    rows = [
        row("spidercast", "TW 1K", "messages_per_change", 40.0, random_coverage=1),
        row("spidercast", "TW 1K", "degree_on_the_way", degree, random_coverage=1),
    ]
    sent = {"gossip": 8000.0, "ask": 2000.0, "messages": 10_000 + repair}
    sent |= dict.fromkeys(("collect", "connect", "neighbours", "handover", "probe"), 1.0)
    for sight in ("neighbours", "overlay"):
        rows += [row("omen", "TW 1K", f"{kind}_per_change", value, sight=sight) for kind, value in sent.items()]
    found, measured = verdict("O9", {"omen_fig11": rows})
    assert found == grade
    assert f"against {40 + 4000 * degree:,.0f}" in measured


def test_o10_wants_every_topic_connected_and_no_event_lost_whatever_the_sight() -> None:
    def after(least: float, lost: float, sight: str = "shadow") -> Series:
        return {
            "omen_concurrent": [
                row("omen", "Unif", metric, value, events_at_once=n, sight=each)
                for n in (1, 8)
                for each in SIGHTS
                for metric, value in (
                    ("connected_topics_min", least if n == 8 and each == sight else 1.0),
                    ("lost_events", lost),
                )
            ]
        }

    assert verdict("O10", after(1.0, 0.0))[0] == Grade.MET
    for sight in SIGHTS:
        assert verdict("O10", after(0.999, 0.0, sight))[0] == Grade.NOT_MET
    assert verdict("O10", after(1.0, 1.0))[0] == Grade.NOT_MET


def test_o11_compares_the_leaves_with_the_joins() -> None:
    def times(omen: float, everyone: float, central: float) -> Series:
        points: list[tuple[str, dict[str, str], float]] = [
            ("omen", {"view": "partial", "sight": DEFAULT}, omen),
            ("omen", {"view": "global", "sight": DEFAULT}, everyone),
            ("lowoda", {"repair": "mend"}, central),
        ]
        rows = [
            row(system, name, f"repair_ms_{kind}", spent, parameters=point)
            for name in ("FB 1K", "TW 1K")
            for system, point, split in points
            for kind, spent in (("join", 2.0), ("leave", 2.0 * split))
        ]
        return {"omen_repair": rows}

    assert verdict("O11", times(1.5, 4.0, 3.0))[0] == Grade.MET
    assert verdict("O11", times(3.5, 4.0, 3.0))[0] == Grade.DIRECTION
    assert verdict("O11", times(1.5, 4.0, 0.9))[0] == Grade.NOT_MET
    assert verdict("O11", times(0.9, 4.0, 3.0))[0] == Grade.NOT_MET


def test_o4_wants_the_largest_degree_to_fall_with_every_step_and_shows_what_a_fair_rule_does() -> None:
    def fig8(most: list[float]) -> Series:
        points = []
        for sample in ("FB 1K", "mutual TW 1K"):
            for factor, largest in zip((0, 1, 3, 5, 7, 9), most, strict=True):
                points.append(row("omen", sample, "degree_max", largest, runs=3, coverage=factor))
                points.append(row("omen", sample, "degree", 5 - 0.1 * factor, runs=3, coverage=factor))
        fair = {"backups": "gain/load"}
        points += [row("omen", "FB 1K", "degree_max", 40.0 - n, runs=3, coverage=n, **fair) for n in (1, 3, 9)]
        return {"omen_fig8": points}

    assert verdict("O4", fig8([60, 55, 50, 45, 44, 43]))[0] == Grade.MET
    assert verdict("O4", fig8([60, 83, 50, 45, 44, 43]))[0] == Grade.DIRECTION
    assert verdict("O4", fig8([40, 55, 50, 45, 44, 43]))[0] == Grade.NOT_MET
    (judged,) = judge_all([CLAIMS["O4"]], Evidence(fig8([60, 83, 50, 45, 44, 43]), {}))
    assert "39/37/31 at λ = 1/3/9" in judged.finding.remark and judged.finding.cause == "omen_fig8"


def test_o12_wants_the_gap_of_the_largest_diameters() -> None:
    def largest(omen: float, rival: float) -> Series:
        return {
            "omen_fig11": [
                row("omen", "TW 1K", "diameter_max_on_the_way", omen, sight=DEFAULT),
                row("spidercast", "TW 1K", "diameter_max_on_the_way", rival, random_coverage=1),
            ]
        }

    assert verdict("O12", largest(7.0, 3.0))[0] == Grade.MET
    assert verdict("O12", largest(5.0, 3.0))[0] == Grade.DIRECTION
    assert verdict("O12", largest(3.0, 3.0))[0] == Grade.NOT_MET
