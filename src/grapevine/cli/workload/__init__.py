"""`grapevine workload …`: from raw traces and models to workloads, and what they look like."""

from __future__ import annotations

import typer

from grapevine.cli.lazy import Command, lazy_group

COMMANDS = {
    "ingest": Command("workload.ingest", "add_to", "Turn raw traces into a workload: Parquet tables and a manifest."),
    "profile": Command(
        "workload.profile",
        "add_to",
        "Say what a workload looks like: degrees, power-law fits, inequality, interest locality, overlap.",
    ),
    "generate": Command("workload.generate", "app", "Generate a workload from a published model."),
    "sample": Command("workload.sample", "app", "Cut a smaller workload out of a large one."),
}

app = typer.Typer(
    cls=lazy_group(COMMANDS),
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Make, cut and look at subscription workloads.",
)


@app.callback()
def options() -> None:
    """There are none before a subcommand."""
