"""The section of a page that draws one topic's overlay, one picture per system."""

from __future__ import annotations

import json
from typing import Any

from grapevine.model import tables
from grapevine.model.errors import UsageError
from grapevine.model.location import Location
from grapevine.model.manifest import read_manifest
from grapevine.model.store import read_table
from grapevine.report.cards import downloads
from grapevine.report.drawing import draw_topic, role_swatch
from grapevine.report.looks import Looks, extra_label
from grapevine.report.markup import text
from grapevine.report.words import setting
from grapevine.sim.result import KIND as SIMULATION
from grapevine.sim.result import SIMULATIONS, run_folder

ROLES = {
    "subscriber": "subscriber, coloured by cluster",
    "gateway": "gateway: looks up the rendezvous for its cluster",
    "relay": "relay: carries the topic without wanting it",
    "rendezvous": "rendezvous: nearest to the topic on the ring",
    "publisher": "publisher: the root of the tree",
    "cluster": "link between subscribers",
    "path": "path of a lookup, or of a tree by way of others",
}
Run = dict[str, Any]


def overlay_section(folder: Location, runs: list[Run], looks: Looks) -> str:
    """Drawings of the smallest network that was run, side by side for its systems; empty where none is stored.

    `folder` holds the simulations.
    """
    figures, seen, palette = [], set(), looks.spare_colours
    for stored, run in _chosen(folder / SIMULATIONS, runs, looks):
        nodes, links = (read_table(stored, table).to_pylist() for table in (tables.DRAWN_NODES, tables.DRAWN_LINKS))
        parameters = "".join(f", {setting(key, value)}" for key, value in json.loads(run["parameters"]).items())
        about = f"on {run['workload']}{parameters}, seed {run['seed']}, topic {nodes[0]['topic']}"
        drawing = draw_topic(nodes, links, f"{run['system']} {about}", palette)
        seen |= {node["role"] for node in nodes} | {link["kind"] for link in links}
        clusters = "".join(
            f'<li><i class="dot" style="background:{colour}"></i>{text(name)}</li>' for colour, name in drawing.clusters
        )
        caption = f"<h3>{text(run['system'])}</h3><p>{text(about)}: {text(drawing.description)}.</p>"
        legend = f'<ul class="legend">{clusters}</ul>' if len(drawing.clusters) > 1 else ""
        saved = downloads(f"{run['system']} {about}", f"drawing-{len(figures) + 1}", links)
        figures.append(f'<figure class="card"><figcaption>{caption}{legend}</figcaption>{drawing.svg}{saved}</figure>')
    if not figures:
        return ""
    roles = "".join(
        f"<li>{role_swatch(role, palette[0])}{text(meaning)}</li>" for role, meaning in ROLES.items() if role in seen
    )
    return (
        "<p>The nodes that carry one topic, at their places on the identifier ring (clockwise from the top; with "
        "network coordinates, in the direction in which the publisher sees them), and the links its events travel on. "
        "Each run shows a topic of two to four clusters, or its most popular one where it has none that can be "
        f'drawn.</p><ul class="legend">{roles}</ul><div class="drawings">{"".join(figures)}</div>'
    )


def _chosen(simulations: Location, runs: list[Run], looks: Looks) -> list[tuple[Location, Run]]:
    """Per system its first run on the workload of fewest nodes, with where its tables lie; runs without a drawn topic
    do not count."""
    found = []
    for run in runs:
        folder = run_folder(simulations, run["run_id"])
        try:
            manifest = read_manifest(folder, SIMULATION)
        except UsageError:
            continue  # failed, or written elsewhere
        rows, stored = manifest.tables, manifest.tables_in(folder)
        if rows.get(tables.DRAWN_NODES.name) and tables.DRAWN_LINKS.name in rows:
            rank = looks.rank((run["system"], run["workload"], extra_label(json.loads(run["parameters"]), None)))
            found.append((rows.get(tables.NODE_LOAD.name, 0), rank[1], rank, run["seed"], run["run_id"], stored, run))
    found.sort(key=lambda entry: entry[:5])
    first: dict[str, tuple[Location, Run]] = {}
    for nodes, workload, _, _, _, stored, run in found:
        if (nodes, workload) == found[0][:2]:
            first.setdefault(run["system"], (stored, run))
    return list(first.values())
