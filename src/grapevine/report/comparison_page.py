"""The page of a comparison: the answer in sentences, the front as charts, and every choice with its costs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import vl_convert

from grapevine.model.numbers import number
from grapevine.report import charts
from grapevine.report.cards import downloads
from grapevine.report.document import CREDITS, document, light_colours
from grapevine.report.looks import CIRCLE, COLOURS, STAR, Line, swatch
from grapevine.report.markup import Cell, data_block, link, sortable_table, text

Row = Mapping[
    str, Any
]  # a choice with its costs, its `name`, and whether it is on the `front`, the `best`, or `central`
_FRONT = "Bytes and hops by connections"
_X = "connections", "connections of a mean node"
_PANELS = (("bytes_a_second", "bytes a second at a mean node"), ("hops", "hops of a mean delivery"))
_KINDS = {  # what a choice is, with its mark
    "best": ("recommended", STAR, 260),
    "front": ("on the front: nothing beats it in connections, bytes and hops at once", CIRCLE, 110),
    "central": ("needs knowledge of the whole network", "M-0.9,-0.9H0.9V0.9H-0.9Z", 60),
    "beaten": ("beaten by another, or loses events", CIRCLE, 45),
}


def make_comparison_page(title: str, sentences: Sequence[str], rows: Sequence[Row], runs: str) -> str:
    """The page's HTML. `runs` is the way to the page of all runs, relative to where this one lies."""
    first, *others = sentences
    said = f'<p class="answer">{text(first)}</p>' + "".join(f"<p>{text(sentence)}</p>" for sentence in others)
    panels = "".join(
        f'<div class="panel"><div class="chart" id="chart-{i}"></div>'
        f"{data_block(f'chart-{i}-spec', front_spec(rows, field, name))}</div>"
        for i, (field, name) in enumerate(_PANELS, start=1)
    )
    legend = "".join(
        f"<li>{swatch(_line(kind), joined=False)}{text(meaning)}</li>" for kind, (meaning, *_) in _KINDS.items()
    )
    swatches = {meaning: swatch(_line(kind), joined=False) for kind, (meaning, *_) in _KINDS.items()}
    saved = downloads(_FRONT, "front-figure", [dict(row) for row in rows], swatches)
    body = [
        f'<header><p class="eyebrow">Grapevine comparison</p><h1>{text(title)}</h1></header>',
        f'<main><section id="answer" aria-label="Answer">{said}</section>',
        f'<section id="front"><h2>What connections buy</h2><figure class="card wide"><figcaption><h3>{_FRONT}</h3>'
        "<p>Every choice by its connections; lower and further left is better. "
        "A line joins the budgets of a system.</p>"
        f'</figcaption><ul class="legend">{legend}</ul><div class="panels" style="--columns: 2">{panels}</div>{saved}'
        "</figure></section>",
        f'<section id="choices"><h2>Choices</h2>{_table(rows)}</section>',
        f"</main><footer><p>{link(runs, 'All runs and their tables')}. {CREDITS}</p></footer>",
    ]
    return document(title, body, charts=True)


def front_picture(rows: Sequence[Row], suffix: str) -> bytes:
    """The same charts beside each other as a file, `svg` or `png`."""
    specs = [front_spec(rows, field, name, width=420) for field, name in _PANELS]
    data = specs[0].pop("datasets")
    specs[1].pop("datasets")
    config = specs[0].pop("config") | {"background": "white"}
    specs[1].pop("config")
    for spec in specs:
        spec.pop("autosize", None)
    whole = _on_paper({"hconcat": specs, "datasets": data, "config": config})
    if suffix == "svg":
        return vl_convert.vegalite_to_svg(whole).encode()
    return bytes(vl_convert.vegalite_to_png(whole, scale=2))


def front_spec(rows: Sequence[Row], field: str, name: str, width: int | str = "container") -> dict[str, Any]:
    """One chart: connections along x, another cost along y."""
    points = [_point(row) for row in rows]
    shown = sorted((point for point in points if point["kind"] in ("best", "front")), key=lambda point: point["x"])
    for i, point in enumerate(shown):  # in turn above and below, so that neighbours do not lie over each other
        point |= {"side": 1 + i % 2, "label": point["name"].replace(" with", "").replace(" links", "")}
    base = alt.Chart(alt.NamedData(name="points")).encode(
        x=alt.X("x:Q", axis=alt.Axis(title=_X[1], grid=False, tickCount=8), scale=alt.Scale(zero=False, padding=16)),
        y=alt.Y(
            f"{field}:Q",
            axis=alt.Axis(title=None, tickCount=5, domain=False, ticks=False),
            scale=alt.Scale(zero=False, padding=16),
        ),
    )
    kinds = list(_KINDS)
    colour = alt.Color(
        "kind:N", scale=alt.Scale(domain=kinds, range=[_line(kind).colour for kind in kinds]), legend=None
    )
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=[_KINDS[kind][1] for kind in kinds]), legend=None)
    size = alt.Size("kind:N", scale=alt.Scale(domain=kinds, range=[_KINDS[kind][2] for kind in kinds]), legend=None)
    tips = [
        alt.Tooltip(f"{key}:N", title=shown)
        for key, shown in (("name", "choice"), ("at", _X[1]), (f"{field}_shown", name))
    ]
    marks = base.mark_point(filled=True, opacity=1, stroke=charts.CARD, strokeWidth=1)
    names = base.mark_text(align="left", fontSize=11, fontWeight="normal", color=charts.INK).encode(text="label:N")
    layers = [
        base.mark_line(color=charts.MUTED, strokeWidth=1, opacity=0.6).encode(detail="system:N", order="x:Q"),
        marks.encode(color=colour, shape=shape, size=size, tooltip=tips),
        names.transform_filter("datum.side == 1").encode(xOffset=alt.value(8), yOffset=alt.value(-9)),
        names.transform_filter("datum.side == 2").encode(xOffset=alt.value(8), yOffset=alt.value(12)),
    ]
    chart = alt.layer(
        *layers,
        width=width,
        height=charts.HEIGHT,
        title=alt.TitleParams(text=name, anchor="start", frame="bounds"),
        description=f"{name} over {_X[1]}: {', '.join(str(row['name']) for row in rows)}",
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        config=charts.config(left=2),
    )
    spec: dict[str, Any] = chart.to_dict()
    del spec["$schema"]  # an address that nobody is to visit
    return spec | {"datasets": {"points": points}}


def _point(row: Row) -> dict[str, Any]:
    """As the page carries it, with both costs, so that both charts may share it."""
    costs = {key: float(f"{row[key]:.6g}") for key, _ in _PANELS}
    shown = {f"{key}_shown": number(row[key]) for key, _ in _PANELS}
    place = {"x": row["connections"], "at": number(row["connections"])}
    return {"name": row["name"], "system": row["system"], "kind": row["kind"], "side": 0} | place | costs | shown


def _line(kind: str) -> Line:
    place = list(_KINDS).index(kind)
    return Line(kind, (COLOURS[1], COLOURS[0], COLOURS[5], COLOURS[4])[place], (), _KINDS[kind][1])


def _table(rows: Sequence[Row]) -> str:
    columns = (
        *(
            "choice",
            "delivered",
            "after a crash",
            "connections",
            "most connections",
            "bytes a second",
            "hops",
            "hops, p99",
        ),
        *("unwanted notifications", "busiest node, notifications a day", "needs"),
    )
    cells = [
        [
            Cell(f"<strong>{text(row['name'])}</strong>" if row["kind"] == "best" else text(row["name"]), row["name"]),
            _share(row["delivered"]),
            _share(row["delivered_in_crash"]),
            *(Cell.of(number(row[key]), row[key]) for key in ("connections", "connections_max", "bytes_a_second")),
            *(Cell.of(number(row[key]), row[key]) for key in ("hops", "hops_p99")),
            _share(row["overhead"]),
            Cell.of(number(round(row["busiest"])), row["busiest"]),
            Cell.of(row["needs"] or "nothing"),
        ]
        for row in rows
    ]
    return sortable_table("Every choice and what it costs", columns, cells, numeric=set(range(1, 10)))


def _share(value: float | None) -> Cell:
    return Cell.of("–") if value is None else Cell.of(f"{value:.2%}", value)


def _on_paper(content: Any) -> Any:
    """With the colours of the light page in place of its variables: a picture has no style sheet."""
    light = light_colours()
    return json.loads(re.sub(r"var\((--[\w-]+)\)", lambda found: light[found[1]], json.dumps(content)))
