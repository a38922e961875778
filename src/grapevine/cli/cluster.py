"""`grapevine cluster`: a whole network of live nodes on this machine, with a table that is renewed while it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table

from grapevine.cli.console import JsonOption, SeedOption, err, out, print_json, shown, table
from grapevine.cli.from_config import add_config_command, option
from grapevine.model.errors import UsageError
from grapevine.model.workload import Workload
from grapevine.net.cluster import ClusterConfig, workload_of
from grapevine.net.options import configs_of, take_settings
from grapevine.net.play import Kill, play
from grapevine.systems.registry import systems_with

_MIB = 2**20
_LATE_MS = 100.0  # from here on, waiting for the processor is most of a delay
HEADLINE = {  # what of a summary is printed → how it is called; an indented line belongs to the one above
    "hit_ratio": "hit ratio",
    "delivered": "deliveries",
    "expected": "  expected",
    "duplicates": "  twice",
    "recovered": "  recovered",
    "events": "events",
    "without_path": "  without a path at first",
    "skipped": "  not published: publishers down",
    "unconfirmed": "  not confirmed",
    "events_per_s": "  a second",
    "delay_ms_p50": "delay, median, ms",
    "delay_ms_p99": "delay, p99, ms",
    "delay_ms_max": "delay, max, ms",
    "topics_connected": "topics connected",
    "connect_s": "  after, s",
    "degree": "degree, mean",
    "degree_max": "degree, max",
    "connections": "connections, mean",
    "connections_max": "connections, max",
    "messages_per_s_per_node": "messages a second and node",
    "bytes_per_s_per_node": "bytes a second and node",
    "bytes_per_delivery": "bytes a delivery, gossip included",
    "cpu_s": "CPU, s",
    "cpu_share_per_node": "CPU, share of a core and node",
    "late_ms": "loops behind their work, mean, ms",
    "rss_per_node_bytes": "memory a node, MiB",
    "nodes_down": "nodes down",
    "lost_processes": "processes lost",
    "failures": "failures",
}
_IF_ANY = {  # printed only when it is not 0
    "without_path",
    "skipped",
    "unconfirmed",
    "duplicates",
    "recovered",
    "nodes_down",
    "lost_processes",
    "failures",
}


def _run_cluster(
    config: ClusterConfig,
    *,
    system: str,
    workload: Path | None,
    duration: float | None,
    set_: list[str] | None,
    data: Path | None,
    out_: Path | None,
    kill: str | None,
    restart_after: float | None,
    seed: int,
    json: bool,
) -> None:
    """Run the command; the arguments are its options (`add_to`)."""
    tables = _settings(system, set_ or [])
    faults = None if kill is None else Kill.parse(kill)
    loaded = workload_of(config, seed) if workload is None else Workload.load(workload)
    if workload is not None:
        config = replace(config, nodes=loaded.node_count, processes=min(config.processes, loaded.node_count))
    if duration is not None:
        config = replace(config, events=max(1, round(duration * config.rate)))
    with _progress(quiet=json) as progress:
        summary = play(
            loaded,
            config,
            system=system,
            parameters=tables["parameters"],
            settings=tables["settings"],
            data=data,
            out=out_,
            seed=seed,
            kill=faults,
            restart_s=restart_after,
            progress=progress,
        )
    if json:
        print_json(summary)
    else:
        _print_summary(summary, out_)
    if summary["stopped"]:
        raise SystemExit(130)


def _settings(system: str, pairs: list[str]) -> dict[str, dict[str, Any]]:
    """`settings` of nodes and `parameters` of the system from KEY=VALUE pairs; UsageError with all mistakes at once."""
    tables: dict[str, dict[str, Any]] = {"settings": {}, "parameters": {}}
    live = systems_with("live")
    mistakes = [] if system in live else [f"system={system!r}: choose one of {', '.join(live)}"]
    configs = {name: kind for name, kind in configs_of(system).items() if name in tables}
    mistakes += take_settings(configs, pairs, tables)
    for name, kind in configs.items():
        try:
            kind(**tables[name])
        except UsageError as error:
            mistakes.append(str(error))
    if mistakes:
        raise UsageError("; ".join(mistakes))
    return tables


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """What to call with every state of the network: it renews a table on a terminal, and prints a line every five
    seconds elsewhere. None when quiet."""
    if quiet:
        yield None
        return
    before: dict[str, Any] = {}
    if not err.is_terminal:

        def say(now: dict[str, Any]) -> None:
            if not before or now["stage"] != before["stage"] or now["time_s"] - before["time_s"] >= 5:
                err.print(_line(now), soft_wrap=True)
                before.update(now)

        yield say
        return
    with Live(console=err, refresh_per_second=4, transient=True) as live:

        def draw(now: dict[str, Any]) -> None:
            live.update(Group(_line(now), _groups_table(now, before or now)))
            before.update(now)

        yield draw


def _line(now: dict[str, Any]) -> str:
    """The state of the network in one line."""
    hit = "" if now["hit_ratio"] is None else f" · hit ratio {now['hit_ratio']:.2%}"
    return (
        f"{now['stage']}: {now['nodes']} nodes · topics connected {now['connected']:.0%} · degree {now['degree']:.1f}"
        f" · {now['published']:,} events{hit} · p50 {shown(now['delay_ms_p50'])} ms"
        f" · p99 {shown(now['delay_ms_p99'])} ms"
    )


def _groups_table(now: dict[str, Any], before: dict[str, Any]) -> Table:
    """A row per worker process, and one for all; rates are since the state before."""
    seconds = max(now["time_s"] - before["time_s"], 1e-9)
    made = table("", "group", "nodes", "degree", "max", "peers", "max", "messages/s", "CPU %", "MiB a node")
    earlier = {row["group"]: row for row in before["groups"]}

    def add(name: str, row: dict[str, Any], was: dict[str, Any], rss: float) -> None:
        made.add_row(
            name,
            shown(row["nodes"]),
            f"{row['degree']:.1f}",
            shown(row["degree_max"]),
            f"{row['connections']:.1f}",
            shown(row["connections_max"]),
            f"{max(row['messages'] - was['messages'], 0) / seconds:,.0f}",
            f"{max(row['cpu_s'] - was['cpu_s'], 0.0) / seconds:.0%}",
            f"{rss / _MIB:,.1f}",
        )

    for row in now["groups"]:
        add(str(row["group"]), row, earlier.get(row["group"], row), row["rss_bytes"] / max(row["nodes"], 1))
    add("all", now, before, now["rss_per_node_bytes"])
    made.caption = (
        f"{(now['published'] - before['published']) / seconds:,.0f} events/s, "
        f"{(now['delivered'] - before['delivered']) / seconds:,.0f} deliveries/s"
    )
    made.caption_justify = "left"
    return made


def _print_summary(summary: dict[str, Any], folder: Path | None) -> None:
    if "nodes" not in summary:
        err.print("stopped before the network was up")
        return
    title = f"{summary['system']}: {summary['nodes']} nodes in {summary['processes']} processes"
    title += f", {summary['topics']} topics, {summary['subscriptions']:,} subscriptions"
    out.print(f"[bold]{title}[/]", highlight=False)
    made = table("", "", "")
    made.show_header = False
    for name, label in HEADLINE.items():
        value = summary[name]
        if name in _IF_ANY and not value:
            continue
        if name in ("hit_ratio", "topics_connected") and value is not None:
            made.add_row(label, f"{value:.2%}")
        else:
            made.add_row(label, shown(value / _MIB if name == "rss_per_node_bytes" else value))
    out.print(made)
    if summary["late_ms"] > _LATE_MS:
        err.print("loops could not keep up: delays are this machine's, not the overlay's; give fewer nodes or events")
    if folder is not None:
        out.print(f"Next: grapevine collect {folder / 'diaries'} --out DIR", highlight=False)


_HELP = """Run a network of live nodes on this machine, and count what arrives.

Nodes live in a few processes and talk over real sockets. Subscriptions are generated (correlated, as in Vitis) or those
of [bold]--workload[/]. Random subscribers publish in random topics; who got what, and when, is counted from what
applications read. [bold]--kill 0.5@10[/] kills half of the processes after 10 s."""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app: an option for every field of `ClusterConfig`, and those below."""
    folder = Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the nodes' folders here.")]
    last: list[inspect.Parameter] = [
        option("system", Annotated[str, typer.Option(help=f"One of {', '.join(systems_with('live'))}.")], "vitis"),
        option(
            "workload",
            Annotated[
                Path | None, typer.Option("--workload", "-w", metavar="DIR", help="Subscriptions of a workload.")
            ],
            None,
        ),
        option(
            "duration",
            Annotated[float | None, typer.Option(min=0.001, help="Seconds of publishing, instead of --events.")],
            None,
        ),
        option(
            "set_",
            Annotated[
                list[str] | None,
                typer.Option("--set", metavar="KEY=VALUE", help="A setting of nodes or system; repeatable."),
            ],
            None,
        ),
        option("data", folder, None),
        option(
            "out_",
            Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="New folder: diaries and summary.")],
            None,
        ),
        option(
            "kill",
            Annotated[str | None, typer.Option(metavar="SHARE@SECOND", help="Kill processes, e.g. 0.5@10.")],
            None,
        ),
        option(
            "restart_after",
            Annotated[float | None, typer.Option(min=0, help="Start them again so many seconds later.")],
            None,
        ),
        option("seed", SeedOption, 1),
        option("json", JsonOption, False),
    ]
    add_config_command(app, "cluster", ClusterConfig, _run_cluster, first=[], last=last, help=_HELP)
