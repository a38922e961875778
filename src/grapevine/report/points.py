"""From an experiment's tables to the points of a plot, one way for each kind of plot."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from grapevine.metrics.catalogue import Metric, described
from grapevine.metrics.measured import Quantity, quantities
from grapevine.model.numbers import interval
from grapevine.report.axes import Point, XAxis
from grapevine.report.looks import Key, Looks, extra_label, natural
from grapevine.report.words import listed, parameter_name, sentence, value_name

MOST_MARKERS = 24  # on one line; longer lines get one now and then
MOST_TICKS = 10  # up to so many different values on x are the ticks themselves
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlotData:
    """What the kinds of plots have in common."""

    kind: str  # as the experiment calls it
    points: list[tuple[Key, Point]]  # by series and along x; a point without x holds everywhere along it
    x: XAxis
    y_title: str
    percent: bool
    sight: str = ""  # what one sees, in words
    grid: str = ""  # names of the parameters that tell series apart
    seeds: int = 1
    claimed: list[Row] = field(default_factory=list)
    better: str | None = None  # high or low; None: it depends
    step: float | None = None  # of a distribution whose values were counted in steps: each stands for so much above it
    rows: list[Row] = field(default_factory=list)  # the same as a table, as far as it was stored


def gather(plot: dict[str, Any], tables: dict[str, list[Row]], looks: Looks) -> PlotData:
    """The points and axes of one plot of the description."""
    kind = plot.get("kind", "series")
    if kind == "distribution":
        data = _distribution(plot, tables["distributions"])
    elif kind == "progress":
        data = _progress(plot, tables["progress"])
    else:
        data = _series(plot, tables["series"], looks)
    data.points.sort(key=lambda pair: looks.rank(pair[0]))  # and along x, as they were
    return data


def _series(plot: dict[str, Any], rows: list[Row], looks: Looks) -> PlotData:
    x, metric = plot.get("x", ""), _metric(plot)
    chosen = _of_metric(plot, rows)
    points: list[tuple[Key, Point]] = []
    for row in chosen:
        parameters = json.loads(row["parameters"])
        values = parameters | {name: row[name] for name in ("system", "workload")}
        system, workload = ("" if name == x else row[name] for name in ("system", "workload"))
        key = system, workload, extra_label(parameters, x)
        points.append((key, _spread(row, metric) | ({"x": values[x]} if x in values else {})))
    if points and not any("x" in point for _, point in points):
        # Nothing has this parameter: each series gets a place of its own.
        named = [part for part in range(3) if len({key[part] for key, _ in points}) > 1] or [0]
        for key, point in points:
            point["x"] = " · ".join(key[part] for part in named if key[part])
        axis = XAxis("", tuple(dict.fromkeys(point["x"] for _, point in points)), connected=False, shared=False)
    elif x in ("system", "workload"):
        present = {point["x"] for _, point in points}
        names = tuple(name for name in (looks.systems if x == "system" else looks.workloads) if name in present)
        axis = XAxis(plot.get("x_label") or x, names, connected=False)
    else:
        axis = _axis(x, plot, [point["x"] for _, point in points if "x" in point])
    sight = sentence(metric.label) + (f" against {axis.title}" if axis.title else "")
    return _measured("series", plot, chosen, points, axis, sight=sight, grid=_grid(chosen, without=x))


def _progress(plot: dict[str, Any], rows: list[Row]) -> PlotData:
    chosen, metric = _of_metric(plot, rows), _metric(plot)
    points = [(_key(row), _spread(row, metric) | {"x": row["round"]}) for row in chosen]
    axis = XAxis(plot.get("x_label") or "round")
    sight = f"{sentence(metric.label)} as the run goes on"
    return _measured("progress", plot, chosen, points, axis, sight=sight, grid=_grid(chosen))


def _measured(
    kind: str,
    plot: dict[str, Any],
    chosen: list[Row],
    points: list[tuple[Key, Point]],
    x: XAxis,
    *,
    sight: str,
    grid: str,
) -> PlotData:
    """Means of a metric over seeds."""
    metric = _metric(plot)
    return PlotData(
        kind,
        _ordered(points, x),
        x,
        metric.label,
        metric.share,
        sight,
        grid,
        max((row["runs"] for row in chosen), default=1),
        [claim for claim in plot.get("claimed") or [] if isinstance(claim.get("y"), int | float)],
        metric.better,
        rows=[_stored(row, "round", "metric", "mean", "low", "high", "runs") for row in chosen],
    )


def _distribution(plot: dict[str, Any], rows: list[Row]) -> PlotData:
    """A share of nodes is a percentage in any case, and x is one as well where the quantity is a share."""
    name = plot.get("quantity", "")
    quantity = quantities().get(name) or Quantity(name, parameter_name(name))
    percent = quantity.share and bool(plot.get("percent", True))
    chosen = [row for row in rows if row["quantity"] == name]
    axis = XAxis(plot.get("x_label") or quantity.label, percent=percent)
    points = [(_key(row), {"x": round(row["at"], 9), "y": row["share"]}) for row in chosen]
    return PlotData(
        "distribution",
        sorted(points, key=lambda pair: pair[1]["x"]),
        axis,
        plot.get("y_label") or "share of nodes",
        percent=True,
        sight=f"How {axis.title} is distributed over the online nodes, all seeds together",
        grid=_grid(chosen),
        step=1 / quantity.steps if quantity.steps else None,
        rows=[_stored(row, "quantity", "at", "share") for row in chosen],
    )


def _metric(plot: dict[str, Any]) -> Metric:
    """What lies along y: as the plot calls and writes it, or else as its metric is called and written."""
    metric = described(plot.get("y", ""))
    share = bool(plot.get("percent", metric.share))
    return replace(metric, label=plot.get("y_label") or metric.heading, share=share)


def _stored(row: Row, *names: str) -> Row:
    """A row as it was stored, with a column for each parameter of the grid."""
    shown = {name: row[name] for name in names if name in row}
    return {name: row[name] for name in ("system", "workload")} | json.loads(row["parameters"]) | shown


def _of_metric(plot: dict[str, Any], rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["metric"] == plot.get("y") and math.isfinite(row["mean"])]


def _key(row: Row) -> Key:
    return row["system"], row["workload"], extra_label(json.loads(row["parameters"]), None)


def _grid(rows: list[Row], without: str = "") -> str:
    names = {key for row in rows for key in json.loads(row["parameters"])} - {without}
    return listed([parameter_name(name) for name in sorted(names)]) or "parameters"


def _spread(row: Row, metric: Metric) -> Point:
    """A mean with its interval, in the metric's unit; one seed has none."""
    mean = row["mean"]
    ends = (row[end] if row["runs"] > 1 and math.isfinite(row[end]) else mean for end in ("low", "high"))
    mean, low, high = (value / metric.per_unit for value in (mean, *ends))
    return {"y": mean, "low": low, "high": high, "shown": interval(mean, (high - low) / 2, percent=metric.share)}


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
