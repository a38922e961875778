"""What every command shares: options, consoles, one-line errors and exit codes.

Answers go to standard output (`out`), progress and errors to standard error (`err`).
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.extras import missing_extra
from grapevine.model.log import LOGS

if TYPE_CHECKING:
    from grapevine.metrics.catalogue import Metric

out = Console()
err = Console(stderr=True, highlight=False)

OutOption = Annotated[
    str,
    typer.Option("--out", "-o", metavar="DIR", help="New folder for the result: a path, or a URL such as hdfs://…."),
]
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


LogOption = Annotated[
    str,
    typer.Option("--log", metavar="plain|json", help="Progress on the error stream: lines for people, or JSON lines."),
]


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors of the block into one line and an exit code: 2 for the caller's mistakes, 1 for failures, 130 for a
    stop.

    A package that is missing because its extra was not installed is the caller's mistake, too. An exception that is not
    ours keeps its stack trace: it is a bug.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        sentence = missing_extra(error)
        if sentence is None:
            raise
        err.print(f"[bold red]error[/]: this command {_plain(sentence)}", soft_wrap=True)
        raise SystemExit(2) from None
    except UsageError as error:
        err.print(f"[bold red]error[/]: {_plain(error)}", soft_wrap=True)
        raise SystemExit(2) from None
    except GrapevineError as error:
        err.print(f"[bold red]failed[/]: {_plain(error)}", soft_wrap=True)
        raise SystemExit(1) from None
    except Stopped:
        err.print("stopped; nothing was left half-written")
        raise SystemExit(130) from None


def _plain(error: Exception | str) -> str:
    """The message, in which rich takes no bracket for markup."""
    return str(error).replace("[", r"\[")


class Stopped(BaseException):
    """Ctrl-C or SIGTERM. Not KeyboardInterrupt, which other libraries catch and print in ways of their own."""


def stop_on_signals() -> None:
    """Let Ctrl-C and SIGTERM raise `Stopped` in the main thread, so that half-written folders are removed.

    Further signals are ignored while that happens.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        for again in (signal.SIGINT, signal.SIGTERM):
            signal.signal(again, signal.SIG_IGN)  # nothing may interrupt the cleaning up
        if "pyspark" in sys.modules:
            from grapevine.pipeline.session import leave_call  # here, since Spark takes a while to import

            leave_call()
        raise Stopped

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)


def print_json(answer: Any) -> None:
    """Print an answer on standard output as JSON, for programs."""
    sys.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")


def check_log(log: str) -> None:
    """UsageError unless this is a form in which progress can be written."""
    if log not in LOGS:
        from grapevine.model.settings import none_of  # here, since `grapevine --help` needs no numpy

        raise UsageError(none_of(log, LOGS, "--log "))


def log_json(line: Mapping[str, Any]) -> None:
    """Write a line of JSON on the error stream, for programs that watch."""
    sys.stderr.write(json.dumps(line, ensure_ascii=False, default=lambda value: value.item()) + "\n")
    sys.stderr.flush()


def table(title: str, *columns: str) -> Table:
    """A table for people, to be filled and printed: the first column is text, the others are numbers."""
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
