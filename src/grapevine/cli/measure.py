"""`grapevine measure`: connectivity and diameter of every topic of a stored overlay."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from grapevine.cli.console import ConfOption, ForceOption, JsonOption, MasterOption, OutOption, out, print_json, table
from grapevine.cli.storage import stage_of
from grapevine.model import tables
from grapevine.model.folder import new_folder
from grapevine.model.manifest import Manifest, read_manifest
from grapevine.model.numbers import number
from grapevine.model.store import read_table
from grapevine.pipeline.topic_graphs import topic_graphs
from grapevine.version import __version__

KIND = "graphs"


def measure(
    simulation: Annotated[str, typer.Argument(metavar="DIR", help="A simulation.")],
    workload: Annotated[str, typer.Option("--workload", "-w", metavar="DIR", help="The workload it ran on.")],
    out_: OutOption,
    force: ForceOption = False,
    json: JsonOption = False,
    master: MasterOption = None,
    conf: ConfOption = None,
) -> None:
    """Measure the graph of every topic from the stored links: clusters and exact diameters, as a Spark job."""
    stage = stage_of(conf, master=master, quiet=json)
    target = stage.location(out_)
    with new_folder(target, kind=KIND, force=force) as partial:
        graphs = topic_graphs(stage, stage.location(simulation), stage.location(workload))
        rows = stage.write(graphs, partial, tables.TOPIC_GRAPHS, "measuring topic graphs")
        Manifest(
            kind=KIND,
            stage="measure",
            version=__version__,
            inputs=[simulation, workload],
            tables={tables.TOPIC_GRAPHS.name: rows},
        ).write(partial)
    found = read_table(read_manifest(target, KIND).tables_in(target), tables.TOPIC_GRAPHS)
    clusters, diameters = found["clusters"].to_pylist(), found["diameter"].to_pylist()
    summary = {
        "topics": len(clusters),
        "connected": sum(count == 1 for count in clusters),
        "clusters_max": max(clusters, default=0),
        "diameter_max": max(diameters, default=0),
    }
    if json:
        print_json({"folder": str(target), **summary})
        return
    made = table(escape(str(target)), "", "")
    made.show_header = False
    for name, value in summary.items():
        made.add_row(name.replace("_", ", "), number(value))
    out.print(made)
