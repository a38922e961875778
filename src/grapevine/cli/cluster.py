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

from grapevine.cli.console import (
    JsonOption,
    LogOption,
    SeedOption,
    add_metrics,
    check_log,
    err,
    log_json,
    out,
    print_json,
    table,
)
from grapevine.cli.from_config import add_config_command, option
from grapevine.metrics import live
from grapevine.metrics.findings import CPU_S
from grapevine.metrics.structure import DEGREE, DEGREE_MAX
from grapevine.metrics.timed import DELAY_MS_AT, DELAY_MS_MAX
from grapevine.metrics.traffic import HIT_RATIO
from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.numbers import number
from grapevine.model.settings import none_of
from grapevine.model.workload import Workload
from grapevine.net.cluster_config import ClusterConfig, workload_of
from grapevine.net.cluster_faults import Faults, FullDisk, Kill, Partition
from grapevine.net.options import configs_of, take_settings
from grapevine.net.play import play
from grapevine.systems.registry import systems_with

_MIB = 2**20
_SHOWN = 5  # broken promises
_LINE_S = 5.0  # between two lines about a network in which nobody comes or goes
_LATE_MS = 100.0  # from here on, waiting for the processor is most of a delay
_DELAYS = [DELAY_MS_AT.of(quantile=quantile) for quantile in ("p50", "p99")]
_RECOVERIES = [live.RECOVERY_MS_AT.of(quantile=quantile) for quantile in ("p50", "p99")]
_SUMMARY = (
    *(HIT_RATIO, live.DELIVERED, live.EXPECTED, live.DUPLICATES, live.RECOVERED),
    *(live.EVENTS, live.WITHOUT_PATH, live.SKIPPED, live.UNCONFIRMED, live.EVENTS_PER_S),
    *(*_DELAYS, DELAY_MS_MAX, *_RECOVERIES, live.LOSSES_REPORTED, live.TOPICS_CONNECTED, live.CONNECT_S),
    *(DEGREE, DEGREE_MAX, live.CONNECTIONS, live.CONNECTIONS_MAX),
    *(live.MESSAGES_PER_S_PER_NODE, live.BYTES_PER_S_PER_NODE, live.BYTES_PER_DELIVERY),
    *(CPU_S, live.CPU_SHARE_PER_NODE, live.LATE_MS, live.RSS_PER_NODE_BYTES),
    *(live.NODES_DOWN, live.LOST_PROCESSES, live.FAILURES),
)
_IF_ANY = {  # not worth a line when it is 0
    *(live.WITHOUT_PATH, live.SKIPPED, live.UNCONFIRMED, live.DUPLICATES, live.RECOVERED),
    *(live.NODES_DOWN, live.LOST_PROCESSES, live.FAILURES, live.LOSSES_REPORTED),
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
    partition: str | None,
    full_disk: str | None,
    judge: bool,
    seed: int,
    json: bool,
    log: str,
) -> None:
    """Run the command; the arguments are its options (`add_to`)."""
    check_log(log)
    tables = _settings(system, set_ or [])
    faults = Faults(
        kill=None if kill is None else Kill.parse(kill),
        partition=None if partition is None else Partition.parse(partition),
        full_disk=None if full_disk is None else FullDisk.parse(full_disk),
    )
    loaded = workload_of(config, seed) if workload is None else Workload.load(workload)
    if workload is not None:
        config = replace(config, nodes=loaded.node_count, processes=min(config.processes, loaded.node_count))
    if duration is not None:
        config = replace(config, events=max(1, round(duration * config.rate)))
    with _progress(log=log, quiet=json) as progress:
        summary = play(
            loaded,
            config,
            system=system,
            parameters=tables["parameters"],
            settings=tables["settings"],
            data=data,
            out=out_,
            seed=seed,
            faults=faults,
            judged=judge,
            progress=progress,
        )
    if json:
        print_json(summary)
    else:
        _print_summary(summary, out_)
    if summary["stopped"]:
        raise SystemExit(130)
    if broken := summary.get("broken"):
        for sentence in broken[:_SHOWN]:
            err.print(f"  {sentence}", markup=False, soft_wrap=True)
        raise GrapevineError(f"{len(broken):,} promises were broken, of which the first are said above")
    if not summary["is_complete"]:
        missing = f"{summary['expected'] - summary['delivered']:,} of {summary['expected']:,} deliveries"
        raise GrapevineError(
            f"{config.settle_s:g} s after the last event {missing} were missing, and {summary['unconfirmed']:,} events"
            " not confirmed; give a longer --settle-s, or fewer nodes and events for this machine"
        )


def _settings(system: str, pairs: list[str]) -> dict[str, dict[str, Any]]:
    """`settings` of nodes and `parameters` of the system from KEY=VALUE pairs; UsageError with all mistakes at once."""
    tables: dict[str, dict[str, Any]] = {"settings": {}, "parameters": {}}
    live = systems_with("live")
    mistakes = [] if system in live else [none_of(system, live, "system=")]
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
def _progress(*, log: str, quiet: bool) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """What to call with every state of the network: it renews a table on a terminal, and prints a line every five
    seconds elsewhere; or it writes every state as a line of JSON. None when quiet."""
    if log == "json":
        yield log_json
        return
    if quiet:
        yield None
        return
    before: dict[str, Any] = {}
    if not err.is_terminal:

        def say(now: dict[str, Any]) -> None:
            is_news = not before or any(now[name] != before[name] for name in ("stage", "nodes"))
            if is_news or now["time_s"] - before["time_s"] >= _LINE_S:
                err.print(_line(now), soft_wrap=True)
                before.update(now)

        yield say
        return
    with Live(console=err, refresh_per_second=4, transient=True) as screen:

        def draw(now: dict[str, Any]) -> None:
            screen.update(Group(_line(now), _groups_table(now, before or now)))
            before.update(now)

        yield draw


def _line(now: dict[str, Any]) -> str:
    """The state of the network in one line: who is there, with how many neighbours, and what has arrived."""
    parts = [f"{now['stage']}: {now['nodes']} of {now['nodes_wanted']} nodes are up"]
    if now["stage"] != "starting":
        parts.append(f"{now[DEGREE.name]:.1f} neighbours each, at most {now[DEGREE_MAX.name]}")
        parts.append(f"topics connected {now['connected']:.0%}")
    if now["published"]:
        parts.append(f"{now['published']:,} of {now['events_wanted']:,} events")
    known = [(metric, now[metric.name]) for metric in (HIT_RATIO, *_DELAYS) if now[metric.name] is not None]
    return " · ".join(parts + [f"{metric.label} {metric.shown_with_unit(value)}" for metric, value in known])


def _groups_table(now: dict[str, Any], before: dict[str, Any]) -> Table:
    """A row per worker process, and one for all; rates are since the state before."""
    seconds = max(now["time_s"] - before["time_s"], 1e-9)
    made = table("", "group", "nodes", "degree", "max", "peers", "max", "messages/s", "CPU %", "MiB a node")
    earlier = {row["group"]: row for row in before["groups"]}

    def add(name: str, row: dict[str, Any], was: dict[str, Any], rss: float) -> None:
        made.add_row(
            name,
            number(row["nodes"]),
            f"{row[DEGREE.name]:.1f}",
            number(row[DEGREE_MAX.name]),
            f"{row['connections']:.1f}",
            number(row["connections_max"]),
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
    add_metrics(made, (metric for metric in _SUMMARY if metric not in _IF_ANY or summary.get(metric.name)), summary)
    out.print(made)
    if summary["late_ms"] > _LATE_MS:
        err.print("loops could not keep up: delays are this machine's, not the overlay's; give fewer nodes or events")
    if folder is not None:
        out.print(f"Next: grapevine collect {folder / 'diaries'} --out DIR", highlight=False)


_HELP = """Run a network of live nodes on this machine, and count what arrives.

Nodes live in a few processes and talk over real sockets. Subscriptions are generated (correlated, as in Vitis) or those
of [bold]--workload[/]. Random subscribers publish in random topics; who got what, and when, is counted from what
applications read. Nothing is published before all topics are connected; if that takes too long, or if a delivery is
missing in the end, the exit code is 1. [bold]--kill 0.5@10[/] kills half of the processes after 10 s."""


def _fault_options() -> list[inspect.Parameter]:
    """What is to befall the network, and who says whether it has kept its promises (`cluster_faults`, `judge`)."""
    faults = {
        "kill": (
            "SHARE@SECOND[+SECONDS]",
            "Kill a share of the processes, and start them again so many seconds later, e.g. 0.3@10+5.",
        ),
        "partition": (
            "SHARE@SECOND+SECONDS",
            "Cut a share of the processes off from the others, e.g. 0.5@10+120. Needs root.",
        ),
        "full_disk": ("NODES@SECOND+SECONDS", "Let disks of nodes be full, e.g. 5@10+30. Needs root."),
    }
    judge = typer.Option("--judge", help="Read under names, and look whether every promise to named readers is kept.")
    return [
        *(
            option(name, Annotated[str | None, typer.Option(metavar=form, help=text)], None)
            for name, (form, text) in faults.items()
        ),
        option("judge", Annotated[bool, judge], False),
    ]


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
        *_fault_options(),
        option("seed", SeedOption, 1),
        option("json", JsonOption, False),
        option("log", LogOption, "plain"),
    ]
    add_config_command(app, "cluster", ClusterConfig, _run_cluster, first=[], last=last, help=_HELP)
