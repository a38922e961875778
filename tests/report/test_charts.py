"""Axes and layers of charts."""

from __future__ import annotations

from typing import Any

import pytest

from grapevine.report.charts import HEIGHT, Point, XAxis, YAxis, draw, y_axis
from grapevine.report.looks import CIRCLE, COLOURS, Line

LINE = Line("vitis", COLOURS[0], (), CIRCLE)


def point(y: float, half: float = 0.0, **more: Any) -> Point:
    return {"line": "vitis", "y": y, "low": y - half, "high": y + half, "shown": str(y), "mark": True, **more}


@pytest.mark.parametrize(
    ("points", "options", "domain"),
    [
        ([point(2.0), point(8.0)], {}, (0.0, 8.0)),
        ([point(97.0), point(99.0)], {}, (97.0, 99.0)),
        ([point(0.99, 0.05)], {"percent": True}, (0.94, 1.0)),
        ([point(1.0, 3.0)], {}, (0.0, 4.0)),
        ([point(5.0)], {"more": [20.0]}, (0.0, 20.0)),
        ([point(0.0)], {}, (0.0, 1.0)),
        ([point(2.0), point(200.0)], {"log": True}, (2.0, 200.0)),
        ([point(0.0), point(200.0)], {"log": True}, (0.0, 200.0)),
    ],
    ids=["from 0", "not from 0", "no share above 1", "no spread below 0", "claims", "all 0", "log", "log of 0"],
)
def test_the_y_axis_holds_all_points_and_nothing_impossible(
    points: list[Point], options: dict[str, Any], domain: tuple[float, float]
) -> None:
    given: dict[str, Any] = {"percent": False} | options
    made = y_axis("y", points, **given)
    assert made.domain == pytest.approx(domain)
    assert made.log == (bool(options.get("log")) and domain[0] > 0)


def spec(points: list[Point], claims: list[Point] | None = None, x: XAxis | None = None) -> dict[str, Any]:
    y = YAxis("overhead", percent=True, domain=(0.0, 1.0))
    return draw(points, claims or [], [LINE], x or XAxis("size"), y, description="a chart", height=HEIGHT)


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
