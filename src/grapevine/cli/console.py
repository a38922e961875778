"""What every command shares: options, consoles, one-line errors and exit codes."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from grapevine.metrics.catalogue import Metric
from grapevine.model.errors import GrapevineError, UsageError

out = Console()
err = Console(stderr=True, highlight=False)

OutOption = Annotated[Path, typer.Option("--out", "-o", help="New folder for the result.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the folder if Grapevine wrote it.")]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, max=2**63 - 1, help="Seed: the same seed gives the same rows, on any machine.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, and no progress.")]
MasterOption = Annotated[
    str | None,
    typer.Option("--master", help="Spark master, e.g. spark://host:7077. Default: all cores of this machine."),
]
MemoryOption = Annotated[str | None, typer.Option("--driver-memory", help="Memory of the Spark driver. Default: 4g.")]
ConfOption = Annotated[list[str] | None, typer.Option("--conf", help="A Spark setting, spark.KEY=VALUE; repeatable.")]


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Exit 2 for the caller's mistakes, 1 for failures; never a stack trace for what we foresaw."""
    try:
        yield
    except UsageError as error:
        err.print(f"[bold red]error[/]: {_plain(error)}", soft_wrap=True)
        raise SystemExit(2) from None
    except GrapevineError as error:
        err.print(f"[bold red]failed[/]: {_plain(error)}", soft_wrap=True)
        raise SystemExit(1) from None
    except Stopped:
        err.print("stopped; nothing was written")
        raise SystemExit(130) from None


def _plain(error: Exception) -> str:
    return str(error).replace("[", r"\[")


class Stopped(BaseException):
    """Ctrl-C or SIGTERM. Not KeyboardInterrupt, which other libraries catch and print in ways of their own."""


def stop_on_signals() -> None:
    """Let Ctrl-C and SIGTERM unwind, so that half-written folders are removed."""

    def stop(number: int, frame: FrameType | None) -> None:
        for again in (signal.SIGINT, signal.SIGTERM):
            signal.signal(again, signal.SIG_IGN)  # nothing may interrupt the cleaning up
        raise Stopped

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)


def print_json(answer: Any) -> None:
    """JSON on standard output, for programs."""
    sys.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")


def table(title: str, *columns: str) -> Table:
    """A table whose first column is text and whose others are numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for i, column in enumerate(columns):
        made.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    return made


def add_metrics(made: Table, metrics: Iterable[Metric], *columns: Mapping[str, float | None]) -> None:
    """Add a row per metric that any of the columns has a value of: its heading, and the values by their metric."""
    for metric in metrics:
        values = [values.get(metric.name) for values in columns]
        if any(value is not None for value in values):
            made.add_row(metric.heading, *map(metric.shown, values))
