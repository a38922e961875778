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
        "Numbered crosses are values that the paper reports. Lines that would hide each other lie side by side."
    )
    assert made.conclusion == "At size 5, both are alike (10%); likewise at 10 (10%). No two lines cross."
    assert made.rows[0] | {"size": 5, "mean": 0.1} == made.rows[0]
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
    assert {line.label for line in made.lines} == {"vitis", "rvr"}
    assert len({(line.colour, line.dash) for line in made.lines}) == 2, "panels look alike"
    assert ", one line per system. One panel per reach." in made.explanation


def test_measures_of_plots_are_named_once() -> None:
    plots = [{"y": "hops"}, {"y": "overhead"}, {"y": "hops"}, {"quantity": "degree"}]
    assert plotted_measures(plots) == ["hops", "overhead"]


def test_lines_that_coincide_are_drawn_apart_and_told_as_they_are() -> None:
    (panel,) = make_figure({"x": "size", "y": "overhead"}, {"series": rows("vitis", "rvr")}, LOOKS).panels
    points = [point for point in panel.spec["datasets"]["points"] if point["x"] == 5]
    assert points[0]["y"] > 0.1 > points[1]["y"], "the first system above"
    assert {point["shown"] for point in points} == {"10.00% ± 2.00%"}


def test_lines_that_are_apart_are_not_said_to_be_moved() -> None:
    several = [mean_row(name, "high", {"size": 5}, "hops", y) for name, y in (("vitis", 2.0), ("rvr", 9.0))]
    made = make_figure({"x": "size", "y": "hops"}, {"series": several}, LOOKS)
    assert "side by side" not in made.explanation


def test_an_interval_below_zero_ends_at_the_edge_of_a_log_axis() -> None:
    row = mean_row("vitis", "high", {"size": 5}, "hops", 2.0, 3.0)
    (panel,) = make_figure({"x": "size", "y": "hops", "log_y": True}, {"series": [row]}, LOOKS).panels
    assert panel.spec["datasets"]["points"][0]["low"] == 2.0


def test_series_without_a_common_axis_stand_under_their_names() -> None:
    several = [mean_row(name, "high", {}, "hops", y) for name, y in (("vitis", 2.0), ("rvr", 9.0))]
    (panel,) = make_figure({"x": "load", "y": "hops"}, {"series": several}, LOOKS).panels
    assert [point["x"] for point in panel.spec["datasets"]["points"]] == ["vitis", "rvr"]
    assert panel.spec["layer"][0]["encoding"]["x"]["sort"] == ["vitis", "rvr"]
    assert "xOffset" not in panel.spec["layer"][0]["encoding"]


def test_a_baseline_of_a_system_is_told_apart_from_its_lines_in_every_panel() -> None:
    parameters = [{"size": size, "reach": reach} for size in (1, 2) for reach in range(MOST_LINES + 1)]
    many = [mean_row("vitis", "high", found, "hops", 2.0) for found in [{}, *parameters]]
    for panel in make_figure({"x": "size", "y": "hops"}, {"series": many}, LOOKS).panels:
        assert len({point["line"] for rows in panel.spec["datasets"].values() for point in rows}) == 2


def test_a_distribution_is_drawn_as_bars() -> None:
    where = {"system": "vitis", "workload": "high", "parameters": "{}", "quantity": "degree"}
    shares = [where | {"at": float(at), "share": 0.5} for at in (3, 400)]
    made = make_figure({"kind": "distribution", "quantity": "degree"}, {"distributions": shares}, LOOKS)
    assert {layer["mark"]["type"] for layer in made.panels[0].spec["layer"]} == {"rect", "text"}
    assert made.explanation.endswith("Each bar spans twice the range of the one before.")
    assert made.conclusion == "Degree: the median is 3; the 99th percentile is 400."
