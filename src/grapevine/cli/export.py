"""`grapevine export`: hand the overlay of a simulation on to other tools."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from grapevine.cli.console import ConfOption, out
from grapevine.cli.storage import for_files
from grapevine.sim.result import Simulation, export_links


def export(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A simulation.")],
    target: Annotated[str, typer.Argument(metavar="FILE", help="New file, .graphml or .edges.")],
    format: Annotated[str | None, typer.Option(help="graphml or edges. Default: by the file's name.")] = None,
    conf: ConfOption = None,
) -> None:
    """Write the overlay of a simulation for networkx, igraph or Gephi."""
    files = for_files(conf)
    run = Simulation.load(files.location(folder))
    written = export_links(run.links, files.location(target), format=format)
    out.print(f"{run.links.num_rows:,} links: [bold]{escape(str(written))}[/]", highlight=False)
