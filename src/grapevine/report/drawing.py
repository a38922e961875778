"""One topic's part of an overlay as a picture (after Vitis Fig. 2): nodes on the identifier ring, links inside it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from grapevine.model.card import counted
from grapevine.report.looks import CIRCLE, COLOURS, DIAMOND, STAR
from grapevine.report.words import listed

SIZE, RADIUS = 440, 190
MOST_LINKS = 2_500  # more of them are a grey disc, and a slow page
MOST_ALONE = 4  # clusters, among which one of a single subscriber is a cluster like the others
PLAIN = "var(--muted)"  # subscribers of clusters too small, or too many, for a colour
OUTLINES = {"gateway": DIAMOND, "rendezvous": STAR, "publisher": STAR}
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture with what it shows in words."""

    svg: str
    description: str
    clusters: list[tuple[str, str]]  # colour and text of each legend entry


def draw_topic(nodes: list[Row], links: list[Row], name: str, palette: Sequence[str] = COLOURS) -> Drawing:
    """Draw the stored tables `drawn_nodes` and `drawn_links`; `name` says whose they are, `palette` has the colours of
    clusters, the largest first."""
    places = {node["node"]: _place(node["position"]) for node in nodes}
    sizes = Counter(node["cluster"] for node in nodes if node["cluster"] is not None)
    colours = _colours(sizes, palette)
    cluster_of = {node["node"]: node["cluster"] for node in nodes}
    known = [link for link in links if link["source"] in places and link["target"] in places]
    drawn = _thinned(known)
    description = _describe(nodes, sizes, len(known), len(drawn))
    parts = [
        f'<svg class="overlay" viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="{escape(f"{name}: {description}")}">',
        f'<circle cx="{SIZE / 2}" cy="{SIZE / 2}" r="{RADIUS}" fill="none" stroke="var(--grid)" stroke-width="1.5"/>',
    ]
    faint = max(0.3, min(0.75, 90 / max(1, len(drawn))))

    def look(link: Row) -> tuple[int, str, float, float]:
        """Layer, colour, width and opacity: the largest cluster below, then the others, and above what joins them."""
        if link["kind"] == "path":
            return len(sizes), "var(--ink)", 2.4, 0.8
        cluster = cluster_of[link["source"]] or 0
        return cluster, colours.get(cluster, PLAIN), 1.8 if cluster else 1.1, 0.9 if cluster else faint

    for link in sorted(drawn, key=lambda link: look(link)[0]):
        curve = _curve(places[link["source"]], places[link["target"]], bend=0.62 if link["kind"] == "cluster" else 0.3)
        _, colour, wide, opacity = look(link)
        style = f'stroke="{colour}" stroke-width="{wide}" opacity="{opacity:.2g}"'
        parts.append(f'<path d="{curve}" fill="none" {style}/>')
    radius = max(3.0, min(6.0, 0.6 * 2 * math.pi * RADIUS / max(1, len(nodes))))
    order = {"subscriber": 0, "relay": 1, "gateway": 2, "rendezvous": 3, "publisher": 3}
    above = sorted(nodes, key=lambda node: (order.get(node["role"], 0), node["cluster"] or 0, node["node"]))
    parts += [_node(node, places[node["node"]], radius, colours.get(node["cluster"], PLAIN)) for node in above]
    parts.append("</svg>")
    return Drawing("".join(parts), description, _legend(sizes, colours))


def role_swatch(role: str, colour: str = COLOURS[0]) -> str:
    """The legend's picture of a role or a kind of link, in the colour of a cluster."""
    if role in ("cluster", "path"):
        wide, colour = (1.4, colour) if role == "cluster" else (2.6, "var(--ink)")
        inside = f'<path d="M1 13Q17 -6 33 13" fill="none" stroke="{colour}" stroke-width="{wide}"/>'
    else:
        inside = _mark(role, (17.0, 7.0), 4.6, colour)
    return f'<svg class="swatch" viewBox="0 0 34 14" aria-hidden="true">{inside}</svg>'


def _place(position: float) -> tuple[float, float]:
    """Clockwise from the top."""
    angle = 2 * math.pi * position
    return SIZE / 2 + RADIUS * math.sin(angle), SIZE / 2 - RADIUS * math.cos(angle)


def _curve(a: tuple[float, float], b: tuple[float, float], *, bend: float) -> str:
    """From a to b, drawn towards the centre: the farther apart they are, the deeper."""
    pull = bend * min(1.0, math.dist(a, b) / RADIUS)
    x, y = (m + pull * (SIZE / 2 - m) for m in ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2))
    return f"M{a[0]:.1f} {a[1]:.1f}Q{x:.1f} {y:.1f} {b[0]:.1f} {b[1]:.1f}"


def _node(node: Row, place: tuple[float, float], radius: float, colour: str) -> str:
    where = f", cluster {node['cluster'] + 1}" if node["cluster"] is not None else ""
    title = f"<title>node {node['node']}: {escape(node['role'])}{where}</title>"
    return f"<g>{title}{_mark(node['role'], place, radius, colour)}</g>"


def _mark(role: str, place: tuple[float, float], radius: float, colour: str) -> str:
    """A subscriber is a disc, a gateway a diamond; a relay is hollow, rendezvous and publisher are stars."""
    if role in ("relay", "rendezvous", "publisher"):
        fill, stroke, wide = (
            ("var(--card)", "var(--ink)", 1.6) if role == "relay" else ("var(--star)", "var(--ink)", 1.0)
        )
    else:
        fill, stroke, wide = colour, "var(--card)", 1.0
    scale = radius * {"gateway": 1.35, "rendezvous": 1.8, "publisher": 1.8}.get(role, 1.0)
    moved = f"translate({place[0]:.1f} {place[1]:.1f}) scale({scale:.2f})"
    return (
        f'<path d="{OUTLINES.get(role, CIRCLE)}" transform="{moved}" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="{wide}" vector-effect="non-scaling-stroke"/>'
    )


def _colours(sizes: Counter[int], palette: Sequence[str]) -> dict[int | None, str]:
    """The largest clusters get colours; a subscriber on its own is a cluster to tell apart only among few."""
    alone = max(sizes.values(), default=0) > 1 and len(sizes) <= MOST_ALONE
    largest = [cluster for cluster, size in sorted(sizes.items()) if size > 1 or alone][: len(palette) - 1]
    return dict(zip(largest, palette, strict=False))


def _thinned(links: list[Row]) -> list[Row]:
    """Every path, and of too many cluster links an even choice."""
    paths = [link for link in links if link["kind"] == "path"][:MOST_LINKS]
    others = [link for link in links if link["kind"] != "path"]
    room = MOST_LINKS - len(paths)
    if len(others) > room:
        others = [others[i * len(others) // room] for i in range(room)]
    return others + paths


def _describe(nodes: list[Row], sizes: Counter[int], links: int, drawn: int) -> str:
    roles = Counter(node["role"] for node in nodes)
    members = sum(sizes.values())
    together = [size for size in sizes.values() if size > 1]
    if not together:
        first = f"{counted(members, 'subscriber')}, none linked to another"
    else:
        first = f"{counted(members, 'subscriber')} in {counted(len(sizes), 'cluster')}"
    parts = [counted(roles[role], role) for role in ("gateway", "relay") if roles[role]]
    parts += [f"the {role}" for role in ("rendezvous", "publisher") if roles[role]]
    text = f"{first}; {listed(parts)}" if parts else first
    return text + (f" ({drawn:,} of {links:,} links drawn)" if drawn < links else "")


def _legend(sizes: Counter[int], colours: dict[int | None, str]) -> list[tuple[str, str]]:
    entries = [
        (colour, f"cluster {cluster + 1}: {sizes[cluster]:,}")
        for cluster, colour in colours.items()
        if cluster is not None
    ]
    others = [size for cluster, size in sizes.items() if cluster not in colours]
    if others:
        each = "1" if max(others) == 1 else f"up to {max(others)}"
        entries.append(
            (PLAIN, f"{len(others):,} on their own" if each == "1" else f"{len(others):,} more, {each} each")
        )
    return entries
