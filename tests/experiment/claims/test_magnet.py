"""Judges of Magnet's claims: what they say about series that were written down by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grapevine.experiment.claims import CLAIMS, Evidence, Grade, judge_all
from grapevine.experiment.claims.magnet import saved
from tests.experiment.claims.series import row, verdict

Series = dict[str, list[dict[str, Any]]]
ByModel = Callable[[float, float, float], float]  # λ, initFrac and Z → what is saved
FIRST = 10, 50, 100, 200, 500
MODES = [f"{b} of {b * ratio}" for ratio in (10, 5) for b in range(1, 6)]


def both(
    workload: str, saving: float, *, metric: str = "relays_per_event", half: float = 0.0, **point: Any
) -> list[dict[str, Any]]:
    """Relays of both systems, the strawman's 100, at which this share is saved."""
    own = row("magnet", workload, metric, 100 * (1 - saving), half=half, runs=5, **point)
    return [own, row("strawman", workload, metric, 100.0, half=half, runs=5, **point)]


def test_a_saving_has_the_interval_of_both_its_means() -> None:
    evidence = Evidence({"magnet_fig4": both("popularity", 0.5, half=10.0, alpha=1.0)}, {})
    found = saved(evidence, "magnet_fig4", "popularity", alpha=1.0)
    assert found.share == pytest.approx(0.5)
    assert found.half == pytest.approx(0.5 * (0.2**2 + 0.1**2) ** 0.5)


def modal(saving: Callable[[int, float, int], float], half: float = 0.0) -> Series:
    """Fig. 3: what is saved by b_p, exponent of the rates and size of tables."""
    points = [(name, rate, table) for name in MODES for rate in (0.0, 0.75) for table in (19, 10)]
    rows = [
        both(name, saving(int(name[0]), rate, table), half=half, rate_exponent=rate, table_size=table)
        for name, rate, table in points
    ]
    return {"magnet_fig3": [one for pair in rows for one in pair]}


def test_m1_wants_something_saved_everywhere_and_more_with_more_correlation() -> None:
    assert verdict("M1", modal(lambda modes, *_: 0.9 - modes / 10))[0] == Grade.MET
    assert verdict("M1", modal(lambda modes, *_: 0.4 - modes / 10))[0] == Grade.NOT_MET  # -10 % at the end
    assert verdict("M1", modal(lambda modes, *_: 0.3 + modes / 10))[0] == Grade.NOT_MET
    worse = modal(lambda modes, _, table: (0.9 if table == 19 else 0.4) - modes / 10)
    assert verdict("M1", worse)[0] == Grade.NOT_MET  # in one of the two readings of 19 links


def test_m9_wants_every_step_to_save_less() -> None:
    bumpy = {1: 0.8, 2: 0.5, 3: 0.6, 4: 0.4, 5: 0.3}
    assert verdict("M9", modal(lambda modes, *_: 0.9 - modes / 10))[0] == Grade.MET
    assert verdict("M9", modal(lambda modes, *_: bumpy[modes]))[0] == Grade.NOT_MET
    assert verdict("M1", modal(lambda modes, *_: bumpy[modes]))[0] == Grade.MET  # which looks at both ends
    assert verdict("M9", modal(lambda modes, *_: bumpy[modes], half=9.0))[0] == Grade.MET  # within the intervals
    assert verdict("M9", modal(lambda modes, *_: 0.5, half=9.0))[0] == Grade.NOT_MET


def test_m10_wants_unequal_rates_to_save_more_at_every_point() -> None:
    assert verdict("M10", modal(lambda modes, rate, _: 0.5 - modes / 20 + rate / 10))[0] == Grade.MET
    assert verdict("M10", modal(lambda modes, rate, _: 0.5 + (rate / 10 if modes < 5 else 0)))[0] == Grade.NOT_MET


def test_m2_judges_what_is_saved_and_not_the_relays() -> None:
    """With larger α both have fewer relays; Magnet has to fall faster."""

    def series(saving: Callable[[int], float]) -> Series:
        alphas = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
        popularity = [
            row(system, "popularity", "relays_per_event", left * (200 - 20 * i), alpha=alpha)
            for i, alpha in enumerate(alphas)
            for system, left in (("strawman", 1.0), ("magnet", 1 - saving(i)))
        ]
        sizes = [
            both("size", 0.5, subscriptions_per_node=size, rate_exponent=rate)
            for size in (5, 10, 20, 40, 80)
            for rate in (0.0, 0.75)
        ]
        return {"magnet_fig4": popularity + [one for pair in sizes for one in pair]}

    assert verdict("M2", series(lambda i: 0.4 + i / 50))[0] == Grade.MET
    assert verdict("M2", series(lambda i: 0.4))[0] == Grade.NOT_MET  # though its relays fall with every step


def test_m3_wants_the_saving_to_grow_and_to_reach_65_percent() -> None:
    def relays(*magnet: float) -> Series:
        points = [(n, t) for n in (1_000, 4_000, 10_000) for t in (8.0, 16.0, 32.0)]
        own = [
            row("magnet", "spatial", "relays_per_event", magnet[i % 3], nodes=n, mean_subscriptions=t)
            for i, (n, t) in enumerate(points)
        ]
        rival = [
            row("strawman", "spatial", "relays_per_event", 100.0, nodes=n, mean_subscriptions=t) for n, t in points
        ]
        return {"magnet_fig6": own + rival}

    assert verdict("M3", relays(50.0, 40.0, 20.0))[0] == Grade.MET
    assert verdict("M3", relays(50.0, 40.0, 36.0))[0] == Grade.DIRECTION
    assert verdict("M3", relays(30.0, 40.0, 20.0))[0] == Grade.NOT_MET


def hierarchical(
    home: Callable[[float, float, float], float], random: Callable[[float, float, float], float]
) -> Series:
    """Fig. 8: what is saved by λ, initFrac and Z, under both readings."""
    rows = []
    for first, saving in ((True, home), (False, random)):
        for fraction in (0.1, 0.3, 0.5):
            for value in (0.5, 1.0, 2.0):
                point = {"homophily": value, "initial_fraction": fraction, "home_topics": first}
                rows += both("homophily", saving(value, fraction, 16.0), **point)
        for size in (8.0, 32.0):
            rows += both("size", saving(2.0, 0.1, size), mean_subscriptions=size, home_topics=first)
        rows += both("size, topics in turn", saving(2.0, 0.1, 8.0), home_topics=first)
    return {"magnet_fig8": rows}


def falling(most: float, least: float) -> ByModel:
    """Between these, as Fig. 8 has it."""

    def saving(homophily: float, fraction: float, size: float) -> float:
        return least + (most - least) * (homophily / 2 + (0.5 - fraction) / 0.4 + (32 - size) / 24) / 3

    return saving


def test_m4_judges_the_range_under_both_readings() -> None:
    inside, above = falling(0.6, 0.2), falling(0.87, 0.06)
    assert verdict("M4", hierarchical(inside, above))[0] == Grade.MET
    assert verdict("M4", hierarchical(above, inside))[0] == Grade.OTHER_DEFINITION
    assert verdict("M4", hierarchical(above, above))[0] == Grade.DIRECTION
    assert verdict("M4", hierarchical(lambda *_: 0.4, above))[0] == Grade.NOT_MET
    assert verdict("M4", hierarchical(above, lambda *_: 0.4))[0] == Grade.DIRECTION


@pytest.mark.parametrize(("exponent", "grade"), [(1.7, Grade.CALIBRATED), (2.3, Grade.NOT_MET)])
def test_m5_is_no_evidence(exponent: float, grade: Grade) -> None:
    point = {"homophily": 2.0, "initial_fraction": 0.1}
    series = [
        row("magnet", "homophily", "popularity_exponent", exponent, home_topics=first, **point)
        for first in (True, False)
    ]
    assert verdict("M5", {"magnet_fig8": series})[0] == grade


def test_m6_counts_every_tree_once_and_shows_both_weightings() -> None:
    def series(by_tree: float, by_event: float) -> Series:
        of_trees = both("Wikipedia", 1 - 1 / (1 + by_tree), metric="relays_per_tree")
        return {"magnet_wikipedia": of_trees + both("Wikipedia", 1 - 1 / (1 + by_event))}

    grade, measured = verdict("M6", series(0.8, 1.43))
    assert grade == Grade.MET
    assert "80 % more" in measured and "143 % more" in measured
    assert verdict("M6", series(0.2, 1.43))[0] == Grade.NOT_MET


def test_m7_allows_a_twentieth_more() -> None:
    def series(least: float) -> Series:
        points = [(rate, table) for rate in (0.0, 0.75) for table in (19, 10)]
        rows = [
            both("uncorrelated", least if point == (0.75, 10) else 0.02, rate_exponent=point[0], table_size=point[1])
            for point in points
        ]
        return {"magnet_fig3": [one for pair in rows for one in pair]}

    assert verdict("M7", series(-0.05))[0] == Grade.MET
    assert verdict("M7", series(-0.06))[0] == Grade.NOT_MET


@pytest.mark.parametrize(("degree", "grade"), [(18.0, Grade.CALIBRATED), (16.0, Grade.NOT_MET)])
def test_m8_shows_both_readings_of_19_links(degree: float, grade: Grade) -> None:
    series = [
        row("magnet", "1 of 10", metric, mean if metric == "degree" else 9.0, rate_exponent=0.0, table_size=table)
        for metric in ("degree", "degree_deviation", "degree_max", "lookup_hops")
        for table, mean in ((19, 36.0), (10, degree))
    ]
    found, measured = verdict("M8", {"magnet_fig3": series})
    assert found == grade
    assert "36" in measured


def popular(own: list[float], rival: list[float]) -> Series:
    """Fig. 5: the overhead of the first topics, and of all."""
    rows = []
    for system, values in (("magnet", own), ("strawman", rival)):
        for name in ("1 of 10", "5 of 25", "1 of 5"):
            for table in (19, 10):
                for order in ("popular", "busiest"):
                    rows += [
                        row(system, name, f"overhead_of_{order}_{most}", value, rate_exponent=0.75, table_size=table)
                        for most, value in zip(FIRST, values[:-1], strict=True)
                    ]
                rows.append(row(system, name, "overhead", values[-1], rate_exponent=0.75, table_size=table))
    sampled = [row("magnet", "5 of 25", "overhead_of_popular_100", own[2], samples=samples) for samples in (10, 100)]
    return {"magnet_fig3": rows, "magnet_fig5": sampled}


def test_m11_wants_little_overhead_of_the_first_hundred_topics_and_less_than_the_strawman_everywhere() -> None:
    rival = [0.1, 0.1, 0.15, 0.2, 0.4, 0.5]
    assert verdict("M11", popular([0.01, 0.02, 0.04, 0.1, 0.2, 0.3], rival))[0] == Grade.MET
    assert verdict("M11", popular([0.01, 0.02, 0.06, 0.1, 0.2, 0.3], rival))[0] == Grade.DIRECTION
    assert verdict("M11", popular([0.01, 0.02, 0.04, 0.1, 0.2, 0.6], rival))[0] == Grade.NOT_MET


def test_whatever_is_not_met_names_the_run_that_shows_why() -> None:
    outside = hierarchical(falling(0.87, 0.06), falling(0.8, 0.05))
    for claim, series in (("M4", outside), ("M11", popular([0.06] * 6, [0.1] * 6))):
        (judged,) = judge_all([CLAIMS[claim]], Evidence(series, {}))
        assert judged.finding.grade == Grade.DIRECTION
        assert judged.finding.cause in CLAIMS[claim].experiments and judged.finding.remark
