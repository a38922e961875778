"""A plot of an experiment's description as a figure: how its lines look, in how many panels, and what to say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from grapevine.model.card import counted
from grapevine.model.numbers import number
from grapevine.report import charts
from grapevine.report.apart import side_by_side
from grapevine.report.axes import Point, y_axis
from grapevine.report.conclusions import conclude
from grapevine.report.histograms import bins_of, draw_histograms, highest, shares_by_series
from grapevine.report.looks import DIMENSIONS, Key, Line, Looks, natural
from grapevine.report.points import PlotData, Row, gather
from grapevine.report.words import listed, sentence, value_name

MOST_LINES = 8  # in one panel; more of them nobody can follow
MOST_PANELS = 9
Groups = list[tuple[str, list[Key]]]  # the panels: heading, and the series in it


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of a figure; a figure with many series has several."""

    heading: str
    spec: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, ready to be shown; without panels there is nothing to draw yet."""

    title: str
    explanation: str  # what is drawn
    conclusion: str = ""  # what it shows
    lines: list[Line] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)  # what papers report, in the order of the crosses' numbers
    panels: list[Panel] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)  # the data, for whoever wants to draw it differently
    joined: bool = True  # the points of a series, by a line


def make_figure(plot: dict[str, Any], tables: dict[str, list[Row]], looks: Looks) -> Figure:
    """The figure of one plot."""
    data = gather(plot, tables, looks)
    title = plot.get("title") or sentence(data.y_title)
    if not data.points:
        return Figure(title, "No finished run has these values.")
    split, groups = _panels(list(dict.fromkeys(key for key, _ in data.points)), looks)
    flat: dict[Key, bool] = {}
    for key, point in data.points:
        flat[key] = flat.get(key, True) and "x" not in point
    lines = looks.lines(flat, split, joined=data.x.connected)
    draw = _histograms if data.kind == "distribution" else _charts
    panels, notes = draw(title, data, groups, lines, log_y=bool(plot.get("log_y")))
    return Figure(
        title,
        " ".join([_explain(data, lines, split), *notes]),
        conclude(data),
        list(lines.values()),
        [_claim(claim, data) for claim in data.claimed],
        panels,
        data.rows,
        data.x.connected,
    )


def _charts(
    title: str, data: PlotData, groups: Groups, lines: dict[Key, Line], *, log_y: bool
) -> tuple[list[Panel], list[str]]:
    """Panels of lines, or of marks, and what is to be said of how they are drawn."""
    points = [point for _, point in data.points]
    y = y_axis(data.y_title, points, percent=data.percent, more=[claim["y"] for claim in data.claimed], log=log_y)
    crosses, height = _crosses(data), charts.HEIGHT if len(groups) == 1 else charts.PANEL_HEIGHT
    panels, moved = [], False
    for heading, keys in groups:
        shown = {key: lines[key] for key in keys}
        series = {
            line.label: [dict(point) for other, point in data.points if other == key] for key, line in shown.items()
        }
        if y.log:  # an interval may reach to 0 and below, which no such axis has
            for point in (point for found in series.values() for point in found):
                point["low"] = max(point["low"], y.domain[0])
        x = data.x
        if x.connected:
            moved |= side_by_side(series, x, y, height)
        elif not x.shared:  # under the names that the panel has for them
            x = replace(x, categories=tuple(series))
            for label, found in series.items():
                found[0]["x"] = label
        drawn = [_lean(point, label) for label, found in series.items() for point in found]
        about = _about(title, heading, shown)
        spec = charts.draw(drawn, crosses, list(shown.values()), x, y, description=about, height=height)
        panels.append(Panel(heading, spec))
    return panels, ["Lines that would hide each other lie side by side."] if moved else []


def _histograms(
    title: str, data: PlotData, groups: Groups, lines: dict[Key, Line], *, log_y: bool
) -> tuple[list[Panel], list[str]]:
    """Panels of bars, and what is to be said of how they are drawn."""
    bins = bins_of([point["x"] for _, point in data.points], step=data.step, percent=data.x.percent)
    shares = {key: bins.shares(found) for key, found in shares_by_series(data).items()}
    most = highest(list(shares.values()))
    panels = []
    for heading, keys in groups:
        rows = [(lines[key], shares[key]) for key in keys]
        about = _about(title, heading, {key: lines[key] for key in keys})
        panels.append(Panel(heading, draw_histograms(rows, bins, most, data, description=about)))
    return panels, ["Each bar spans twice the range of the one before."] if bins.doubling else []


def _about(title: str, heading: str, shown: dict[Key, Line]) -> str:
    """What a screen reader says of a chart."""
    return f"{title}{', ' if heading else ''}{heading}: {listed([line.label for line in shown.values()])}"


def plotted_measures(plots: Iterable[dict[str, Any]]) -> list[str]:
    """The names of the measures that plots show, each once."""
    return list(dict.fromkeys(plot["y"] for plot in plots if "y" in plot))


def _panels(keys: list[Key], looks: Looks) -> tuple[str, Groups]:
    """One panel, or one for each value of what divides too many lines best; with the name of that.

    Systems are what a figure compares, so they are kept together if anything else divides the lines. Series
    without the parameters that divide the others, such as a baseline, are shown in every panel.
    """
    keys = sorted(keys, key=looks.rank)
    if len(keys) <= MOST_LINES:
        return "", [("", keys)]
    splits = []
    for part in range(3):
        groups: dict[str, list[Key]] = {}
        for key in keys:
            groups.setdefault(key[part], []).append(key)
        everywhere = groups.pop("", []) if len(groups) > 1 else []
        most = max(len(group) for group in groups.values()) + len(everywhere)
        cost = most > MOST_LINES, len(groups) > MOST_PANELS, part == 0, most if most > MOST_LINES else len(groups)
        panels = [(name, sorted(group + everywhere, key=looks.rank)) for name, group in groups.items()]
        splits.append((cost, part, panels))
    _, part, panels = min(splits, key=lambda split: split[:2])
    if part == 2:
        panels.sort(key=lambda panel: natural(panel[0]))
    return DIMENSIONS[part], panels


def _lean(point: Point, label: str) -> Point:
    """As it goes into the page: six digits are more than a screen shows, and only markers have a tooltip."""
    kept = {name: float(f"{value:.6g}") if name in ("y", "low", "high") else value for name, value in point.items()}
    if not point["mark"]:
        del kept["shown"]
    elif "x" in point:
        kept.setdefault("at", value_name(point["x"]))
    return kept | {"line": label}


def _claim(claim: Row, data: PlotData) -> str:
    place = f" at {value_name(claim['x'])}" if claim.get("x") is not None else ""
    value = f"{100 * claim['y']:.4g}%" if data.percent else number(claim["y"])
    return f"{claim.get('label') or 'paper'}: {value}{place}"


def _crosses(data: PlotData) -> list[Point]:
    """Claimed values as the chart takes them; numbers of those at the same x stand right and left in turn."""
    crosses, sides = [], Counter[Any]()
    for i, claim in sorted(enumerate(data.claimed, start=1), key=lambda pair: pair[1]["y"]):
        place = claim.get("x")
        if place is not None and data.x.categories is None and not isinstance(place, int | float):
            continue  # the legend still names it
        cross = {"y": claim["y"], "number": str(i), "shown": _claim(claim, data), "left": sides[place] % 2 == 1}
        sides[place] += 1
        if place is not None:
            cross["x"] = value_name(place) if data.x.categories is not None else place
        crosses.append(cross)
    return crosses


def _explain(data: PlotData, lines: dict[Key, Line], split: str) -> str:
    """A sentence or two that follow from the axes alone."""
    names = "system", "workload", data.grid
    varying = [
        name for part, name in enumerate(names) if DIMENSIONS[part] != split and len({key[part] for key in lines}) > 1
    ]
    text = data.sight
    mark = "row" if data.kind == "distribution" else "line" if data.x.connected else "mark"
    if varying:
        text += f", one {mark} per {listed(varying)}"
    if data.seeds > 1:
        text += f": the mean over {counted(data.seeds, 'seed')} and its 95% confidence interval"
    sentences = [text]
    if split:
        sentences.append(f"One panel per {names[DIMENSIONS.index(split)]}")
    if data.x.title and any(line.flat for line in lines.values()):
        sentences.append(f"Horizontal lines are runs that have no {data.x.title}")
    if data.claimed:
        sentences.append("Numbered crosses are values that the paper reports")
    return ". ".join(sentences) + "."
