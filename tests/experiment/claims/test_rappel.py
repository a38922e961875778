"""Judges of Rappel's claims: what they say about series that were written down by hand."""

from __future__ import annotations

from typing import Any

import pytest
import scipy.stats

from grapevine.experiment.claims import CLAIMS, Evidence, Grade, judge_all
from grapevine.experiment.claims.rappel.trees import ideal_rejoins
from tests.experiment.claims.series import row, verdict

Series = dict[str, list[dict[str, Any]]]


def fig7(planetlab_ms: float = 100.0, internet_ms: float = 100.0, stretch: float = 1.15) -> Series:
    def points(ms: float, **point: Any) -> list[dict[str, Any]]:
        values = {
            "delay_ms_p50": ms,
            "delay_ms_p95": 3 * ms,
            "stretch_p50": stretch,
            "stretch_p95": 1.4,
            "direct_stretch_p50": 2.0,
        }
        return [row("rappel", "feed", name, value, **point) for name, value in values.items()]

    real = [point for dimensions in (2, 3) for point in points(planetlab_ms, dimensions=dimensions)]
    grown = [point for dimensions in (2, 3) for point in points(internet_ms, dimensions=dimensions)]
    return {"rappel_fig7_planetlab": real, "rappel_fig7": grown + points(90.0, heights=True)}


def test_r3_wants_both_networks_and_is_a_direction_where_delays_hold_on_planetlab_alone() -> None:
    assert verdict("R3", fig7())[0] == Grade.MET
    assert verdict("R3", fig7(internet_ms=420.0))[0] == Grade.DIRECTION
    assert verdict("R3", fig7(planetlab_ms=130.0))[0] == Grade.NOT_MET
    assert verdict("R3", fig7(stretch=1.5))[0] == Grade.NOT_MET


def fig8(static: float, churn: float) -> Series:
    def points(nodes: int, workload: str, ms: float, **point: Any) -> list[dict[str, Any]]:
        values = {"observer_delay_ms_p50": ms, "observer_within_1s": 0.9, "delay_ms_max": 46_000.0}
        return [
            row("rappel", workload, name, value, half=3.0, runs=3, nodes=nodes, **point)
            for name, value in values.items()
        ]

    named = [point for name in (True, False) for point in points(901, "churn", churn, name_failed=name)]
    return {
        "rappel_fig8": points(7_201, "static", static) + points(7_201, "churn", churn),
        "rappel_fig8_planetlab": points(901, "static", static) + named,
    }


def test_r4_is_judged_on_the_difference_at_the_same_observers() -> None:
    assert verdict("R4", fig8(300.0, 460.0))[0] == Grade.MET
    assert verdict("R4", fig8(300.0, 330.0))[0] == Grade.DIRECTION
    assert verdict("R4", fig8(300.0, 290.0))[0] == Grade.NOT_MET


def test_r4_compares_runs_of_one_seed() -> None:
    """Static networks differ by far more than the churn adds to each of them."""
    series = fig8(300.0, 460.0)
    for point in series["rappel_fig8"]:
        if point["metric"] == "observer_delay_ms_p50":
            at = (150, 159, 171) if point["workload"] == "churn" else (0, 0, 0)
            point["by_seed"] = {seed: 100.0 * seed + at[seed - 1] for seed in (1, 2, 3)}
    deviation = scipy.stats.sem([150.0, 159.0, 171.0]) * scipy.stats.t.ppf(0.975, 2)
    assert f"+ 160 ± {deviation:.0f} ms" in verdict("R4", series)[1]


def fig11(small: list[float], large: list[float]) -> Series:
    def points(sizes: tuple[int, int]) -> list[dict[str, Any]]:
        return [
            point
            for size, curve in zip(sizes, (small, large), strict=True)
            for point in [
                row("rappel", "feed", "messages_per_s_p50", 1.04, nodes=size),
                *(
                    row("rappel", "feed", f"rejoins_at_height_{height}", value, nodes=size)
                    for height, value in enumerate(curve)
                ),
            ]
        ]

    return {
        "rappel_fig11": points((5_001, 10_001)),
        "rappel_fig11_planetlab": points((1_251, 2_501)),
        "rappel_fig8": [row("rappel", "churn", "messages_per_s_p50", 1.1, nodes=7_201)],
    }


def test_r8_does_not_ask_more_of_a_network_than_ideal_trees_give() -> None:
    """The formula of §4.3 itself grows more than 1.5 times at the lower levels, when nodes double."""
    ideal = ideal_rejoins(5_000), ideal_rejoins(10_000)
    assert max(b / a for a, b in zip(*ideal, strict=True)) > 1.5
    assert verdict("R8", fig11(*ideal))[0] == Grade.MET
    assert verdict("R8", fig11([200.0, 90.0, 40.0, 20.0, 10.0], [400.0, 90.0, 40.0, 20.0, 10.0]))[0] == Grade.NOT_MET
    assert verdict("R8", fig11([200.0, 190.0, 195.0, 20.0, 10.0], [200.0, 90.0, 40.0, 20.0, 10.0]))[0] == Grade.NOT_MET


def test_ideal_rejoins_are_those_of_the_formula() -> None:
    """Σ over p from h + 2 to H of 1 / Σ over q from 2 to p of β^-q, in a tree whose last level is full (§4.3)."""
    full = 5 + 25 + 125 + 625
    expected = [sum(1 / sum(5.0**-q for q in range(2, p + 1)) for p in range(h + 2, 5)) for h in range(5)]
    assert ideal_rejoins(full) == pytest.approx(expected)


def fig9(both: float, alone: float) -> Series:
    points = [
        row("rappel", "Twitter", "fully_covered", both, friends=6),
        row("rappel", "Twitter", "fully_covered", alone, interest="alone"),
    ]
    return {"rappel_fig9": points, "rappel_fig9_planetlab": points[:1]}


def test_r5_is_not_judged_before_audits_are_over() -> None:
    assert verdict("R5", fig9(0.85, 0.9))[0] == Grade.MET
    assert verdict("R5", fig9(0.8, 0.9))[0] == Grade.NOT_MET
    (judged,) = judge_all([CLAIMS["R5"]], Evidence(fig9(0.85, 0.9), {}, quick=True))
    assert judged.finding.grade == Grade.NOT_HERE


def test_r7_wants_no_noise_on_either_network() -> None:
    def fig10(noise: float) -> Series:
        def points(noise: float) -> list[dict[str, Any]]:
            values = [("rappel", noise, 200.0), ("scribe", 43.0, 120.0)]
            return [
                row(system, "feed", name, value, nodes=5_001)
                for system, relays, ms in values
                for name, value in (("relays_per_event", relays), ("delay_ms_p50", ms))
            ]

        loads = [row(system, "Twitter", "load_correlation", 0.5) for system in ("rappel", "scribe")]
        return {
            "rappel_fig10": points(0.0),
            "rappel_fig10_planetlab": points(noise),
            "rappel_fig10_feeds": loads,
        }

    assert verdict("R7", fig10(0.0))[0] == Grade.MET
    assert verdict("R7", fig10(0.2))[0] == Grade.NOT_MET


def test_r9_allows_five_points_less_with_more_subscriptions() -> None:
    def covered(*shares: float) -> Series:
        points = zip((5, 10, 20, 40), shares, strict=True)
        return {"rappel_fig1": [row("rappel", "Twitter", f"best_friends_share_{n}", share) for n, share in points]}

    assert verdict("R9", covered(0.99, 0.99, 0.97, 0.95))[0] == Grade.MET
    assert verdict("R9", covered(0.99, 0.99, 0.97, 0.9))[0] == Grade.OTHER_DATA


def test_r15_multiplies_messages_and_bytes() -> None:
    def load(size: float) -> Series:
        return {
            "rappel_fig8": [
                row("rappel", "churn", "messages_per_s_p50", 1.5, nodes=7_201),
                row("rappel", "churn", "message_bytes", size, nodes=7_201),
            ],
            "rappel_fig11": [row("rappel", "feed", "message_bytes", size, nodes=10_001)],
        }

    assert verdict("R15", load(60.0)) == (Grade.MET, "90 bytes a second: 1.5 messages of 60 bytes")
    assert verdict("R15", load(100.0))[0] == Grade.DIRECTION
