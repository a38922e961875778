"""A plot of an experiment's description as a figure: how its lines look, in how many panels, and what to say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from grapevine.metrics.numbers import number
from grapevine.report import charts
from grapevine.report.charts import Point
from grapevine.report.looks import Key, Line, Looks, natural
from grapevine.report.points import PlotData, Row, gather
from grapevine.report.words import count, listed, sentence, value_name

MOST_LINES = 8  # in one panel; more of them nobody can follow
MOST_PANELS = 9
DIMENSIONS = "system", "workload", "parameters"


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of a figure; a figure with many series has several."""

    heading: str
    spec: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, ready to be shown; without panels there is nothing to draw yet."""

    title: str
    explanation: str
    lines: list[Line] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)  # what papers report, in the order of the crosses' numbers
    panels: list[Panel] = field(default_factory=list)
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
        short = _without(key, split)
        flat[short] = flat.get(short, True) and "x" not in point
    lines = looks.lines(flat)
    y = charts.y_axis(
        data.y_title,
        [point for _, point in data.points],
        percent=data.percent,
        more=[claim["y"] for claim in data.claimed],
        log=bool(plot.get("log_y")),
    )
    crosses, height = _crosses(data), charts.PANEL_HEIGHT if split else charts.HEIGHT
    panels = []
    for heading, keys in groups:
        # In the order of the legend: dashed lines come later, and show what they lie on.
        shown = {key: lines[_without(key, split)] for key in sorted(keys, key=looks.rank)}
        points = [_lean(point, shown[key]) for key in shown for other, point in data.points if other == key]
        about = f"{title}{', ' if heading else ''}{heading}: {listed([line.label for line in shown.values()])}"
        spec = charts.draw(points, crosses, list(shown.values()), data.x, y, description=about, height=height)
        panels.append(Panel(heading, spec))
    claims = [_claim(claim, data) for claim in data.claimed]
    return Figure(title, _explain(data, lines, split), list(lines.values()), claims, panels, data.x.connected)


def plotted_measures(plots: Iterable[dict[str, Any]]) -> list[str]:
    """The names of the measures that plots show, each once."""
    return list(dict.fromkeys(plot["y"] for plot in plots if "y" in plot))


def _panels(keys: list[Key], looks: Looks) -> tuple[str, list[tuple[str, list[Key]]]]:
    """One panel, or one for each value of what divides too many lines best; with the name of that.

    Systems are what a figure compares, so they are kept together if anything else divides the lines. Series
    without the parameters that divide the others, such as a baseline, are shown in every panel.
    """
    if len(keys) <= MOST_LINES:
        return "", [("", keys)]
    splits = []
    for part in range(3):
        groups: dict[str, list[Key]] = {}
        for key in sorted(keys, key=looks.rank):
            groups.setdefault(key[part], []).append(key)
        everywhere = groups.pop("", []) if len(groups) > 1 else []
        most = max(len(group) for group in groups.values()) + len(everywhere)
        cost = most > MOST_LINES, len(groups) > MOST_PANELS, part == 0, most if most > MOST_LINES else len(groups)
        splits.append((cost, part, [(name, group + everywhere) for name, group in groups.items()]))
    _, part, panels = min(splits, key=lambda split: split[:2])
    if part == 2:
        panels.sort(key=lambda panel: natural(panel[0]))
    return DIMENSIONS[part], panels


def _without(key: Key, split: str) -> Key:
    """What tells the lines inside a panel apart."""
    system, workload, parameters = ("" if name == split else part for name, part in zip(DIMENSIONS, key, strict=True))
    return system, workload, parameters


def _lean(point: Point, line: Line) -> Point:
    """As it goes into the page: six digits are more than a screen shows, and only markers have a tooltip."""
    kept = {name: float(f"{value:.6g}") if name in ("y", "low", "high") else value for name, value in point.items()}
    if not point["mark"]:
        del kept["shown"]
    elif "x" in point:
        kept.setdefault("at", value_name(point["x"]))
    return kept | {"line": line.label}


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
    varying = [name for part, name in enumerate(names) if len({key[part] for key in lines}) > 1]
    text = data.sight
    if varying:
        text += f", one {'line' if data.x.connected else 'mark'} per {listed(varying)}"
    if data.seeds > 1:
        text += f": the mean over {count(data.seeds, 'seed')} and its 95% confidence interval"
    sentences = [text]
    if split:
        sentences.append(f"One panel per {names[DIMENSIONS.index(split)]}")
    if data.x.title and any(line.flat for line in lines.values()):
        sentences.append(f"Horizontal lines are runs that have no {data.x.title}")
    if data.claimed:
        sentences.append("Numbered crosses are values that the paper reports")
    return ". ".join(sentences) + "."
