"""The command `grapevine`: its subcommands in the order of the help, and its entry point."""

from __future__ import annotations

from typing import Annotated

import typer

from grapevine import __version__
from grapevine.cli import (
    cluster,
    collect,
    demo,
    doctor,
    experiment,
    export,
    live,
    measure,
    report,
    reproduce,
    simulate,
    systems,
    workload,
)
from grapevine.cli.console import one_line_errors, stop_on_signals

app = typer.Typer(
    name="grapevine",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Brokerless, topic-based publish/subscribe: workloads, overlays and their costs.\n\n"
    "Start with [bold]grapevine demo[/], or [bold]grapevine workload generate vitis-high --out w[/]. "
    "[bold]grapevine doctor[/] tells what is installed.",
)
app.add_typer(workload.app, name="workload")
simulate.add_to(app)
app.command()(systems.systems)
app.command()(export.export)
app.command()(experiment.run)
app.command()(reproduce.reproduce)
app.command()(collect.collect)
app.command()(measure.measure)
app.command()(report.report)
app.command()(live.node)
app.command()(live.publish)
app.command()(live.subscribe)
cluster.add_to(app)
app.command()(doctor.doctor)
app.command()(demo.demo)


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
