"""Lines and labels side by side."""

from __future__ import annotations

import math
from itertools import pairwise, product
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapevine.report.apart import LINE_GAP, moved_apart, side_by_side
from grapevine.report.axes import Point, XAxis, YAxis

Y, HEIGHT = YAxis("y", percent=True, domain=(0.0, 1.0)), 300


@given(st.lists(st.floats(0, 300), max_size=8), st.sampled_from([3.5, 14.0]))
def test_neighbours_are_far_enough_apart_and_keep_their_order(places: list[float], gap: float) -> None:
    moved = moved_apart(places, gap)
    order = sorted(range(len(places)), key=lambda i: (round(places[i]), i))
    assert all(moved[after] - moved[before] >= gap - 1e-6 for before, after in pairwise(order))
    assert sum(moved) == pytest.approx(sum(places)), "as far up as down"


@given(st.lists(st.integers(0, 40), min_size=2, max_size=4))
def test_nobody_moves_farther_than_needed(places: list[int]) -> None:
    """Against all ways to divide the places into blocks of neighbours that stand as near as they may."""
    order = sorted(range(len(places)), key=lambda i: (places[i], i))
    best = math.inf
    for cuts in product((False, True), repeat=len(places) - 1):
        ends = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(places)]
        found: list[float] = []
        for first, last in pairwise(ends):
            begin = fmean(places[order[i]] - 10.0 * (i - first) for i in range(first, last))
            found += [begin + 10.0 * i for i in range(last - first)]
        if all(after - before >= 10 - 1e-9 for before, after in pairwise(found)):
            best = min(best, sum((at - places[i]) ** 2 for at, i in zip(found, order, strict=True)))
    moved = moved_apart(places, 10.0)
    assert sum((at - place) ** 2 for at, place in zip(moved, places, strict=True)) == pytest.approx(best, abs=1e-6)


def test_who_is_held_stays() -> None:
    assert moved_apart([10.0, 10.0, 10.0], 4.0, held=[1]) == pytest.approx([6.0, 10.0, 14.0], abs=1e-3)


def line(**values: float) -> list[Point]:
    """Points at x1=…, x2=…; without an x where the name is `all`."""
    return [
        {"y": y, "low": y, "high": y + 0.1} | ({} if name == "all" else {"x": int(name[1:])})
        for name, y in values.items()
    ]


def pixels(points: list[Point]) -> list[float]:
    return [Y.pixel(point["y"], HEIGHT) for point in points]


def test_lines_that_coincide_lie_side_by_side_the_first_above() -> None:
    series = {"a": line(x1=0.5, x2=0.5), "b": line(x1=0.5, x2=0.9), "c": line(x1=0.5, x2=0.5)}
    assert side_by_side(series, XAxis("x"), Y, HEIGHT)
    a, b, c = (pixels(points) for points in series.values())
    assert [a[0], b[0], c[0]] == pytest.approx([150 - LINE_GAP, 150, 150 + LINE_GAP])
    assert [a[1], c[1]] == pytest.approx([150 - LINE_GAP / 2, 150 + LINE_GAP / 2])
    assert b[1] == pytest.approx(30), "nobody is near"
    assert all(point["high"] - point["y"] == pytest.approx(0.1) for points in series.values() for point in points)


def test_lines_that_are_apart_stay_where_they_are() -> None:
    series: dict[str, Any] = {"a": line(x1=0.5, x2=0.6), "b": line(x1=0.9, x2=0.8)}
    assert not side_by_side(series, XAxis("x"), Y, HEIGHT)
    assert series == {"a": line(x1=0.5, x2=0.6), "b": line(x1=0.9, x2=0.8)}


def test_a_point_in_the_middle_of_a_line_lies_beside_it() -> None:
    series = {"a": line(x1=0.5, x3=0.5), "b": line(x1=0.5, x2=0.5, x3=0.5)}
    side_by_side(series, XAxis("x"), Y, HEIGHT)
    assert len({round(pixel, 6) for pixel in pixels(series["b"])}) == 1


def test_beyond_its_ends_a_line_moves_nobody() -> None:
    series = {"a": line(x1=0.5, x2=0.5), "b": line(x2=0.5, x3=0.5)}
    side_by_side(series, XAxis("x"), Y, HEIGHT)
    assert (pixels(series["a"])[0], pixels(series["b"])[1]) == (150, 150)
    assert pixels(series["b"])[0] - pixels(series["a"])[1] == pytest.approx(LINE_GAP)


def test_levels_move_apart_once_and_lines_make_way_for_them() -> None:
    series = {"a": line(all=0.5), "b": line(all=0.5), "c": line(x1=0.5, x2=0.9)}
    side_by_side(series, XAxis("x"), Y, HEIGHT)
    a, b, c = (pixels(points) for points in series.values())
    assert b[0] - a[0] == pytest.approx(2 * LINE_GAP)
    assert a[0] + b[0] == pytest.approx(300)
    assert min(abs(c[0] - level) for level in (a[0], b[0])) >= LINE_GAP - 1e-3
