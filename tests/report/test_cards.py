"""Figures as HTML: one legend for all, and what can be taken away."""

from __future__ import annotations

import csv
import io
from itertools import count
from typing import Any

from grapevine.report.cards import as_csv, figure_card, figures_section
from grapevine.report.figures import Figure, Panel
from grapevine.report.looks import COLOURS, SHAPES, Looks
from tests.report.experiments import HOSTILE
from tests.report.test_page import Document

LOOKS = Looks(["vitis", "rvr"], ["high", "low"])
SPEC: dict[str, Any] = {"datasets": {"points": []}}


def figure(*keys: tuple[str, str, str], title: str = "Hops", spec: dict[str, Any] = SPEC, **more: Any) -> Figure:
    lines = list(LOOKS.lines(dict.fromkeys(keys, False)).values())
    return Figure(title, "What is drawn.", "What it shows.", lines, panels=[Panel("", spec)], **more)


def card(made: Figure) -> Document:
    return Document(figure_card(made, "figure-1", count(1), wide=False))


def test_the_conclusion_comes_first_and_then_what_is_drawn() -> None:
    assert card(figure(("vitis", "high", ""))).texts("p")[:2] == ["What it shows.", "What is drawn."]


def test_one_legend_explains_colours_and_shapes_of_all_figures() -> None:
    some, others = [("vitis", "high", ""), ("rvr", "high", "")], [("rvr", "low", "")]
    section = figures_section([figure(*some), figure(*others)])
    document = Document(section)
    assert document.texts("li") == ["vitis", "rvr", "high", "low"]
    legend = section[: section.index('<div class="figures">')]
    assert [colour in legend for colour in COLOURS[:3]] == [True, True, False]
    assert SHAPES[0] in legend and SHAPES[1] in legend
    assert 'class="legend"' not in section[len(legend) :], "none of them has its own"


def test_parameters_are_explained_in_their_figure() -> None:
    keys = [("vitis", "high", f"size {size}") for size in (5, 10)]
    assert card(figure(*keys)).texts("li") == ["size 5", "size 10"]
    assert "stroke-dasharray" in figure_card(figure(*keys), "figure-1", count(1), wide=False)
    rows = figure(*keys, spec={"datasets": {"rows": []}})
    assert card(rows).texts("li") == [], "rows have their names beside them"


def test_shapes_that_stand_for_parameters_are_kept_out_of_the_shared_legend() -> None:
    joined = figure(("vitis", "high", ""), ("vitis", "low", ""))
    keys = [("vitis", "low", f"size {size}") for size in (5, 10)]
    lines = list(LOOKS.lines(dict.fromkeys(keys, False), joined=False).values())
    marks = Figure("Marks", "", "", lines, panels=[Panel("", SPEC)], joined=False)
    legend, _, cards = figures_section([joined, marks]).partition('<div class="figures">')
    assert SHAPES[1] in legend, "of the second workload"
    assert SHAPES[1] in cards, "of the second size"


def test_without_anything_to_tell_apart_there_is_no_legend() -> None:
    assert Document(figures_section([figure(("vitis", "high", ""))])).texts("li") == []
    assert figures_section([]) == ""


def test_a_figure_without_a_chart_has_nothing_to_take_away() -> None:
    document = card(Figure("Hops", "No finished run has these values."))
    assert document.texts("button") == [] and document.texts("p") == ["No finished run has these values."]


def test_every_figure_can_be_saved_in_three_ways() -> None:
    rows = [{"system": "vitis", "size": 5, "mean": 0.1}]
    document = card(figure(("vitis", "high", ""), ("rvr", "high", ""), title="Hit ratio, %", rows=rows))
    assert document.texts("button") == ["CSV", "SVG", "PNG"]
    assert document.attributes("data-as") == ["csv", "svg", "png"]
    assert "Hit ratio, % as CSV" in document.attributes("aria-label")
    (saved,) = document.saved()
    assert (saved["name"], list(saved["legend"])) == ("hit-ratio", ["vitis", "rvr"])
    assert saved["csv"] == "system,size,mean\nvitis,5,0.1\n"


def test_a_table_has_all_columns_and_reads_back_whatever_is_in_it() -> None:
    rows: list[dict[str, Any]] = [{"a": HOSTILE, "b": 1 / 3}, {"a": 'x,"y"\nz', "c": None}]
    read = list(csv.DictReader(io.StringIO(as_csv(rows))))
    assert read == [{"a": HOSTILE, "b": "0.3333333333", "c": ""}, {"a": 'x,"y"\nz', "b": "", "c": ""}]
    assert as_csv([]) == "\n"


def test_figures_of_several_panels_take_a_row_and_so_does_one_that_is_left_alone() -> None:
    def widths(*panels: int) -> list[bool]:
        made = [Figure("x", "y", panels=[Panel("", SPEC)] * many) for many in panels]
        classes = Document(figures_section(made)).attributes("class")
        return ["wide" in name for name in classes if name.startswith("card")]

    assert widths(1, 1) == [False, False]
    assert widths(1, 1, 1) == [False, False, True]
    assert widths(1, 3, 1, 1) == [True, True, False, False]
