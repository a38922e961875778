"""The command `grapevine`: its subcommands in the order of the help, and its entry point."""

from __future__ import annotations

from typing import Annotated

import typer

from grapevine.cli.console import one_line_errors, stop_on_signals
from grapevine.cli.lazy import Command, lazy_group
from grapevine.version import __version__

COMMANDS = {
    "workload": Command(
        "workload",
        "app",
        "Make, cut and look at subscription workloads.",
    ),
    "simulate": Command(
        "simulate",
        "add_to",
        "Run a system on a workload, and measure what delivery costs.",
    ),
    "compare": Command(
        "compare",
        "add_to",
        "Compare the systems on a trace, and say which one to take, with how many links, at what cost.",
    ),
    "systems": Command(
        "systems",
        "systems",
        "Say which systems there are; with a name, every facet with its parameters, defaults and where they come from.",
    ),
    "export": Command(
        "export",
        "export",
        "Write the overlay of a simulation for networkx, igraph or Gephi.",
    ),
    "run": Command(
        "experiment",
        "run",
        "Run an experiment: every system on every workload for every point of the grid, each run a Spark task.",
    ),
    "reproduce": Command(
        "reproduce",
        "reproduce",
        "Measure what the papers claim: run the experiments that are missing, and print claimed beside measured.",
    ),
    "collect": Command(
        "collect",
        "collect",
        "Measure a live network from the diaries of its nodes: the tables of a simulation, for `measure` and `report`.",
    ),
    "measure": Command(
        "measure",
        "measure",
        "Measure the graph of every topic from the stored links: clusters and exact diameters, as a Spark job.",
    ),
    "report": Command(
        "report",
        "report",
        "Write an experiment's figures, overlay and tables as one HTML file, which opens anywhere and loads nothing.",
    ),
    "node": Command(
        "live",
        "node",
        "Run a live node until Ctrl-C or SIGTERM. It prints where it listens, who it is, and where programs find it.",
    ),
    "status": Command(
        "live",
        "status",
        "Say how a node of this machine is: what is wrong, if anything (exit code 1), and what it has done.",
    ),
    "peers": Command(
        "inspect_node",
        "peers",
        "List whom a node of this machine is linked to, and in how many topics they exchange events.",
    ),
    "topics": Command(
        "inspect_node",
        "topics",
        "List the topics that programs of a node want or publish in: partners, missing events, named readers.",
    ),
    "bench": Command(
        "inspect_node",
        "bench",
        "Measure a running node as programs of its machine see it: how fast it takes events, and gives them back.",
    ),
    "publish": Command(
        "live",
        "publish",
        "Publish an event through a node of this machine. At the end it is on that node's disk, and handed on.",
    ),
    "subscribe": Command(
        "live",
        "subscribe",
        "Print events as they come, through a node of this machine: the payload, or lines of JSON with all there is.",
    ),
    "cluster": Command(
        "cluster",
        "add_to",
        "Run a network of live nodes on this machine, and count what arrives.",
    ),
    "torture": Command(
        "torture",
        "add_to",
        "Run networks of live nodes in virtual time, under crashes, cuts and full disks that a seed decides.",
    ),
    "doctor": Command(
        "doctor",
        "doctor",
        "Say what is installed (Python, Java, Spark, cores, memory, data) and what is wrong, with the cure.",
    ),
    "demo": Command(
        "demo",
        "demo",
        "Run the quickstart experiment: Vitis, RVR and OPT on two small workloads, and a page that compares them.",
    ),
}


app = typer.Typer(
    name="grapevine",
    cls=lazy_group(COMMANDS),
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Brokerless, topic-based publish/subscribe: workloads, overlays and their costs.\n\n"
    "Start with [bold]grapevine demo[/], or [bold]grapevine workload generate vitis-high --out w[/]. "
    "[bold]grapevine doctor[/] tells what is installed.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"grapevine {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before a subcommand. (The help of the command itself is the app's.)"""


def main() -> None:
    """Run the command with the process's arguments; foreseen errors become one line and an exit code."""
    stop_on_signals()
    with one_line_errors():
        app()
