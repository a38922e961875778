"""What a running simulation shows on the error stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from grapevine.cli.console import err
from grapevine.metrics.findings import RING, UTILITY
from grapevine.metrics.traffic import HIT_RATIO


@contextmanager
def live_progress(rounds: int, *, quiet: bool) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """One line that moves with the rounds on a terminal, and on a pipe a line now and then."""
    if quiet:
        yield None
        return
    if not err.is_terminal:
        yield lambda row: _print_row(row, rounds)
        return
    columns = (
        TextColumn("round {task.completed}/{task.total}"),
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, TimeElapsedColumn(), console=err) as bar:
        line = bar.add_task("compiling", total=rounds)
        yield lambda row: bar.update(line, completed=row["round"], description=_describe(row))


def _print_row(row: dict[str, Any], rounds: int) -> None:
    if row["round"] == rounds or (row["round"] * 8) % rounds < 8 * max(1, rounds // 16):
        err.print(f"round {row['round']}/{rounds}: {_describe(row)}")


def _describe(row: dict[str, Any]) -> str:
    known = [(metric, row[metric.name]) for metric in (RING, UTILITY, HIT_RATIO) if row.get(metric.name) is not None]
    parts = [f"{metric.label} {metric.shown(value)}" for metric, value in known]
    if row.get("bytes_sent"):
        parts.append(f"{row['bytes_sent'] / 1e9:.2f} GB between blocks")
    return " · ".join([f"{row['online']:,} online", *parts])
