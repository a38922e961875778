"""`grapevine export`: hand the overlay of a simulation on to other tools."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from grapevine.cli.console import ConfOption, out
from grapevine.cli.storage import for_files
from grapevine.model.workload import Workload
from grapevine.sim.export import export_links
from grapevine.sim.result import Simulation


def export(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A simulation.")],
    target: Annotated[str, typer.Argument(metavar="FILE", help="New file, .graphml or .edges.")],
    format: Annotated[str | None, typer.Option(help="graphml or edges. Default: by the file's name.")] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", "-w", metavar="DIR", help="The workload, for the names of nodes.")
    ] = None,
    conf: ConfOption = None,
) -> None:
    """Write the overlay of a simulation for networkx, igraph or Gephi."""
    files = for_files(conf)
    run = Simulation.load(files.location(folder))
    names = None if workload is None else Workload.load(files.location(workload)).node_names
    written = export_links(run, files.location(target), format=format, names=names)
    kind = "links" if written.directed else "connections"
    out.print(f"{written.nodes:,} nodes, {len(written.links):,} {kind}: [bold]{escape(target)}[/]", highlight=False)
