"""Colours, dashes and shapes: a series looks the same in every figure, and unlike the others."""

from __future__ import annotations

from grapevine.report.looks import COLOURS, Key, Line, Looks, extra_label, natural, swatch


def test_systems_differ_by_colour_and_workloads_by_shape() -> None:
    looks = Looks(["vitis", "rvr"], ["high", "low"])
    keys: list[Key] = [(system, workload, "") for system in ("vitis", "rvr") for workload in ("high", "low")]
    lines = looks.lines(dict.fromkeys(keys, False))
    assert [line.label for line in lines.values()] == ["vitis · high", "vitis · low", "rvr · high", "rvr · low"]
    assert {lines[key].colour for key in keys if key[0] == "vitis"} == {COLOURS[0]}
    assert {lines[key].colour for key in keys if key[0] == "rvr"} == {COLOURS[1]}
    assert lines["vitis", "high", ""].shape == lines["rvr", "high", ""].shape != lines["rvr", "low", ""].shape


def test_a_series_keeps_its_look_in_a_figure_without_the_others() -> None:
    looks = Looks(["vitis", "rvr", "opt"], ["high"])
    everything = looks.lines({(system, "high", ""): False for system in looks.systems})
    alone = looks.lines({("opt", "high", ""): False})
    assert alone["opt", "high", ""].colour == everything["opt", "high", ""].colour


def test_more_systems_than_colours_are_told_apart_by_their_dashes() -> None:
    systems = [f"s{i}" for i in range(len(COLOURS) + 1)]
    lines = Looks(systems, ["w"]).lines({(system, "w", ""): False for system in systems})
    first, last = lines["s0", "w", ""], lines[systems[-1], "w", ""]
    assert first.colour == last.colour
    assert first.dash != last.dash


def test_labels_are_distinct_even_if_a_workload_is_called_like_a_parameter() -> None:
    lines = Looks(["a"], ["size 5", ""]).lines({("a", "size 5", ""): False, ("a", "", "size 5"): False})
    assert len({line.label for line in lines.values()}) == 2


def test_baselines_come_first_and_numbers_count_by_value() -> None:
    looks = Looks(["vitis"], ["w"])
    parameters = ["size 15", "size 8", "", "size 1,000"]
    ranked = sorted((("vitis", "w", text) for text in parameters), key=looks.rank)
    assert [key[2] for key in ranked] == ["", "size 8", "size 15", "size 1,000"]
    assert natural("size 8") < natural("size 15") < natural("size none")


def test_a_series_is_named_by_what_the_grid_set_beyond_its_axis() -> None:
    assert extra_label({"table_size": 15, "friends": None}, "table_size") == "friends none"
    assert extra_label({"table_size": 15}, "table_size") == ""


def test_the_swatch_of_a_flat_line_has_no_marker() -> None:
    line = Line("a", COLOURS[0], (7, 3), "M0,0Z")
    assert swatch(line).count("<path") == 2 and 'stroke-dasharray="7 3"' in swatch(line)
    assert swatch(line, joined=False).count("<path") == 1
    assert swatch(Line("a", COLOURS[0], (), "M0,0Z", flat=True)).count("<path") == 1
