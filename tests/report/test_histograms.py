"""Distributions as bars."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.report.axes import XAxis
from grapevine.report.histograms import (
    MOST_BINS,
    MOST_LINEAR,
    ROW_HEIGHT,
    Bins,
    bins_of,
    draw_histograms,
    highest,
    shares_by_series,
)
from grapevine.report.looks import CIRCLE, COLOURS, Line
from grapevine.report.points import PlotData


def test_few_whole_numbers_have_a_bar_each_over_their_number() -> None:
    bins = bins_of([3.0, 6.0], step=None, percent=False)
    assert bins.edges == (3, 4, 5, 6, 7)
    assert [bins.name(i) for i in range(4)] == ["3", "4", "5", "6"]
    assert (bins.place(0), bins.place(4)) == (2.5, 6.5)
    assert bins.shares({3.0: 0.75, 6.0: 0.25}) == [0.75, 0.0, 0.0, 0.25]


def test_more_whole_numbers_share_bars_of_round_widths() -> None:
    bins = bins_of([7.0, 122.0], step=None, percent=False)
    assert bins.edges[0] == 5 and bins.edges[1] == 10
    assert bins.name(0) == "5 to 9"
    assert len(bins.edges) - 1 <= MOST_BINS


def test_a_wide_range_has_bars_that_double() -> None:
    bins = bins_of([0.0, 1.0, MOST_LINEAR + 1.0], step=None, percent=False)
    assert bins.doubling
    assert [bins.name(i) for i in range(4)] == ["0", "1", "2 to 3", "4 to 7"]
    assert [bins.place(i) for i in range(3)] == [0, 1, 2]
    assert bins.edges[-2] <= MOST_LINEAR + 1 < bins.edges[-1]


def test_values_that_were_counted_in_steps_keep_them() -> None:
    bins = bins_of([0.0, 0.3], step=0.1, percent=True)
    assert len(bins.edges) == 11
    assert (bins.name(0), bins.name(9)) == ("0% to 10%", "90% to 100%")
    assert bins.shares({0.3: 1.0})[3] == 1.0
    assert bins_of([0.0], step=0.25, percent=False).name(1) == "0.25 to 0.5"


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20) | st.lists(st.integers(0, 10**6), min_size=1, max_size=20))
def test_every_value_falls_into_a_bin_and_none_is_lost(values: list[float]) -> None:
    bins = bins_of([float(value) for value in values], step=None, percent=False)
    shares = bins.shares(dict.fromkeys(map(float, values), 1.0))
    assert sum(shares) == len({float(value) for value in values})
    assert len(shares) <= MOST_BINS + 1
    assert all(first < then for first, then in zip(bins.edges, bins.edges[1:], strict=False))


def drawn(*rows: list[float], bins: Bins, most: float = 1.0) -> dict[str, Any]:
    lines = [Line(f"line {i}", COLOURS[i], (), CIRCLE) for i in range(len(rows))]
    data = PlotData("distribution", [], XAxis("degree"), "share of nodes", percent=True)
    return draw_histograms(list(zip(lines, rows, strict=True)), bins, most, data, description="a chart")


def test_each_series_has_a_row_of_its_own_with_its_name_above_its_bars() -> None:
    bins = bins_of([1.0, 2.0], step=None, percent=False)
    made = drawn([0.5, 0.5], [0.0, 1.0], bins=bins)
    bars, names = made["datasets"]["bars"], made["datasets"]["rows"]
    assert made["height"] == 2 * ROW_HEIGHT
    assert [(bar["line"], bar["x"], bar["x2"], bar["y"]) for bar in bars] == [
        ("line 0", 0.5, 1.5, 1),
        ("line 0", 1.5, 2.5, 1),
        ("line 1", 1.5, 2.5, 0),
    ]
    assert bars[2]["y2"] == pytest.approx(2 * (bars[0]["y2"] - 1)), "a bar is as high as its share"
    assert all(bar["y2"] < name["y"] < bar["y"] + 1 for bar in bars for name in names if name["line"] == bar["line"])
    assert (bars[2]["at"], bars[2]["shown"]) == ("2", "100.00%")


def test_rows_are_as_high_as_the_largest_share_rounded_up() -> None:
    assert highest([[0.13, 0.2], [0.41]]) == pytest.approx(0.5)
    assert highest([[1.0]]) == 1.0
    made = drawn([0.25, 0.25], bins=bins_of([1.0, 2.0], step=None, percent=False), most=0.25)
    assert made["layer"][0]["encoding"]["y"]["axis"]["labelExpr"] == "datum.value % 1 ? '25%' : '0%'"


def test_shares_are_by_series_and_value() -> None:
    points: list[Any] = [(("a", "", ""), {"x": 1, "y": 0.5}), (("b", "", ""), {"x": 1, "y": 0.2})]
    data = PlotData("distribution", points, XAxis("degree"), "share", percent=True)
    assert shares_by_series(data) == {("a", "", ""): {1: 0.5}, ("b", "", ""): {1: 0.2}}
