"""`grapevine peers`, `topics` and `bench`: what a running node of this machine has, and how fast it is."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.markup import escape

from grapevine.cli.console import JsonOption, out, print_json, table
from grapevine.cli.live import NodeOption


def peers(node: NodeOption = None, json: JsonOption = False) -> None:
    """List whom a node of this machine is linked to, and in how many topics they exchange events."""
    from grapevine.net.remote import Remote

    rows = Remote.find(node).peers()
    if json:
        print_json(rows)
        return
    made = table(f"{len(rows)} links", "peer", "endpoint", "topics")
    for row in rows:
        made.add_row(row["peer"][:16], escape(row["endpoint"]), f"{row['topics']:,}")
    out.print(made)


def topics(node: NodeOption = None, json: JsonOption = False) -> None:
    """List the topics that programs of a node want or publish in: partners, missing events, named readers."""
    from grapevine.net.remote import Remote

    rows = Remote.find(node).topics()
    if json:
        print_json(rows)
        return
    made = table(f"{len(rows)} topics", "topic", "wanted", "partners", "missing", "readers")
    for row in rows:
        wanted, readers = "yes" if row["wanted"] else "no", escape(", ".join(row["readers"]))
        made.add_row(escape(row["topic"]), wanted, f"{row['partners']:,}", f"{row['missing']:,}", readers)
    out.print(made)


def bench(
    node: NodeOption = None,
    messages: Annotated[int, typer.Option("--messages", "-n", min=1, help="Events to publish.")] = 1_000,
    size: Annotated[int, typer.Option(min=8, help="Bytes of a payload.")] = 128,
    publishers: Annotated[int, typer.Option(min=1, max=64, help="Programs that publish at the same time.")] = 4,
    topic: Annotated[
        str | None, typer.Option(help="The topic. Default: bench/, and the number of this process.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure a running node as programs of its machine see it: how fast it takes events, and gives them back."""
    from grapevine.net.benchmark import Measured, measure
    from grapevine.net.remote import Remote

    found = measure(Remote.find(node), topic or f"bench/{os.getpid()}", Measured(messages, size, publishers))
    delays_ms = {name: 1e3 * found.delay_s(share) for name, share in (("50", 0.5), ("99", 0.99), ("100", 1.0))}
    rates = {"published": messages / found.published_s, "read": messages / found.read_s}
    if json:
        about = {"messages": messages, "size": size, "publishers": publishers}
        print_json(about | {"per_second": rates, "delay_ms": delays_ms})
        return
    for name, rate in rates.items():
        volume = rate * size / 1_024
        out.print(
            f"[bold]{name:9}[/] {rate:,.0f} msgs/s ~ {volume:,.1f} KiB/s, {messages:,} of {size} bytes", highlight=False
        )
    shown = ", ".join(f"{name} % within {value:,.2f} ms" for name, value in delays_ms.items())
    out.print(f"[bold]delay    [/] {shown}", highlight=False)
