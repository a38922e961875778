"""`grapevine simulate`, `systems` and `export`: run a system on a workload, say what there is, hand the overlay on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from grapevine.cli.console import (
    ForceOption,
    JsonOption,
    OutOption,
    SeedOption,
    add_metrics,
    err,
    out,
    print_json,
    table,
)
from grapevine.cli.from_config import add_config_command, option
from grapevine.metrics.findings import RING, UTILITY
from grapevine.metrics.headlines import HEADLINE
from grapevine.metrics.traffic import HIT_RATIO
from grapevine.model.config import Config, field_types
from grapevine.model.errors import UsageError
from grapevine.model.folder import new_folder
from grapevine.model.workload import Workload, load_churn
from grapevine.sim.churn import REJOINS, Schedule, flash_crowd, from_sessions, mass_failure, share_at
from grapevine.sim.clock import ClockConfig
from grapevine.sim.result import KIND, Simulation, export_links
from grapevine.sim.simulate import RunConfig, simulate, system_named
from grapevine.sim.transcript import Transcript
from grapevine.systems import PEER_SYSTEMS, all_systems


def parse_settings(owner: str, config: type[Config], settings: list[str], *, flag: str = "--set") -> dict[str, Any]:
    """`key=value` texts as parameters of a configuration; `none` stands for no value."""
    types, found = field_types(config), {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{flag} {text}: write it as key=value; {owner} has {', '.join(types)}")
        if key not in types:
            raise UsageError(f"{owner} has no parameter {key}; it has {', '.join(types)}")
        try:
            found[key] = None if value.lower() == "none" else _parse(types[key], value)
        except ValueError:
            raise UsageError(f"{flag} {text}: {value!r} is not a valid {types[key].__name__}") from None
    return found


def _clock(system: str, run: RunConfig, settings: list[str], latency_from: Path | None) -> ClockConfig | None:
    """How a system of peers runs; None for systems that run by rounds. What would be ignored is refused."""
    if system not in PEER_SYSTEMS:
        if settings or latency_from:
            names = ", ".join(PEER_SYSTEMS)
            raise UsageError(f"--clock, --latency-from: {system} runs by rounds; they are for {names}")
        return None
    if run != RunConfig():
        given = [name for name, value in run.as_dict().items() if value != RunConfig().as_dict()[name]]
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{options}: {system} runs in virtual time; say how with --clock, e.g. --clock hours=2")
    chosen = parse_settings("the clock", ClockConfig, settings, flag="--clock")
    return ClockConfig(**({"latency": "recorded"} if latency_from else {}) | chosen)


def _parse(kind: type, text: str) -> Any:
    if kind is bool and text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true" if kind is bool else kind(text)


def _schedule(
    workload: Workload,
    *,
    churn: Path | None,
    round_s: float,
    spread_s: float,
    start_s: float,
    crash: str | None,
    crowd: str | None,
    rejoin: str,
    graceful: bool,
    event_rounds: int | None,
    events_at_once: int,
    first_round: int,
    seed: int,
) -> Schedule | None:
    if sum(given is not None for given in (churn, crash, crowd)) > 1:
        raise UsageError("--churn, --crash and --crowd: give one of them")
    playing = {
        "round-seconds": round_s != 1.0,
        "spread-seconds": spread_s != 0.0,
        "start-seconds": start_s != 0.0,
        "rejoin": rejoin != REJOINS[0],
        "graceful": graceful,
        "event-rounds": event_rounds is not None,
        "events-at-once": events_at_once != 1,
        "first-round": first_round != 1,
    }
    if churn is None and any(playing.values()):
        given = ", ".join(f"--{name}" for name, is_given in playing.items() if is_given)
        raise UsageError(f"{given}: say how a churn trace is played; give one with --churn")
    if churn is not None:
        sessions = load_churn(churn)
        return from_sessions(
            sessions,
            workload.node_count,
            round_s=round_s,
            spread_s=spread_s,
            start_s=start_s,
            rejoin=rejoin,
            graceful=graceful,
            event_rounds=event_rounds,
            events_at_once=events_at_once,
            first_round=first_round,
            seed=seed,
        )
    if crash is not None:
        share, round = share_at(crash)
        return mass_failure(workload.node_count, share=share, round=round, seed=seed)
    if crowd is not None:
        share, round = share_at(crowd)
        return flash_crowd(workload.node_count, share=share, round=round, seed=seed)
    return None


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
    return " · ".join([f"{row['online']:,} online", *parts])


def print_simulations(runs: list[Simulation], title: str) -> None:
    """Headline numbers, a column per run."""
    made = table(title, "", *(run.system for run in runs))
    add_metrics(made, HEADLINE, *(run.summary for run in runs))
    out.print(made)


def _run_simulate(
    run: RunConfig,
    *,
    system: str,
    workload: Path,
    out_: Path,
    set_: list[str] | None,
    clock: list[str] | None,
    latency_from: Path | None,
    transcript: bool,
    seed: int,
    threads: int | None,
    force: bool,
    json: bool,
    **churn: Any,
) -> None:
    parameters = parse_settings(system, system_named(system).config_type, set_ or [])
    timed = _clock(system, run, clock or [], latency_from)
    if timed and threads is not None:
        raise UsageError(f"--threads: {system} runs in virtual time, on one core; leave it out")
    loaded = Workload.load(workload, latency=latency_from)
    schedule = _schedule(loaded, seed=seed, **churn)
    rounds = int(timed.end_s) if timed else run.rounds
    with (
        new_folder(out_, kind=KIND, force=force) as partial,
        live_progress(rounds, quiet=json) as progress,
        _transcript(partial, system, wanted=transcript) as lines,
    ):
        done = simulate(
            system,
            loaded,
            seed=seed,
            threads=threads,
            schedule=schedule,
            run=run,
            clock=timed,
            latency=loaded.latency,
            transcript=lines,
            progress=progress,
            **parameters,
        )
        done.write(partial)
    if json:
        print_json({"folder": str(out_), "system": system, "summary": done.summary})
        return
    print_simulations([done], escape(f"{system} on {loaded.name}: {out_}"))


@contextmanager
def _transcript(folder: Path, system: str, *, wanted: bool) -> Iterator[Transcript | None]:
    """A file beside the tables, written as the run goes."""
    if not wanted:
        yield None
        return
    if system not in PEER_SYSTEMS:
        raise UsageError(
            f"--transcript: {system} runs by rounds and sends no messages; it is for {', '.join(PEER_SYSTEMS)}"
        )
    with (folder / "transcript.txt").open("w") as file:
        yield Transcript(write=file.write)


def systems(
    name: Annotated[str | None, typer.Argument(help="A system; without it, all are listed.")] = None,
    json: JsonOption = False,
) -> None:
    """Say which systems there are; with a name, every parameter, its default and where it comes from."""
    chosen = [system_named(name)] if name else list(all_systems().values())
    if json:
        print_json([_describe_system(system) for system in chosen])
        return
    for system in chosen:
        out.print(
            f"[bold]{system.name}[/]  {escape(system.summary)}\n  [dim]{escape(system.paper)}[/]", highlight=False
        )
        if name:
            _print_parameters("", system.config_type)
            if name in PEER_SYSTEMS:
                _print_parameters("the clock that it runs by (--clock KEY=VALUE)", ClockConfig)


def _print_parameters(title: str, config: type[Config]) -> None:
    made = table(title, "parameter", "default", "meaning", "source")
    for column in made.columns:
        column.justify = "left"
    for field in dataclasses.fields(config):
        meta = field.metadata
        made.add_row(field.name, str(field.default).lower(), escape(meta["help"]), escape(meta["source"]))
    out.print(made)


def _describe_system(system: Any) -> dict[str, Any]:
    described = {"name": system.name, "summary": system.summary, "paper": system.paper}
    described["parameters"] = _parameters(system.config_type)
    return described | ({"clock": _parameters(ClockConfig)} if system.name in PEER_SYSTEMS else {})


def _parameters(config: type[Config]) -> list[dict[str, Any]]:
    return [
        {"name": field.name, "default": field.default, **{k: v for k, v in field.metadata.items() if v is not None}}
        for field in dataclasses.fields(config)
    ]


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A simulation.")],
    target: Annotated[Path, typer.Argument(metavar="FILE", help="New file, .graphml or .edges.")],
    format: Annotated[str | None, typer.Option(help="graphml or edges. Default: by the file's name.")] = None,
) -> None:
    """Write the overlay of a simulation for networkx, igraph or Gephi."""
    run = Simulation.load(folder)
    export_links(run.links, target, format=format)
    out.print(f"{run.links.num_rows:,} links: [bold]{escape(str(target))}[/]", highlight=False)


_SIMULATE_HELP = """Run a system on a workload, and measure what delivery costs.

[bold]--set[/] gives the system's own parameters, e.g. --set table_size=20; [bold]grapevine systems NAME[/] lists them.
Systems of peers (rappel, scribe) run in virtual time: [bold]--clock[/] says how long and on which latencies.
Prints the headline numbers, and writes the tables events, node_load, topic_overlay, links and rounds."""


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    first = [
        option("system", Annotated[str, typer.Argument(metavar="SYSTEM", help=f"One of {', '.join(all_systems())}.")]),
        option("workload", Annotated[Path, typer.Option("--workload", "-w", metavar="DIR", help="The workload.")]),
        option("out_", OutOption),
        option(
            "set_",
            Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter; repeatable.")],
            None,
        ),
        option(
            "clock",
            Annotated[
                list[str] | None,
                typer.Option("--clock", metavar="KEY=VALUE", help="How peers run in virtual time, e.g. hours=2."),
            ],
            None,
        ),
        option(
            "latency_from",
            Annotated[Path | None, typer.Option(metavar="DIR", help="Latencies of this workload, for peers.")],
            None,
        ),
        option(
            "transcript",
            Annotated[bool, typer.Option("--transcript", help="Write every message of peers to transcript.txt.")],
            False,
        ),
    ]
    last = [
        option(
            "churn",
            Annotated[Path | None, typer.Option(metavar="DIR", help="Nodes come and go as in this workload's churn.")],
            None,
        ),
        option(
            "round_s",
            Annotated[float, typer.Option("--round-seconds", help="Seconds of the churn trace per round.")],
            1.0,
        ),
        option(
            "spread_s",
            Annotated[
                float,
                typer.Option("--spread-seconds", help="Move each session by up to so much: undoes probing bursts."),
            ],
            0.0,
        ),
        option(
            "start_s",
            Annotated[float, typer.Option("--start-seconds", min=0, help="Skip so much of the churn trace.")],
            0.0,
        ),
        option(
            "crash",
            Annotated[str | None, typer.Option(metavar="SHARE@ROUND", help="Mass failure, e.g. 0.3@80.")],
            None,
        ),
        option(
            "crowd",
            Annotated[str | None, typer.Option(metavar="SHARE@ROUND", help="Flash crowd, e.g. 0.5@80.")],
            None,
        ),
        option(
            "rejoin",
            Annotated[
                str,
                typer.Option(help=f"Who comes back: {' or '.join(REJOINS)} (another node with another interest)."),
            ],
            REJOINS[0],
        ),
        option(
            "graceful",
            Annotated[bool, typer.Option("--graceful", help="Nodes of the churn trace say goodbye before they leave.")],
            False,
        ),
        option(
            "event_rounds",
            Annotated[
                int | None,
                typer.Option(min=1, help="Play the churn trace's order alone: one join or leave every so many rounds."),
            ],
            None,
        ),
        option(
            "events_at_once",
            Annotated[int, typer.Option(min=1, help="With --event-rounds: so many together.")],
            1,
        ),
        option(
            "first_round",
            Annotated[int, typer.Option(min=1, help="With --event-rounds: the round of the first.")],
            1,
        ),
        option("seed", SeedOption, 1),
        option("threads", Annotated[int | None, typer.Option(min=1, help="Threads. Default: all cores.")], None),
        option("force", ForceOption, False),
        option("json", JsonOption, False),
    ]
    add_config_command(app, "simulate", RunConfig, _run_simulate, first=first, last=last, help=_SIMULATE_HELP)
    app.command()(systems)
    app.command()(export)
