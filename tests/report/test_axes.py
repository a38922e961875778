"""Axes of charts: what they hold, and where values lie on them."""

from __future__ import annotations

from typing import Any

import pytest

from grapevine.report.axes import Point, XAxis, YAxis, round_ends, round_step, y_axis
from tests.report.test_charts import point


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
        ([point(0.77), point(9.9)], {"log": True}, (0.5, 10.0)),
        ([point(10.0)], {"log": True}, (10.0, 100.0)),
        ([point(0.0), point(200.0)], {"log": True}, (0.0, 200.0)),
        ([point(0.66), point(0.01)], {"percent": True}, (0.0, 0.7)),
    ],
    ids=[
        "from 0",
        "not from 0",
        "no share above 1",
        "no spread below 0",
        "claims",
        "all 0",
        "log",
        "round log",
        "one of log",
        "log of 0",
        "round ends",
    ],
)
def test_the_y_axis_holds_all_points_and_nothing_impossible(
    points: list[Point], options: dict[str, Any], domain: tuple[float, float]
) -> None:
    given: dict[str, Any] = {"percent": False} | options
    made = y_axis("y", points, **given)
    assert made.domain == pytest.approx(domain)
    assert made.log == (bool(options.get("log")) and domain[0] > 0)


@pytest.mark.parametrize(("size", "step"), [(1.3, 1), (1.5, 2), (0.033, 0.05), (80.0, 100.0), (0.1, 0.1)])
def test_steps_are_round(size: float, step: float) -> None:
    assert round_step(size) == pytest.approx(step)


def test_ends_are_whole_steps_and_exact_ones_stay() -> None:
    assert round_ends(0.0, 0.662) == (0.0, 0.7)
    assert round_ends(-0.3, 9.7) == (-2.0, 10.0)
    assert round_ends(0.0, 0.6) == (0.0, 0.6)


@pytest.mark.parametrize("log", [False, True])
def test_a_value_and_its_pixel_lead_to_each_other(log: bool) -> None:
    axis = YAxis("y", percent=False, domain=(1.0, 100.0), log=log)
    assert (axis.pixel(100.0, 300), axis.pixel(1.0, 300)) == pytest.approx((0.0, 300.0))
    assert axis.pixel(10.0, 300) == pytest.approx(150 if log else 300 * 90 / 99)
    assert axis.value(axis.pixel(37.0, 300), 300) == pytest.approx(37.0)


def test_places_on_x_are_those_of_categories_and_of_powers_on_a_log_axis() -> None:
    assert [XAxis("x", ("none", "5")).place(name) for name in ("none", "5")] == [0, 1]
    log = XAxis("x", log=True)
    assert log.place(100) - log.place(10) == pytest.approx(log.place(10) - log.place(1))
    assert XAxis("x").place(7) == 7
