"""Distributions as bars: a row for each series, one below the other, so that none hides another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from grapevine.model.numbers import number
from grapevine.report.axes import round_ends, round_step
from grapevine.report.charts import CARD, chart_of, finished
from grapevine.report.looks import Key, Line
from grapevine.report.points import PlotData

ROW_HEIGHT = 66
MOST_BINS = 40
MOST_LINEAR = 300  # a wider range gets bins that double
_BARS = 0.7  # of a row's height; its label has the rest
Shares = Mapping[float, float]  # by value, or by the lower end of its step


@dataclass(frozen=True, slots=True)
class Bins:
    """Where bars begin and end along x.

    `edges` are values, one more than there are bins; the last value of all lies below the last edge. With `doubling`
    each is drawn at its number, so that bins are equally wide.
    """

    edges: tuple[float, ...]
    whole: bool  # values are whole numbers
    percent: bool
    doubling: bool = False

    def shares(self, shares: Shares) -> list[float]:
        """What falls into each bin, by the values that do."""
        found = [0.0] * (len(self.edges) - 1)
        for at, share in shares.items():
            found[max(i for i, edge in enumerate(self.edges[:-1]) if edge <= at + 1e-9)] += share
        return found

    def place(self, i: int) -> float:
        """Where an edge is drawn; a bar of one whole number stands over it."""
        if self.doubling:
            return float(i)
        return self.edges[i] - 0.5 if self.whole and self.edges[1] - self.edges[0] == 1 else self.edges[i]

    def name(self, i: int) -> str:
        """A bin as a person reads it."""
        low, high = self.edges[i], self.edges[i + 1] - (1 if self.whole else 0)
        ends = [f"{end:.4g}" if not self.percent else f"{end:.0%}" for end in (low, high)]
        if self.whole:
            ends = [number(low), number(high)]
        return ends[0] if low == high else " to ".join(ends)


def bins_of(values: Sequence[float], *, step: float | None, percent: bool) -> Bins:
    """Bins for all these values: the steps in which they were counted, else so few that each can be seen."""
    if step:
        return Bins(tuple(round(i * step, 9) for i in range(round(1 / step) + 1)), whole=False, percent=percent)
    whole, low, high = all(float(value).is_integer() for value in values), min(values), max(values)
    if whole and low >= 0 and high - low > MOST_LINEAR:
        return Bins((0.0, *(2.0**i for i in range(int(high).bit_length() + 1))), whole, percent, doubling=True)
    width = round_step((high - low) / MOST_BINS) if high > low else 1.0
    while (high - low) / width >= MOST_BINS:
        width = round_step(2 * width)
    width = max(width, 1.0) if whole else width
    first, last = math.floor(low / width), math.floor(high / width) + 1
    return Bins(tuple(round(i * width, 9) for i in range(first, last + 1)), whole, percent)


def shares_by_series(data: PlotData) -> dict[Key, dict[float, float]]:
    """The shares of a distribution, by series and value."""
    found: dict[Key, dict[float, float]] = {}
    for key, point in data.points:
        found.setdefault(key, {})[point["x"]] = point["y"]
    return found


def draw_histograms(
    rows: Sequence[tuple[Line, list[float]]], bins: Bins, most: float, data: PlotData, *, description: str
) -> dict[str, Any]:
    """The specification of one chart: bars of each series in a row of its own, in this order from above.

    `most` is the share that is as high as a row; it is the same in all panels of a figure.
    """
    bars, labels = [], []
    for i, (line, shares) in enumerate(rows):
        base = len(rows) - 1 - i
        labels.append({"line": line.label, "y": base + _BARS + 8 / ROW_HEIGHT})
        for k, share in enumerate(shares):
            if share > 0:
                ends = {"x": bins.place(k), "x2": bins.place(k + 1), "y": base, "y2": base + _BARS * share / most}
                told = {"at": bins.name(k), "shown": number(share, percent=True)}
                bars.append({"line": line.label} | {end: float(f"{at:.6g}") for end, at in ends.items()} | told)
    x, y = _x(bins, data), _y(len(rows), most)
    lines = [line for line, _ in rows]
    scale = alt.Scale(domain=[line.label for line in lines], range=[line.colour for line in lines])
    tips = [
        alt.Tooltip("line:N", title="series"),
        alt.Tooltip("at:N", title=data.x.title),
        alt.Tooltip("shown:N", title=data.y_title),
    ]
    drawn = chart_of("bars").mark_rect(stroke=CARD, strokeWidth=0.5)
    drawn = drawn.encode(x=x, x2="x2", y=y, y2="y2", color=alt.Color("line:N", scale=scale, legend=None), tooltip=tips)
    named = chart_of("rows").mark_text(align="left", fontWeight="normal", dx=4)
    layers = [drawn, named.encode(x=alt.value(0), y=y, text="line:N")]
    return finished(
        layers,
        {"bars": bars, "rows": labels},
        title=data.y_title,
        description=description,
        height=ROW_HEIGHT * len(rows),
    )


def highest(shares: Sequence[Sequence[float]]) -> float:
    """The share that rows are high enough for: the largest of all, rounded up."""
    return min(1.0, round_ends(0.0, max(max(found) for found in shares))[1])


def _x(bins: Bins, data: PlotData) -> alt.X:
    last = len(bins.edges) - 1
    settings: dict[str, Any] = {"tickCount": 8}
    if bins.doubling:
        settings = {
            "values": list(range(last + 1)),
            "labelExpr": "datum.value == 0 ? '0' : format(pow(2, datum.value - 1), ',')",
        }
    elif bins.percent:
        settings = {"values": [0, 0.25, 0.5, 0.75, 1], "format": "%"}
    elif bins.whole:
        settings["tickMinStep"] = 1
    axis = alt.Axis(title=data.x.title, grid=False, labelOverlap=True, **settings)
    ends = [bins.place(0), bins.place(last)]
    return alt.X("x:Q", axis=axis, scale=alt.Scale(domain=ends, nice=False, zero=False))


def _y(rows: int, most: float) -> alt.Y:
    """Each row from nothing to the highest share."""
    values = [base + end for base in range(rows) for end in (0, _BARS)]
    label = f"datum.value % 1 ? '{100 * most:.4g}%' : '0%'"
    axis = alt.Axis(title=None, values=values, labelExpr=label, domain=False, ticks=False)
    return alt.Y("y:Q", axis=axis, scale=alt.Scale(domain=[0, rows], nice=False))
