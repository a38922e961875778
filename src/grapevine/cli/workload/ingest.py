"""`grapevine workload ingest FORMAT FILE…`: raw traces become a workload."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from grapevine.cli.from_config import add_config_command, option
from grapevine.cli.storage import stage_of
from grapevine.cli.workload.common import OUT, WITHOUT_SEED, print_workload
from grapevine.pipeline.formats import FORMATS
from grapevine.pipeline.ingest import IngestConfig, ingest

_HELP = """Turn raw traces into a workload: Parquet tables and a manifest.

Reads text, JSON lines and Parquet; plain, .gz, .bz2, .zst, .xz or .zip; UTF-8 or UTF-16; many files or folders. Says
before it begins how the first row is read. Lines that cannot be read go to the [bold]rejected[/] table with their
number and the reason; if they are too many, nothing is written."""
_FORMAT_HELP = "\n\n".join(f"[bold]{name}[/]: {escape(format.summary)}" for name, format in FORMATS.items())

_FORMAT = Annotated[
    str,
    typer.Argument(metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.", autocompletion=lambda: list(FORMATS)),
]
_FILES = Annotated[list[str], typer.Argument(metavar="FILE…", help="Files or folders.")]


def _run(
    config: IngestConfig, *, format: str, files: list[str], out_: str, force: bool, json: bool, **spark: Any
) -> None:
    stage = stage_of(**spark, quiet=json)
    target = stage.location(out_)
    print_workload(target, ingest(stage, format, files, target, config, force=force), json)


def add_to(app: typer.Typer) -> None:
    """Add the command: its options are the fields of `IngestConfig`."""
    add_config_command(
        app,
        "ingest",
        IngestConfig,
        _run,
        first=[option("format", _FORMAT), option("files", _FILES), OUT],
        last=WITHOUT_SEED,
        help=_HELP,
        epilog="Formats:\n\n" + _FORMAT_HELP,
    )
