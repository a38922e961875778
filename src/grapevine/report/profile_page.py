"""The picture of a profile: both degree distributions with their fits, and how far a few friends cover one's topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grapevine.model import tables
from grapevine.model.manifest import read_manifest
from grapevine.model.store import read_table
from grapevine.sim.picture import STYLE

# Okabe & Ito: told apart with every kind of colour vision; markers differ too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FILES = ("profile.png", "profile.svg")

_STYLE = STYLE | {"svg.hashsalt": "grapevine"}  # the same profile gives the same file


def draw_profile(folder: Path) -> list[Path]:
    """Draw the stored profile as PNG and SVG into its folder; returns the files."""
    read_manifest(folder, "profile")
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(13, 4.2), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        _draw_degrees(left, folder, "subscriptions", "Subscriptions per subscriber")
        _draw_degrees(middle, folder, "subscribers", "Subscribers per topic")
        _draw_coverage(right, folder)
        left.legend(loc="lower left", frameon=False)
        files = [folder / name for name in FILES]
        for file in files:
            figure.savefig(file, dpi=110, metadata={"Date": None} if file.suffix == ".svg" else None)
    return files


def _draw_degrees(axes: Axes, folder: Path, degree: str, title: str) -> None:
    ccdf, statistics = (
        [row for row in read_table(folder, table).to_pylist() if row["degree"] == degree]
        for table in (tables.DEGREE_CCDF, tables.DEGREE_STATISTICS)
    )
    for i, row in enumerate(statistics):
        points = [(p["value"], p["ccdf"]) for p in ccdf if p["workload"] == row["workload"]]
        style: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
        axes.plot(*zip(*points, strict=True), **style, linestyle="none", markersize=3, label=row["workload"])
        if row["exponent"] is not None and row["maximum"] > row["tail_start"]:
            ends = row["tail_start"], row["maximum"]
            fitted = [row["tail_share"] * (x / ends[0]) ** (1 - row["exponent"]) for x in ends]
            axes.plot(ends, fitted, color=style["color"], linewidth=1, linestyle="--")
    axes.set(xscale="log", yscale="log", title=title, xlabel=degree, ylabel="share with at least as many")
    axes.set_ylim(top=1.5)


def _draw_coverage(axes: Axes, folder: Path) -> None:
    rows = read_table(folder, tables.INTEREST_COVERAGE).to_pylist()
    names = dict.fromkeys(row["workload"] for row in read_table(folder, tables.DEGREE_STATISTICS).to_pylist())
    for i, name in enumerate(names):
        points = [(row["friends"], 100 * row["complete"]) for row in rows if row["workload"] == name]
        if points:
            axes.plot(*zip(*points, strict=True), color=COLOURS[i % len(COLOURS)], marker=MARKERS[i % len(MARKERS)])
    axes.set(
        title="Interest locality",
        xlabel="best friends",
        ylabel="subscribers fully covered, %",
        ylim=(0, 102),
        xticks=range(1, 11),
    )
