"""From stored rows to the points of a plot."""

from __future__ import annotations

from typing import Any

from grapevine.report.looks import Looks
from grapevine.report.points import MOST_MARKERS, PlotData, gather
from tests.report.experiments import mean_row

LOOKS = Looks(["vitis", "rvr"], ["high", "low"])
Row = dict[str, Any]


def series(plot: Row, *rows: Row) -> PlotData:
    return gather(plot, {"series": list(rows)}, LOOKS)


def test_a_point_has_its_place_on_x_and_its_series_the_rest() -> None:
    row = mean_row("vitis", "high", {"table_size": 15, "friends": 3}, "overhead", 0.1)
    data = series({"x": "table_size", "y": "overhead"}, row)
    ((key, point),) = data.points
    assert key == ("vitis", "high", "friends 3")
    assert (point["x"], point["y"]) == (15, 0.1)
    assert data.grid == "friends"


def test_labels_units_and_percentages_come_from_the_catalogue() -> None:
    row = mean_row("vitis", "high", {}, "overhead", 0.1)
    share = series({"x": "table_size", "y": "overhead"}, row)
    assert (share.y_title, share.percent, share.points[0][1]["shown"]) == ("overhead", True, "10.00%")
    delay = series({"x": "table_size", "y": "delay_ms_p95"}, mean_row("vitis", "high", {}, "delay_ms_p95", 12.5))
    assert (delay.y_title, delay.percent, delay.points[0][1]["shown"]) == ("delay, p95, ms", False, "12.5")


def test_a_plot_may_say_it_differently() -> None:
    row = mean_row("vitis", "high", {}, "overhead", 0.1)
    data = series({"x": "table_size", "y": "overhead", "y_label": "waste", "percent": False}, row)
    assert (data.y_title, data.percent, data.points[0][1]["shown"]) == ("waste", False, "0.1")


def test_what_has_no_value_on_x_holds_everywhere() -> None:
    rows = mean_row("vitis", "high", {"table_size": 15}, "hops", 2.0), mean_row("rvr", "high", {}, "hops", 5.0)
    data = series({"x": "table_size", "y": "hops"}, *rows)
    assert {key[0]: "x" in point for key, point in data.points} == {"vitis": True, "rvr": False}


def test_words_and_none_make_categories_in_natural_order() -> None:
    rows = [mean_row("vitis", "high", {"size": size}, "hops", 2.0) for size in (10, None, 9)]
    assert series({"x": "size", "y": "hops"}, *rows).x.categories == ("9", "10", "none")


def test_what_could_not_be_measured_is_no_point() -> None:
    assert series({"x": "size", "y": "hops"}, mean_row("vitis", "high", {"size": 1}, "hops", float("nan"))).points == []


def test_long_lines_get_a_marker_now_and_then() -> None:
    rows = [mean_row("vitis", "high", {"size": i}, "hops", 1.0) for i in range(4 * MOST_MARKERS)]
    marked = [point["mark"] for _, point in series({"x": "size", "y": "hops"}, *rows).points]
    assert marked[0] and 0 < sum(marked) <= MOST_MARKERS


def test_progress_goes_along_the_rounds() -> None:
    rows = [mean_row("vitis", "high", {}, "hit_ratio", 0.9) | {"round": r} for r in (20, 10)]
    data = gather({"kind": "progress", "y": "hit_ratio"}, {"progress": rows}, LOOKS)
    assert [point["x"] for _, point in data.points] == [10, 20]
    assert (data.x.title, data.percent, data.sight) == ("round", True, "Hit ratio as the run goes on")


def spread(quantity: str, **shares: float) -> list[Row]:
    where = {"system": "vitis", "workload": "high", "parameters": "{}", "quantity": quantity}
    return [where | {"at": float(at[2:]), "share": share} for at, share in shares.items()]


def test_a_distribution_has_a_share_for_each_value_in_order() -> None:
    rows = spread("degree", at6=0.25, at3=0.75)
    data = gather({"kind": "distribution", "quantity": "degree"}, {"distributions": rows}, LOOKS)
    assert [(point["x"], point["y"]) for _, point in data.points] == [(3, 0.75), (6, 0.25)]
    assert (data.kind, data.percent, data.x.percent, data.step) == ("distribution", True, False, None)


def test_overhead_is_counted_in_ten_steps() -> None:
    rows = spread("overhead", **{"at0.3": 0.5})
    data = gather({"kind": "distribution", "quantity": "overhead"}, {"distributions": rows}, LOOKS)
    assert (data.x.title, data.x.percent, data.step) == ("overhead", True, 0.1)


def test_values_are_in_the_unit_that_their_axis_names() -> None:
    row = mean_row("vitis", "high", {}, "bytes_per_event", 84_700.0, 910.0)
    data = series({"x": "table_size", "y": "bytes_per_event"}, row)
    ((_, point),) = data.points
    assert (data.y_title, point["y"], point["shown"]) == ("bytes per event, kB", 84.7, "84.70 ± 0.91")


def test_the_rows_of_a_plot_are_what_was_stored_with_a_column_for_each_parameter() -> None:
    kept = mean_row("vitis", "high", {"table_size": 15, "friends": 3}, "overhead", 0.1, 0.02)
    data = series({"x": "table_size", "y": "overhead"}, kept, mean_row("vitis", "high", {}, "hops", 2.0))
    assert data.rows == [
        {"system": "vitis", "workload": "high", "table_size": 15, "friends": 3, "metric": "overhead"}
        | {name: kept[name] for name in ("mean", "low", "high", "runs")}
    ]
    assert gather(
        {"kind": "distribution", "quantity": "degree"}, {"distributions": spread("degree", at3=1.0)}, LOOKS
    ).rows == [{"system": "vitis", "workload": "high", "quantity": "degree", "at": 3.0, "share": 1.0}]


def test_points_come_by_series_in_the_order_of_the_page_and_along_x() -> None:
    rows = [mean_row(system, "high", {"size": size}, "hops", 1.0) for size in (9, 5) for system in ("rvr", "vitis")]
    data = series({"x": "size", "y": "hops"}, *rows)
    assert [(key[0], point["x"]) for key, point in data.points] == [("vitis", 5), ("vitis", 9), ("rvr", 5), ("rvr", 9)]
    assert data.better == "low"
