"""The progress of a simulation as people see it: a line that moves on a terminal and in a notebook, lines on a pipe.

The clock goes on until the run is over, also while it compiles or measures, when there is nothing to count.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from grapevine.metrics.findings import RING, UTILITY
from grapevine.metrics.structure import DEGREE
from grapevine.metrics.traffic import HIT_RATIO
from grapevine.sim.progress import COMPILING, MEASURING, Extent, Progress, in_notebook

REFRESH_S = 0.5  # between two pictures of the line in a notebook
_LINES = 8  # on a pipe, beside the first and the last
_WIDTH = 140  # characters of the line in a notebook
_BAR = 20  # characters of the bar
_CLOCK = 7  # characters of the clock, 0:00:00


@contextmanager
def shown_progress(extent: Extent, console: Console | None = None) -> Iterator[Progress]:
    """A watcher whose display is there while the block runs: in the notebook, or else on this console (default: the
    error stream)."""
    console = console or Console(stderr=True, highlight=False)
    if in_notebook():
        with _in_notebook(extent) as tell:
            yield tell
    elif console.is_terminal:
        with _columns(console) as bar:
            line = _Line(bar, extent, lambda sentence: console.print(sentence, soft_wrap=True))
            yield line.tell
            line.end()
    else:
        yield _Lines(extent, console).tell


def describe(row: dict[str, Any]) -> str:
    """A row of the table `rounds` in words: who is there, and how things stand."""
    known = [(metric, row[metric.name]) for metric in (RING, UTILITY, HIT_RATIO) if row.get(metric.name) is not None]
    parts = [f"{metric.label} {metric.shown(value)}" for metric, value in known]
    if row.get(DEGREE.name) is not None:
        parts.append(f"{row[DEGREE.name]:.1f} neighbours each")
    if row.get("joined") and row["joined"] != row["online"]:
        parts.append(f"{row['joined']:,} joined")
    if row.get("left"):
        parts.append(f"{row['left']:,} left")
    if row.get("bytes_sent"):
        parts.append(f"{row['bytes_sent'] / 1e9:.2f} GB between blocks")
    return " · ".join([f"{row['online']:,} online", *parts])


class _Line:
    """One line with a bar. Measuring is a step of its own behind the last round, so that the clock does not stop."""

    def __init__(self, bar: Bar, extent: Extent, say: Callable[[str], None]) -> None:
        self._bar, self._extent, self._say = bar, extent, say
        self._id: TaskID = bar.add_task("starting", total=extent.end + 1, place=extent.place(0))
        self._last = ""

    def tell(self, row: dict[str, Any]) -> None:
        if row["stage"] == COMPILING:
            self._say(row["sentence"])
            self._show(0, 0, "compiling")
        elif row["stage"] == MEASURING:
            self._show(row["round"], row["round"], "measuring …")
        else:
            self._last = describe(row)
            self._show(row["round"], row["round"], self._last)

    def end(self) -> None:
        """The run is over, and well."""
        self._show(self._extent.end, self._extent.end + 1, self._last)

    def _show(self, round: int, done: int, text: str) -> None:
        """What does not fit the line is cut off: rich would cut all columns, the clock first."""
        place = self._extent.place(round)
        room = max(1, self._bar.console.width - len(place) - _BAR - _CLOCK - 3)
        shown = text if len(text) <= room else f"{text[: room - 1]}…"
        self._bar.update(self._id, completed=done, place=place, description=shown)


class _Lines:
    """A line now and then, where nothing can move."""

    def __init__(self, extent: Extent, console: Console) -> None:
        self._extent, self._console, self._said = extent, console, -1

    def tell(self, row: dict[str, Any]) -> None:
        place = self._extent.place(row["round"])
        if row["stage"] == COMPILING:
            self._console.print(row["sentence"], soft_wrap=True)
        elif row["stage"] == MEASURING:
            self._console.print(f"{place}: measuring", soft_wrap=True)
        elif (part := _LINES * row["round"] // self._extent.end) > self._said:
            self._said = part
            self._console.print(f"{place}: {describe(row)}", soft_wrap=True)


def _columns(console: Console) -> Bar:
    return Bar(
        TextColumn("{task.fields[place]}"),
        BarColumn(bar_width=_BAR),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console,
    )


@contextmanager
def _in_notebook(extent: Extent) -> Iterator[Progress]:
    """The line as an output of the cell that is renewed by a thread. rich has a display for notebooks, too, but only
    with another package."""
    from IPython.display import HTML, display

    def page() -> Console:
        return Console(file=io.StringIO(), record=True, width=_WIDTH, force_jupyter=False)

    def drawn() -> Any:
        (drawing := page()).print(bar.get_renderable())
        return HTML(drawing.export_html(inline_styles=True, code_format="<pre>{code}</pre>"))

    bar, over = _columns(page()), threading.Event()
    line = _Line(bar, extent, print)
    shown = display(drawn(), display_id=True)

    def renew() -> None:
        while not over.wait(REFRESH_S):
            shown.update(drawn())

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield line.tell
        line.end()
    finally:
        over.set()
        thread.join()
        shown.update(drawn())
