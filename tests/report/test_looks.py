"""Colours, dashes and shapes: a series looks the same in every figure, and unlike the others."""

from __future__ import annotations

from grapevine.report.looks import (
    COLOURS,
    GREY,
    PLAIN,
    SHAPES,
    Key,
    Line,
    Looks,
    extra_label,
    in_common,
    natural,
    swatch,
)


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


def test_a_colour_means_the_same_system_whatever_a_figure_shows() -> None:
    looks = Looks(["vitis", "rvr"], ["high", "low"])
    plain = looks.lines({("rvr", "high", ""): False})
    sized = looks.lines({("rvr", "high", f"size {size}"): False for size in (1, 2, 3)})
    assert {line.colour for line in (*plain.values(), *sized.values())} == {COLOURS[1]}
    assert {line.shape for line in (*plain.values(), *sized.values())} == {SHAPES[0]}, "shapes are workloads"
    assert len({line.dash for line in sized.values()}) == 3


def test_what_lies_along_x_has_no_colour() -> None:
    lines = Looks(["vitis", "rvr"], ["high", "low"]).lines({("", on, ""): False for on in ("high", "low")})
    assert [line.colour for line in lines.values()] == [PLAIN, PLAIN]
    assert [line.shape for line in lines.values()] == [SHAPES[0], SHAPES[1]]


def test_parameters_have_the_colours_where_nothing_else_varies() -> None:
    lines = Looks(["vitis"], ["high"]).lines({("vitis", "high", f"size {size}"): False for size in (5, 10)})
    assert [(line.colour, line.shape) for line in lines.values()] == [(COLOURS[i], SHAPES[i]) for i in range(2)]


def test_labels_leave_out_what_has_a_panel_for_each_value() -> None:
    keys: list[Key] = [(system, "w", f"size {size}") for system in ("a", "b") for size in (1, 2)]
    lines = Looks(["a", "b"], ["w"]).lines(dict.fromkeys(keys, False), "parameters")
    assert [line.label for line in lines.values()] == ["a", "a", "b", "b"]


def test_a_legend_shows_what_lines_have_in_common_and_nothing_else() -> None:
    one, other = Line("a", COLOURS[0], (), SHAPES[0]), Line("b", COLOURS[0], (7, 3), SHAPES[1])
    both = in_common("system", [one, other])
    assert (both.label, both.colour, both.dash, both.shape) == ("system", COLOURS[0], (), "")
    assert in_common("a", [one]) == Line("a", COLOURS[0], (), SHAPES[0])
    assert in_common("x", [one, Line("c", COLOURS[1], (), SHAPES[0])]).colour == PLAIN
    assert swatch(both).count("<path") == 1, "a line without a marker"


def test_colours_that_no_system_has_come_first_and_grey_last() -> None:
    assert Looks(["a", "b"], ["w"]).spare_colours[:2] == [COLOURS[2], COLOURS[3]]
    assert Looks(["a"], ["w"]).spare_colours[0] == COLOURS[0]
    many = Looks([f"s{i}" for i in range(12)], ["w"]).spare_colours
    assert sorted(many) == sorted(COLOURS) and many[-1] == GREY


def test_marks_without_a_line_tell_parameters_apart_by_their_shapes() -> None:
    keys: list[Key] = [("rvr", "", f"size {size}") for size in (1, 2)]
    lines = Looks(["vitis", "rvr"], ["high", "low"]).lines(dict.fromkeys(keys, False), joined=False)
    assert [(line.colour, line.shape, line.dash) for line in lines.values()] == [
        (COLOURS[1], SHAPES[0], ()),
        (COLOURS[1], SHAPES[1], ()),
    ]


def test_a_baseline_is_drawn_solid_unless_its_own_system_has_other_lines() -> None:
    looks = Looks(["vitis", "opt"], ["high", "low"])
    sizes: list[Key] = [("vitis", "high", f"size {size}") for size in (1, 2)]
    apart = looks.lines(dict.fromkeys([*sizes, ("opt", "high", "")], False))
    assert [line.dash for line in apart.values()] == [(), (7, 3), ()]
    beside = looks.lines(dict.fromkeys([("vitis", "high", ""), *sizes], False))
    assert len({line.dash for line in beside.values()}) == 3
