"""Figures as HTML: the legend that they share, and a card for each with its chart and its data to take away."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grapevine.report.figures import Figure, Panel
from grapevine.report.looks import DIMENSIONS, PLAIN, Line, in_common, swatch
from grapevine.report.markup import data_block, text

FORMATS = "CSV", "SVG", "PNG"
Row = dict[str, Any]


def figures_section(figures: Sequence[Figure]) -> str:
    """All figures of a page below one legend; empty if there are none."""
    if not figures:
        return ""
    charts = itertools.count(1)
    cards = "".join(
        figure_card(figure, f"figure-{i}", charts, wide=wide)
        for i, (figure, wide) in enumerate(zip(figures, _widths(figures), strict=True), start=1)
    )
    return (
        '<noscript><p class="note">The charts need JavaScript; the tables below hold the same values.</p></noscript>'
        f'{_shared_legend(figures)}<div class="figures">{cards}</div>'
    )


def figure_card(figure: Figure, identifier: str, charts: Iterator[int], *, wide: bool) -> str:
    """One figure: its title, what it shows, what is drawn, the chart, and buttons to download it.

    `charts` numbers the charts of the page; page.js finds each one's specification by that number.
    """
    conclusion = f'<p class="conclusion">{text(figure.conclusion)}</p>' if figure.conclusion else ""
    caption = f"<h3>{text(figure.title)}</h3>{conclusion}<p>{text(figure.explanation)}</p>"
    start = f'<figure class="card{" wide" if wide else ""}{"" if figure.panels else " empty"}">'
    start += f"<figcaption>{caption}</figcaption>"
    if not figure.panels:
        return f"{start}</figure>"
    claims = "".join(f"<li><b>✕ {i}</b>{text(claim)}</li>" for i, claim in enumerate(figure.claims, start=1))
    panels = "".join(_panel(panel, f"chart-{next(charts)}") for panel in figure.panels)
    columns = 2 if len(figure.panels) == 4 else min(3, len(figure.panels))
    return (
        start
        + _own_legend(figure)
        + (f'<ul class="legend claims">{claims}</ul>' if claims else "")
        + f'<div class="panels" style="--columns: {columns}">{panels}</div>'
        + downloads(figure.title, identifier, figure.rows, _whole_legend(figure))
        + "</figure>"
    )


def downloads(title: str, identifier: str, rows: Sequence[Row], legend: Mapping[str, str] | None = None) -> str:
    """Buttons that save a figure's data and its picture; downloads.js shows them and makes them work.

    `legend` are names with their swatches: the picture has them, since it leaves the page's legend behind.
    """
    buttons = "".join(
        f'<button type="button" data-as="{kind.lower()}" aria-label="{text(f"{title} as {kind}")}">{kind}</button>'
        for kind in FORMATS
    )
    content = {"name": _file_name(title), "csv": as_csv(rows), "legend": legend or {}}
    start = f'<p class="downloads" data-of="{identifier}" hidden>Download {buttons}</p>'
    return start + data_block(identifier, content)


def as_csv(rows: Sequence[Row]) -> str:
    """A table with a column for every name that occurs; what a row does not have is empty there."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    written = io.StringIO()
    writer = csv.DictWriter(written, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _exact(value) for name, value in row.items()} for row in rows)
    return written.getvalue()


def _exact(value: Any) -> Any:
    """Ten digits: what is beyond them differs from one machine to another."""
    return f"{value:.10g}" if isinstance(value, float) else value


def _file_name(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-") or "figure"


def _shared_legend(figures: Sequence[Figure]) -> str:
    """What colours and shapes stand for in all figures but those that have a legend of their own for it."""
    lines = [line for figure in figures if figure.joined or not _varies(figure) for line in figure.lines]
    groups = "".join(_group(lines, part, name) for part, name in enumerate(DIMENSIONS[:2]))
    return (
        f'<div class="shared legends" aria-label="Legend of all figures" role="group">{groups}</div>' if groups else ""
    )


def _own_legend(figure: Figure) -> str:
    """What only this figure tells apart: the parameters of its series, unless each panel has its own."""
    if not _varies(figure) or _names_its_rows(figure):
        return ""
    return f'<div class="legends">{_group(figure.lines, DIMENSIONS.index("parameters"))}</div>'


def _whole_legend(figure: Figure) -> dict[str, str]:
    """Every series of a figure with its swatch, once where panels have the same; empty where it is not needed."""
    if _names_its_rows(figure) or len(figure.lines) < 2:
        return {}
    return {line.label: swatch(line, joined=figure.joined or line.flat) for line in figure.lines}


def _varies(figure: Figure) -> bool:
    """Whether series of one panel differ by their parameters."""
    named = {line.key[2] for line in figure.lines if line.key[2] and line.key[2] in line.label}
    return len(named) > 1


def _names_its_rows(figure: Figure) -> bool:
    """Whether each series stands in a row of its own, with its name, and needs no legend."""
    return any("rows" in panel.spec["datasets"] for panel in figure.panels)


def _group(lines: Sequence[Line], part: int, title: str = "") -> str:
    """The legend of one dimension: what all lines of each of its values have in common; none if it has one value."""
    values = dict.fromkeys(line.key[part] for line in lines if line.key[part])
    if len(values) < 2:
        return ""
    shown = [in_common(value, [line for line in lines if line.key[part] == value]) for value in values]
    dashed = any(line.dash for line in shown)
    entries = "".join(
        f"<li>{swatch(line, joined=dashed or line.colour != PLAIN)}{text(line.label)}</li>" for line in shown
    )
    return f'<div>{text(title)}<ul class="legend">{entries}</ul></div>'


def _widths(figures: Sequence[Figure]) -> list[bool]:
    """Which figures take a whole row: those of several panels, and one that would be left alone in its row."""
    wide: list[bool] = []
    alone = False
    for figure in figures:
        several = len(figure.panels) > 1
        if several and alone:
            wide[-1] = True
        alone = not several and not alone
        wide.append(several)
    if alone:
        wide[-1] = True
    return wide


def _panel(panel: Panel, identifier: str) -> str:
    heading = f"<h4>{text(panel.heading)}</h4>" if panel.heading else ""
    data = data_block(f"{identifier}-spec", panel.spec)
    return f'<div class="panel">{heading}<div class="chart" id="{identifier}"></div>{data}</div>'
