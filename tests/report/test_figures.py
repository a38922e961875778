"""Figures: panels, legends and what is said of them."""

from __future__ import annotations

from typing import Any

from grapevine.report.figures import MOST_LINES, make_figure, plotted_measures
from grapevine.report.looks import Looks
from tests.report.experiments import mean_row

Row = dict[str, Any]
LOOKS = Looks(["vitis", "rvr"], ["high", "low"])


def rows(*systems: str) -> list[Row]:
    return [mean_row(name, "high", {"size": size}, "overhead", 0.1, 0.02) for name in systems for size in (5, 10)]


def test_a_figure_says_what_it_shows() -> None:
    plot = {"x": "size", "y": "overhead", "claimed": [{"x": 5, "y": 0.2, "label": "Fig. 4"}, {"y": 0.5}]}
    made = make_figure(plot, {"series": rows("vitis", "rvr")}, LOOKS)
    assert made.title == "Overhead"
    assert made.explanation == (
        "Overhead against size, one line per system: the mean over 2 seeds and its 95% confidence interval. "
        "Numbered crosses are values that the paper reports."
    )
    assert [line.label for line in made.lines] == ["vitis", "rvr"]
    assert made.claims == ["Fig. 4: 20% at 5", "paper: 50%"]
    assert len(made.panels) == 1


def test_a_figure_without_values_says_so() -> None:
    made = make_figure({"title": "Nothing", "x": "size", "y": "hops"}, {"series": rows("vitis")}, LOOKS)
    assert (made.title, made.explanation, made.panels) == ("Nothing", "No finished run has these values.", [])


def test_only_markers_carry_a_tooltip() -> None:
    many = [mean_row("vitis", "high", {"size": size}, "hops", 1 / 3) for size in range(100)]
    (panel,) = make_figure({"x": "size", "y": "hops"}, {"series": many}, LOOKS).panels
    points = panel.spec["datasets"]["points"]
    assert len(points) == 100
    assert all(("shown" in point) == point["mark"] for point in points)
    assert points[0]["y"] == 0.333333, "six digits are more than a screen shows"


def test_too_many_lines_are_divided_into_panels() -> None:
    parameters = [{"size": size, "reach": reach} for size in (1, 2) for reach in range(MOST_LINES + 1)]
    many = [mean_row(name, "high", found, "hops", 2.0) for name in ("vitis", "rvr") for found in parameters]
    made = make_figure({"x": "size", "y": "hops"}, {"series": many}, LOOKS)
    assert [panel.heading for panel in made.panels] == [f"reach {reach}" for reach in range(MOST_LINES + 1)]
    assert [line.label for line in made.lines] == ["vitis", "rvr"]
    assert made.explanation.endswith("One panel per reach.")


def test_measures_of_plots_are_named_once() -> None:
    plots = [{"y": "hops"}, {"y": "overhead"}, {"y": "hops"}, {"quantity": "degree"}]
    assert plotted_measures(plots) == ["hops", "overhead"]
