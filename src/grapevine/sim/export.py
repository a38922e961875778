"""The overlay of a run for other tools: networkx, igraph, Gephi.

All nodes are there, those without links, too. Links that a system has in both directions and for the same purpose, all
of them, are connections: they have no direction then, and each is there once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

from grapevine.model.drafts import whole_file
from grapevine.model.errors import UsageError
from grapevine.model.folder import one_sentence
from grapevine.model.location import Location

if TYPE_CHECKING:
    import networkx as nx

    from grapevine.sim.result import Simulation

_FORMATS = {".graphml": "graphml", ".edges": "edges", ".tsv": "edges"}


class Overlay(NamedTuple):
    """Nodes and links as other tools have them."""

    nodes: int
    links: list[tuple[int, int, str]]  # source, target, what for
    directed: bool


def overlay_of(run: Simulation) -> Overlay:
    """The overlay at the end of a run."""
    rows = list(zip(*(run.links[name].to_pylist() for name in ("source", "target", "kind")), strict=True))
    known = set(rows)
    directed = not rows or not all((target, source, kind) in known for source, target, kind in rows)
    return Overlay(run.nodes.num_rows, rows if directed else [row for row in rows if row[0] < row[1]], directed)


def to_networkx(run: Simulation) -> nx.Graph[int]:
    """The overlay as a graph of networkx, whose edges say what they are for (`kind`); of two links in one direction the
    last. UsageError if networkx is not installed."""
    try:
        import networkx as nx
    except ImportError:
        raise UsageError("networkx is not installed; pip install networkx") from None
    overlay = overlay_of(run)
    graph = nx.DiGraph() if overlay.directed else nx.Graph()
    graph.add_nodes_from(range(overlay.nodes))
    graph.add_edges_from((source, target, {"kind": kind}) for source, target, kind in overlay.links)
    return graph


def export_links(
    run: Simulation, target: Location, *, format: str | None = None, names: Sequence[str] | None = None
) -> Overlay:
    """Write the overlay: GraphML (`.graphml`) or an edge list (`.edges`, `.tsv`); `names` are those of the nodes.

    UsageError if the file is there already, cannot be written, or does not tell its format, or if the names are not
    those of the run's nodes.
    """
    format = format or _FORMATS.get(PurePosixPath(target.name).suffix)
    if format not in _FORMATS.values():
        raise UsageError(f"{target}: cannot tell the format; end the name in .graphml or .edges, or give --format")
    if target.exists():
        raise UsageError(f"{target}: exists already; choose another name")
    overlay = overlay_of(run)
    if names is not None and len(names) != overlay.nodes:
        raise UsageError(f"the workload has {len(names):,} nodes, the run {overlay.nodes:,}; give the run's workload")
    lines = _graphml(overlay, names) if format == "graphml" else _edge_list(overlay, names)
    with one_sentence(target), whole_file(target) as local, local.open("w") as file:
        file.writelines(lines)
    return overlay


def _edge_list(overlay: Overlay, names: Sequence[str] | None) -> Iterator[str]:
    def called(node: int) -> str:
        return str(node) if names is None else names[node]

    for source, target, kind in overlay.links:
        yield f"{called(source)}\t{called(target)}\t{kind}\n"


def _graphml(overlay: Overlay, names: Sequence[str] | None) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    yield '<key id="name" for="node" attr.name="name" attr.type="string"/>\n'
    yield '<key id="kind" for="edge" attr.name="kind" attr.type="string"/>\n'
    yield f'<graph edgedefault="{"directed" if overlay.directed else "undirected"}">\n'
    for node in range(overlay.nodes):
        name = "" if names is None else f'<data key="name">{escape(names[node])}</data>'
        yield f'<node id="{node}">{name}</node>\n'
    for source, target, kind in overlay.links:
        yield f'<edge source="{source}" target="{target}"><data key="kind">{kind}</data></edge>\n'
    yield "</graph>\n</graphml>\n"
