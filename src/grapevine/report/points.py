"""From an experiment's tables to the points of a plot, one way for each kind of plot."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from grapevine.metrics.catalogue import described
from grapevine.metrics.measured import Quantity, quantities
from grapevine.metrics.numbers import interval, number
from grapevine.report.charts import Point, XAxis
from grapevine.report.looks import Key, Looks, extra_label, natural
from grapevine.report.words import listed, parameter_name, sentence, value_name

MOST_MARKERS = 24  # on one line; longer lines get one now and then
MOST_TICKS = 10  # up to so many different values on x are the ticks themselves
MOST_FILLED = 300  # a wider range of degrees is not filled up with zeros
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlotData:
    """What the kinds of plots have in common."""

    points: list[tuple[Key, Point]]  # a point without x holds everywhere along it
    x: XAxis
    y_title: str
    percent: bool
    sight: str  # what one sees, in words
    grid: str  # names of the parameters that tell series apart
    seeds: int = 1
    claimed: list[Row] = field(default_factory=list)


def gather(plot: dict[str, Any], tables: dict[str, list[Row]], looks: Looks) -> PlotData:
    """The points and axes of one plot of the description."""
    kind = plot.get("kind", "series")
    if kind == "distribution":
        return _distribution(plot, tables["distributions"])
    if kind == "progress":
        return _progress(plot, tables["progress"])
    return _series(plot, tables["series"], looks)


def _series(plot: dict[str, Any], rows: list[Row], looks: Looks) -> PlotData:
    x, (y_title, percent) = plot.get("x", ""), _y(plot)
    chosen = _of_metric(plot, rows)
    points: list[tuple[Key, Point]] = []
    for row in chosen:
        parameters = json.loads(row["parameters"])
        values = parameters | {name: row[name] for name in ("system", "workload")}
        system, workload = ("" if name == x else row[name] for name in ("system", "workload"))
        key = system, workload, extra_label(parameters, x)
        points.append((key, _spread(row, percent) | ({"x": values[x]} if x in values else {})))
    if points and not any("x" in point for _, point in points):
        # Nothing has this parameter: each series gets a place of its own.
        for key, point in points:
            point["x"] = " · ".join(part for part in key if part)
        axis = XAxis("", tuple(dict.fromkeys(point["x"] for _, point in points)), connected=False, labelled=False)
    elif x in ("system", "workload"):
        present = {point["x"] for _, point in points}
        names = tuple(name for name in (looks.systems if x == "system" else looks.workloads) if name in present)
        axis = XAxis(plot.get("x_label") or x, names, connected=False)
    else:
        axis = _axis(x, plot, [point["x"] for _, point in points if "x" in point])
    sight = f"{sentence(y_title)} against {axis.title}" if axis.title else sentence(y_title)
    grid = _grid(chosen, without=x)
    return PlotData(_ordered(points, axis), axis, y_title, percent, sight, grid, _seeds(chosen), _claimed(plot))


def _progress(plot: dict[str, Any], rows: list[Row]) -> PlotData:
    chosen, (y_title, percent) = _of_metric(plot, rows), _y(plot)
    points = [(_key(row), _spread(row, percent) | {"x": row["round"]}) for row in chosen]
    axis = XAxis(plot.get("x_label") or "round")
    sight = f"{sentence(y_title)} as the run goes on"
    grid = _grid(chosen)
    return PlotData(_ordered(points, axis), axis, y_title, percent, sight, grid, _seeds(chosen), _claimed(plot))


def _distribution(plot: dict[str, Any], rows: list[Row]) -> PlotData:
    """A share of nodes is a percentage in any case, and x is one as well where the quantity is a share."""
    name = plot.get("quantity", "")
    quantity = quantities().get(name) or Quantity(name, parameter_name(name))
    percent = quantity.share and bool(plot.get("percent", True))
    chosen = [row for row in rows if row["quantity"] == name]
    shares: dict[Key, dict[float, float]] = {}
    for row in chosen:
        shares.setdefault(_key(row), {})[round(row["at"], 9)] = row["share"]
    title = plot.get("x_label") or quantity.label
    step = 1 / quantity.steps if quantity.steps else None
    if step:
        ats = [round(i * step, 9) for i in range(round(1 / step))]
        axis = XAxis(title, ticks=(0, 0.25, 0.5, 0.75, 1), percent=percent, domain=(0.0, 1.0))
    else:
        ats = _filled(sorted({at for found in shares.values() for at in found}))
        axis = _axis(title, plot | {"x_label": title}, ats)
    points: list[tuple[Key, Point]] = []
    for key, found in shares.items():
        for at in ats:
            share = found.get(at, 0.0)
            point: Point = {"x": at + (step or 0) / 2, "y": share, "low": share, "high": share}
            if step:
                point["at"] = f"{at:.0%} to {at + step:.0%}" if percent else f"{at:g} to {at + step:g}"
            points.append((key, point | {"shown": number(share, percent=True)}))
    points = _ordered(points, axis)
    for _, point in points:
        point["mark"] &= point["y"] > 0  # else a row of markers on the axis says that nothing is there
    sight = f"How {title} is distributed over the online nodes, all seeds together"
    return PlotData(points, axis, plot.get("y_label") or "share of nodes", True, sight, _grid(chosen))


def _y(plot: dict[str, Any]) -> tuple[str, bool]:
    """The title of the y axis, and whether it is in percent: as the plot says, or else as its metric does."""
    metric = described(plot.get("y", ""))
    return plot.get("y_label") or metric.heading, bool(plot.get("percent", metric.share))


def _of_metric(plot: dict[str, Any], rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["metric"] == plot.get("y") and math.isfinite(row["mean"])]


def _key(row: Row) -> Key:
    return row["system"], row["workload"], extra_label(json.loads(row["parameters"]), None)


def _seeds(rows: list[Row]) -> int:
    return max((row["runs"] for row in rows), default=1)


def _grid(rows: list[Row], without: str = "") -> str:
    names = {key for row in rows for key in json.loads(row["parameters"])} - {without}
    return listed([parameter_name(name) for name in sorted(names)]) or "parameters"


def _claimed(plot: dict[str, Any]) -> list[Row]:
    return [claim for claim in plot.get("claimed") or [] if isinstance(claim.get("y"), int | float)]


def _spread(row: Row, percent: bool) -> Point:
    """A mean with its interval; one seed has none."""
    mean = row["mean"]
    low, high = (row[end] if row["runs"] > 1 and math.isfinite(row[end]) else mean for end in ("low", "high"))
    return {"y": mean, "low": low, "high": high, "shown": interval(mean, (high - low) / 2, percent=percent)}


def _filled(ats: list[float]) -> list[float]:
    """With the whole numbers between them: no node has those, which is a share of 0."""
    if ats and all(at.is_integer() for at in ats) and ats[-1] - ats[0] <= MOST_FILLED:
        return [ats[0] + i for i in range(int(ats[-1] - ats[0]) + 1)]
    return ats


def _axis(x: str, plot: dict[str, Any], values: list[Any]) -> XAxis:
    """Numbers where all values are; `none` among them, or words, make categories."""
    title = plot.get("x_label") or parameter_name(x)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        distinct = tuple(sorted(set(values)))
        log = bool(plot.get("log_x")) and all(value > 0 for value in distinct)
        return XAxis(title, ticks=distinct if 0 < len(distinct) <= MOST_TICKS else None, log=log)
    names = sorted(dict.fromkeys(value_name(value) for value in values), key=natural)
    return XAxis(title, tuple(names))


def _ordered(points: list[tuple[Key, Point]], x: XAxis) -> list[tuple[Key, Point]]:
    """Sorted along x, with the choice of which points of long lines get a marker."""
    if x.categories is not None:
        for _, point in points:
            if "x" in point:
                point["x"] = value_name(point["x"])
        place = {name: i for i, name in enumerate(x.categories)}
        points = sorted(points, key=lambda pair: place.get(pair[1].get("x"), -1))
    else:
        points = sorted(points, key=lambda pair: pair[1].get("x", -math.inf))
    lengths, seen = Counter(key for key, _ in points), Counter[Key]()
    for key, point in points:
        every = 1 if lengths[key] <= MOST_MARKERS else math.ceil(lengths[key] / (MOST_MARKERS // 2))
        point["mark"] = seen[key] % every == 0
        seen[key] += 1
    return points
