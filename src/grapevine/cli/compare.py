"""`grapevine compare`: from a trace to a recommendation."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from grapevine.cli.console import ConfOption, JsonOption, MasterOption, MemoryOption, err, out, print_json, table
from grapevine.cli.from_config import add_config_command, option
from grapevine.cli.storage import stage_of
from grapevine.comparison.candidates import CompareConfig
from grapevine.comparison.costs import Choice
from grapevine.comparison.run import LINKS, Comparison
from grapevine.comparison.run import compare as compare_stage
from grapevine.model.errors import UsageError
from grapevine.model.numbers import number

_HELP = """Compare the systems on a trace, and say which one to take, with how many links, at what cost.

SOURCE is a workload's folder, or the files of a raw trace, whose format is guessed and said. What is too large is cut
to a sample. Every system that fits runs as a Spark task, once for each budget of connections if it can keep to one; a
second set of runs lets many nodes crash at once. With the same [bold]--out[/] a comparison goes on where it stopped."""
_SOURCE = Annotated[list[str], typer.Argument(metavar="SOURCE…", help="A workload's folder, or files of a trace.")]
_OUT = Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Folder for the runs, the tables and the page.")]
_FORMAT = Annotated[str | None, typer.Option("--format", help="Format of the files. Default: by their first lines.")]
_SYSTEMS = Annotated[
    str | None, typer.Option("--systems", metavar="A,B", help="Systems to compare. Default: all that run by rounds.")
]
_LINKS = Annotated[str, typer.Option("--links", metavar="N,N", help="Budgets of connections a node, both ways.")]


def add_to(app: typer.Typer) -> None:
    """Add the command: its options are the fields of `CompareConfig`, and a few of its own."""
    add_config_command(
        app,
        "compare",
        CompareConfig,
        _run,
        first=[
            option("source", _SOURCE),
            option("out_", _OUT, "comparison"),
            option("format", _FORMAT, None),
            option("systems", _SYSTEMS, None),
            option("links", _LINKS, ",".join(map(str, LINKS))),
        ],
        last=[
            option("json", JsonOption, False),
            option("master", MasterOption, None),
            option("driver_memory", MemoryOption, None),
            option("conf", ConfOption, None),
        ],
        help=_HELP,
    )


def _run(
    config: CompareConfig,
    *,
    source: list[str],
    out_: str,
    format: str | None,
    systems: str | None,
    links: str,
    json: bool,
    conf: list[str] | None,
    **spark: Any,
) -> None:
    names = None if systems is None else [name.strip() for name in systems.split(",") if name.strip()]
    budgets = [_whole(text) for text in links.split(",") if text.strip()]
    stage = stage_of(conf, **spark, quiet=json)
    found = compare_stage(
        source, out=out_, systems=names, links=budgets, format=format, stage=stage, **config.as_dict()
    )
    if json:
        print_json(found.as_dict() | {"folder": str(found.folder)})
    else:
        _print(found)
    if found.failed:
        err.print(f"{found.failed} runs failed: grapevine report {escape(str(found.folder))}/runs says why")


def _whole(text: str) -> int:
    if not text.strip().isdecimal():
        raise UsageError(f"--links {text.strip()!r}: needs whole numbers, e.g. 10,15,25")
    return int(text)


def _print(found: Comparison) -> None:
    columns = "", "deliv.", "crash", "conn.", "max", "B/s", "hops", "p99", "busiest"
    made = table(escape(f"Systems on {found.trace}"), *columns)
    for choice in found.choices:
        made.add_row(*_cells(choice, _MARKS[found.judgement.kind(choice)]))
    out.print(made)
    out.print(_LEGEND)
    for sentence in found.judgement.sentences:
        out.print(escape(sentence), soft_wrap=True)
    out.print(f"\nThe page: [bold]{escape(str(found.page))}[/]")


_MARKS = {"best": "→", "front": "·", "central": "°", "beaten": " "}
_LEGEND = """[dim]→ take this   ° needs knowledge of the whole network
· on the front: nothing beats it in connections, bytes and hops at once
deliv., crash: share delivered, and while it mends after a crash
conn., max: connections of a mean node, and of any
B/s: that a mean node receives   busiest: notifications a day at the busiest
hops, p99: of a mean delivery, and of 99 % of them[/]
"""


def _cells(choice: Choice, mark: str) -> list[str]:
    crash, links = choice.delivered_in_crash, "" if choice.links is None else f" {choice.links}"
    return [
        f"{mark} {choice.system}{links}",
        f"{choice.delivered:.1%}",
        "" if crash is None else f"{crash:.1%}",
        f"{choice.connections:.1f}",
        number(choice.connections_max),
        number(choice.bytes_a_second),
        f"{choice.hops:.2f}",
        number(choice.hops_p99),
        number(round(choice.busiest)),
    ]
