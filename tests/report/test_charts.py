"""Layers of charts."""

from __future__ import annotations

from typing import Any

from grapevine.report.apart import LABEL_GAP
from grapevine.report.axes import Point, XAxis, YAxis
from grapevine.report.charts import HEIGHT, draw
from grapevine.report.looks import CIRCLE, COLOURS, Line

LINE, OTHER = Line("vitis", COLOURS[0], (), CIRCLE), Line("rvr", COLOURS[1], (), CIRCLE)
Y = YAxis("overhead", percent=True, domain=(0.0, 1.0))


def point(y: float, half: float = 0.0, **more: Any) -> Point:
    return {"line": "vitis", "y": y, "low": y - half, "high": y + half, "shown": str(y), "mark": True, **more}


def spec(
    points: list[Point], claims: list[Point] | None = None, x: XAxis | None = None, lines: tuple[Line, ...] = (LINE,)
) -> dict[str, Any]:
    return draw(points, claims or [], lines, x or XAxis("size"), Y, description="a chart", height=HEIGHT)


def marks(made: dict[str, Any]) -> list[str]:
    return [layer["mark"]["type"] for layer in made["layer"]]


def test_what_is_certain_has_no_band() -> None:
    assert marks(spec([point(0.1, x=1), point(0.2, x=2)])) == ["line", "point"]
    assert marks(spec([point(0.1, 0.05, x=1), point(0.2, x=2)])) == ["area", "line", "point"]


def test_a_lonely_point_has_a_whisker_instead_of_a_band() -> None:
    assert marks(spec([point(0.1, 0.05, x=1)])) == ["rule", "line", "point"]


def test_a_point_without_x_is_a_level() -> None:
    made = spec([point(0.4)])
    assert marks(made) == ["rect", "rule"]
    assert list(made["datasets"]) == ["levels"]


def test_claimed_values_lie_above_and_carry_their_number() -> None:
    claim = {"y": 0.3, "number": "1", "shown": "paper: 30%", "left": False}
    made = spec([point(0.1, x=1)], [claim | {"x": 1}, claim])
    assert marks(made) == ["line", "point", "rule", "text", "point", "text"]
    assert made["datasets"]["claims"][0]["number"] == "1"


def test_a_percentage_is_written_as_one_on_its_axis() -> None:
    made = spec([point(0.1, x=1)])
    assert made["layer"][-1]["encoding"]["y"]["axis"]["format"] == "%"
    assert made["title"]["text"] == "overhead"
    assert "$schema" not in made, "a page loads nothing"


def test_long_names_of_categories_lean() -> None:
    def angle(*names: str) -> int:
        axis = XAxis("workload", names, connected=False)
        return int(spec([point(0.1, x=names[0])], x=axis)["layer"][-1]["encoding"]["x"]["axis"]["labelAngle"])

    assert angle("high", "low") == 0
    assert angle("a workload with a long name", "another one with a longer name") == -35


def test_names_stand_at_the_ends_of_lines_far_enough_apart_to_be_read() -> None:
    lines = LINE, OTHER
    ends = [point(0.5, x=9), point(0.505, x=9) | {"line": "rvr"}]
    made = spec([point(0.1, x=1), point(0.9, x=1) | {"line": "rvr"}, *ends], lines=lines)
    labels = made["datasets"]["labels"]
    assert [(label["line"], label["x"], label["y"]) for label in labels] == [("vitis", 9, 0.5), ("rvr", 9, 0.505)]
    apart = HEIGHT * abs(labels[0]["at"] - labels[1]["at"])
    assert round(apart, 6) == LABEL_GAP
    assert labels[1]["at"] > labels[0]["at"], "in the order of the ends"
    assert [layer["name"] for layer in made["layer"][-2:]] == ["label strokes", "label names"]
    assert made["usermeta"]["labelRoom"] > 6 * len("vitis")


def test_a_line_that_ends_early_has_no_name_beside_it_and_a_level_has() -> None:
    early, level = point(0.9, x=1) | {"line": "rvr"}, point(0.7) | {"line": "opt"}
    lines = LINE, OTHER, Line("opt", COLOURS[2], (), CIRCLE, flat=True)
    made = spec([point(0.1, x=1), point(0.5, x=9), early, level], lines=lines)
    assert [label["line"] for label in made["datasets"]["labels"]] == ["vitis", "opt"]


def test_one_line_alone_and_marks_that_are_not_joined_have_no_names_beside_them() -> None:
    alone = spec([point(0.1, x=1), point(0.5, x=9)])
    marks = spec([point(0.1, x="a")], x=XAxis("workload", ("a",), connected=False), lines=(LINE, OTHER))
    for made in (alone, marks):
        assert "labels" not in made["datasets"] and "usermeta" not in made
