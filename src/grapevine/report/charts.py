"""Vega-Lite charts of prepared points. Colours are CSS variables, so charts follow the page's light or dark mode."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from grapevine.report.apart import LABEL_GAP, moved_apart
from grapevine.report.axes import Point, XAxis, YAxis
from grapevine.report.looks import CROSS, Line

INK, MUTED, GRID, CARD = "var(--ink)", "var(--muted)", "var(--grid)", "var(--card)"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"
HEIGHT, PANEL_HEIGHT = 300, 220
LETTER = 6.4  # the width of one in a label, in the mean; to be exact would take a browser


def draw(
    points: Sequence[Point],
    claims: Sequence[Point],
    lines: Sequence[Line],
    x: XAxis,
    y: YAxis,
    *,
    description: str,
    height: int,
) -> dict[str, Any]:
    """The specification of one chart: lines with markers, bands between low and high, rules, claimed values.

    Where a line ends at the right edge, its name stands beside it; page.js leaves these names out where there is no
    room for them.
    """
    data: dict[str, list[Point]] = {
        "points": [point for point in points if "x" in point],
        "levels": [point for point in points if "x" not in point],
        "claims": [claim for claim in claims if "x" in claim],
        "claimed levels": [claim for claim in claims if "x" not in claim],
        "labels": _labels(points, lines, x, y, height),
    }
    layers = [layer for name, make in _LAYERS.items() if data[name] for layer in make(data[name], lines, x, y)]
    return finished(
        layers,
        data,
        title=y.title,
        description=description,
        height=height,
        left=32 if _angle(x) else 2,  # Vega cuts off what leans out on the left
        label_room=round(LETTER * max((len(label["line"]) for label in data["labels"]), default=0)) + 24,
    )


def finished(
    layers: Sequence[alt.Chart],
    data: Mapping[str, list[Point]],
    *,
    title: str,
    description: str,
    height: int,
    left: int = 2,
    label_room: int = 0,
) -> dict[str, Any]:
    """Layers over named data as a specification that the page can draw; `title` names the y axis.

    `label_room` are the pixels that the layers called `label …`, if there are any, take from the chart's width.
    """
    chart = alt.layer(
        *layers,
        width="container",
        height=height,
        description=description,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        # The y axis' name above it, so that it is read without turning the head.
        title=alt.TitleParams(text=title, anchor="start", frame="bounds"),
        config=config(left=left),
    )
    spec: dict[str, Any] = chart.to_dict()
    del spec["$schema"]  # an address that nobody is to visit
    if data.get("labels"):
        spec["usermeta"] = {"labelRoom": label_room}
    # Beside the layers, so that they share it, and after Altair's checks, which take long for many points.
    return spec | {"datasets": {name: rows for name, rows in data.items() if rows}}


def _draw_points(points: list[Point], lines: Sequence[Line], x: XAxis, y: YAxis) -> list[alt.Chart]:
    base = chart_of("points").encode(x=_x(x), color=_colour(lines), detail="line:N")
    if not x.connected and x.shared:  # side by side, so that whiskers do not hide each other
        base = base.encode(xOffset=alt.XOffset("line:N", scale=alt.Scale(domain=[line.label for line in lines])))
    shape = alt.Shape("line:N", scale=_scale(lines, [line.shape for line in lines]), legend=None)
    tips = [
        alt.Tooltip("line:N", title="series"),
        alt.Tooltip("at:N", title=x.title or " "),
        alt.Tooltip("shown:N", title=y.title),
    ]
    markers = base.mark_point(filled=True, size=56, opacity=1, stroke=CARD, strokeWidth=1)
    layers = [markers.encode(y=_y(y), shape=shape, tooltip=tips).transform_filter(alt.datum.mark)]
    if x.connected:
        layers.insert(0, base.mark_line(strokeWidth=2).encode(y=_y(y), strokeDash=_dash(lines)))
    return _draw_spreads(points, base, x, y) + layers


def _draw_spreads(points: list[Point], base: alt.Chart, x: XAxis, y: YAxis) -> list[alt.Chart]:
    """Confidence intervals: a band along a line, a whisker where there is no line for it to follow."""
    lengths, uncertain = Counter(point["line"] for point in points), [p for p in points if p["high"] > p["low"]]
    banded = {point["line"] for point in uncertain if x.connected and lengths[point["line"]] > 1}
    others = {point["line"] for point in uncertain} - banded
    layers = []
    for names, layer in (
        (banded, base.mark_area(opacity=0.16, clip=True)),
        (others, base.mark_rule(opacity=0.7, strokeWidth=1.5, clip=True)),
    ):
        if names:
            chosen = layer.transform_filter(alt.FieldOneOfPredicate(field="line", oneOf=sorted(names)))
            layers.append(chosen.encode(y=_y(y, "low"), y2="high:Q"))
    return layers


def _draw_levels(points: list[Point], lines: Sequence[Line], x: XAxis, y: YAxis) -> list[alt.Chart]:
    """Series without a value on x: the same everywhere along it."""
    base = chart_of("levels").encode(color=_colour(lines))
    tips = [alt.Tooltip("line:N", title="series"), alt.Tooltip("shown:N", title=y.title)]
    band = base.mark_rect(opacity=0.12, clip=True).encode(y=_y(y, "low"), y2="high:Q")
    return [band, base.mark_rule(strokeWidth=2).encode(y=_y(y), strokeDash=_dash(lines), tooltip=tips)]


def _draw_claims(claims: list[Point], lines: Sequence[Line], x: XAxis, y: YAxis) -> list[alt.Chart]:
    """Crosses with the number that the legend explains: words would lie over the lines, and over each other."""
    base = chart_of("claims").encode(x=_x(x), y=_y(y))
    crosses = base.mark_point(shape=CROSS, size=90, stroke=INK, strokeWidth=2.2, opacity=1)
    sides = []
    if not all(claim["left"] for claim in claims):
        sides.append(base.mark_text(dx=8, align="left").transform_filter("!datum.left"))
    if any(claim["left"] for claim in claims):  # a layer without rows makes Vega warn
        sides.append(base.mark_text(dx=-8, align="right").transform_filter(alt.datum.left))
    tip = alt.Tooltip("shown:N", title="claimed")
    return [crosses.encode(tooltip=tip), *(side.encode(text=alt.Text("number:N")) for side in sides)]


def _draw_claimed_levels(claims: list[Point], lines: Sequence[Line], x: XAxis, y: YAxis) -> list[alt.Chart]:
    base = chart_of("claimed levels").encode(y=_y(y))
    rule = base.mark_rule(color=INK, strokeWidth=1.5, strokeDash=[2, 3])
    label = base.mark_text(dx=-4, dy=-7, align="right").encode(x=alt.value("width"), text=alt.Text("number:N"))
    return [rule.encode(tooltip=alt.Tooltip("shown:N", title="claimed")), label]


def _labels(points: Sequence[Point], lines: Sequence[Line], x: XAxis, y: YAxis, height: int) -> list[Point]:
    """The names of the lines that reach the right edge, each where its line ends, or next to it; of one line none."""
    if not x.connected or len(lines) < 2:
        return []
    last = max((point["x"] for point in points if "x" in point), key=x.place, default=None)
    edge = {} if last is None else {"x": last}
    ends = [{"line": point["line"], "y": point["y"]} | edge for point in points if point.get("x", last) == last]
    places = moved_apart([y.pixel(end["y"], height) for end in ends], LABEL_GAP)
    return [end | {"at": y.value(place, height)} for end, place in zip(ends, places, strict=True)]


def _draw_labels(labels: list[Point], lines: Sequence[Line], x: XAxis, y: YAxis) -> list[alt.Chart]:
    """Each name with a stroke that leads to it from the end of its line."""
    base, edge = chart_of("labels"), alt.value("width")
    lead = base.mark_rule(strokeWidth=1, xOffset=5, x2Offset=8).properties(name="label strokes")
    name = base.mark_text(align="left", dx=12, fontWeight="normal").properties(name="label names")
    begin = _x(x) if "x" in labels[0] else edge
    strokes = lead.encode(x=begin, x2=edge, y=_y(y), y2="at:Q", color=_colour(lines))
    return [strokes, name.encode(x=edge, y=_y(y, "at"), text="line:N")]


# What is drawn later lies above.
_LAYERS = {
    "levels": _draw_levels,
    "points": _draw_points,
    "claimed levels": _draw_claimed_levels,
    "claims": _draw_claims,
    "labels": _draw_labels,
}


def chart_of(dataset: str) -> alt.Chart:
    """A layer over one of the chart's named sets of data."""
    return alt.Chart(alt.NamedData(name=dataset))


def _x(x: XAxis) -> alt.X:
    if x.categories is not None:
        settings: dict[str, Any] = {
            "labelAngle": _angle(x),
            "labelOverlap": _angle(x) == 0,
            "labelLimit": 100 if x.shared else 160,
        }
        axis = alt.Axis(title=x.title or None, grid=False, **settings)
        kind: dict[str, Any] = {"type": "point", "padding": 0.5} if x.connected else {"type": "band", "padding": 0.3}
        return alt.X("x:O", axis=axis, scale=alt.Scale(**kind), sort=list(x.categories))
    settings = {"values": list(x.ticks)} if x.ticks else {}
    settings |= {"format": "%"} if x.percent else {}
    axis = alt.Axis(title=x.title, grid=False, labelOverlap=True, tickCount=8, **settings)
    kind = {"type": "log"} if x.log else {"zero": False}
    return alt.X("x:Q", axis=axis, scale=alt.Scale(nice=False, padding=14, **kind))


def _angle(x: XAxis) -> int:
    """Long names of categories lean, so that they do not run into each other."""
    long = sum(len(str(name)) + 2 for name in x.categories or ()) >= 50
    return -35 if long else 0


def _y(y: YAxis, field: str = "y") -> alt.Y:
    settings: dict[str, Any] = {"format": "%"} if y.percent else {}
    if y.log:  # a line for every power of ten, or for each doubling where there are few
        first, last = math.floor(math.log10(y.domain[0])), math.ceil(math.log10(y.domain[1]))
        steps = (1,) if last - first > 2 else (1, 2, 5)
        values = [float(f"{step * 10.0**k:.3g}") for k in range(first, last + 1) for step in steps]
        settings["values"] = [value for value in values if y.domain[0] <= value <= y.domain[1]]
    axis = alt.Axis(title=None, tickCount=5, domain=False, ticks=False, **settings)
    scale = alt.Scale(type="log") if y.log else alt.Scale(zero=False)
    scale.domain, scale.nice = list(y.domain), False
    return alt.Y(f"{field}:Q", axis=axis, scale=scale)


def _scale(lines: Sequence[Line], range: list[Any]) -> alt.Scale:
    return alt.Scale(domain=[line.label for line in lines], range=range)


def _colour(lines: Sequence[Line]) -> alt.Color:
    return alt.Color("line:N", scale=_scale(lines, [line.colour for line in lines]), legend=None)


def _dash(lines: Sequence[Line]) -> alt.StrokeDash:
    return alt.StrokeDash("line:N", scale=_scale(lines, [list(line.dash) or [1, 0] for line in lines]), legend=None)


def config(*, left: int) -> alt.Config:
    """How every chart of a page looks; `left` is the room for what leans out there."""
    axis = {"labelColor": MUTED, "titleColor": INK, "gridColor": GRID, "domainColor": MUTED, "tickColor": MUTED}
    fonts = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    made: dict[str, Any] = {
        "background": "transparent",
        "font": FONT,
        "padding": {"left": left, "right": 18, "top": 4, "bottom": 2},
        "view": {"stroke": None},
        "axis": axis | fonts | {"titlePadding": 10, "labelPadding": 6},
        "title": {"color": INK, "fontSize": 12, "fontWeight": "normal", "offset": 10},
        "text": {"fontSize": 12, "fontWeight": "bold", "color": INK},
    }
    return alt.Config(**made)
