"""One run as a picture: how it went, how many neighbours nodes have, and what they had to receive.

The only module below `report` that draws; `Simulation.plot` imports it when a picture is asked for.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grapevine.metrics.structure import DEGREE
from grapevine.metrics.traffic import HIT_RATIO, OVERHEAD, RECEIVED

if TYPE_CHECKING:
    from grapevine.sim.result import Simulation

# Okabe & Ito: told apart with every kind of colour vision.
_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#999999"
_LOADS = dict(zip(RECEIVED, (_BLUE, _GREY, _ORANGE), strict=True))
_MOST_BARS = 40  # of degrees; more of them are taken together
_MOST_NODES = 400  # that are drawn one by one; more of them are taken together
STYLE: dict[Any, Any] = {  # of all pictures by matplotlib
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "font.size": 10,
}


class Picture(Figure):
    """A figure that notebooks show, whether or not they use pyplot."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=110)
        return content.getvalue()


def draw(run: Simulation) -> Picture:
    """The picture of a run. Nothing is shown or stored, and no display is needed."""
    with mpl.rc_context(STYLE):
        figure = Picture(figsize=(13, 4.2), layout="constrained")
        course, degrees, load = figure.subplots(1, 3)
        _draw_course(course, run)
        _draw_degrees(degrees, run)
        _draw_load(load, run)
        figure.suptitle(f"{run.system} on {run.workload}, seed {run.seed}")
    return figure


def _draw_course(axes: Axes, run: Simulation) -> None:
    rounds = run.rounds["round"].to_numpy()
    for metric, colour, marker in ((HIT_RATIO, _GREEN, "o"), (OVERHEAD, _ORANGE, "s")):
        shares = np.array(run.rounds[metric.name].to_pylist(), np.float64)
        known = "" if np.isfinite(shares).any() else " (not measured on the way)"
        axes.plot(rounds, 100 * shares, color=colour, marker=marker, markersize=3, label=metric.label + known)
    axes.set(
        title="The run as it went",
        xlabel="virtual time, s" if run.driver == "peers" else "round",
        ylabel="%",
        ylim=(0, 102),
    )
    axes.legend(frameon=False)


def _draw_degrees(axes: Axes, run: Simulation) -> None:
    degrees = run.nodes["degree"].to_numpy()[run.nodes["online"].to_numpy(zero_copy_only=False)]
    span = int(degrees.max()) + 1 if len(degrees) else 1
    width = -(-span // _MOST_BARS)
    counts = np.bincount(degrees // width, minlength=1)
    axes.bar(np.arange(len(counts)) * width + (width - 1) / 2, counts, width=0.9 * width, color=_BLUE)
    together = f"neighbours, {width} numbers a bar" if width > 1 else "neighbours"
    mean = DEGREE.shown(run.summary.get(DEGREE.name))
    axes.set(title=f"Degrees, {mean} in the mean", xlabel=together, ylabel="nodes")


def _draw_load(axes: Axes, run: Simulation) -> None:
    """What nodes received, the most burdened first, as shares of all nodes, so that large networks fit."""
    received = np.stack([run.nodes[kind].to_numpy() for kind in RECEIVED])
    ordered = received[:, np.argsort(-received.sum(axis=0), kind="stable")]
    groups = np.array_split(np.arange(ordered.shape[1]), max(1, min(ordered.shape[1], _MOST_NODES)))
    means = np.array([ordered[:, group].mean(axis=1) for group in groups if len(group)]).reshape(-1, len(RECEIVED))
    place = 100 * (np.arange(len(means)) + 0.5) / max(len(means), 1)
    axes.stackplot(place, *means.T, labels=list(RECEIVED), colors=list(_LOADS.values()))
    axes.set(
        title="Load of nodes", xlabel="nodes, the most burdened first, %", ylabel="notifications a node", xlim=(0, 100)
    )
    axes.legend(frameon=False)
