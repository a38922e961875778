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
    ConfOption,
    ForceOption,
    JsonOption,
    MasterOption,
    MemoryOption,
    OutOption,
    SeedOption,
    Stopped,
    add_metrics,
    err,
    out,
    print_json,
    table,
)
from grapevine.cli.from_config import add_config_command, config_options, option, take_config
from grapevine.cli.storage import for_files
from grapevine.metrics.findings import RING, UTILITY
from grapevine.metrics.headlines import HEADLINE
from grapevine.metrics.traffic import HIT_RATIO
from grapevine.model.config import Config
from grapevine.model.errors import GrapevineError, UsageError
from grapevine.model.folder import new_folder
from grapevine.model.location import Location, local_draft
from grapevine.model.settings import parse_texts
from grapevine.model.workload import Workload, load_churn
from grapevine.pipeline.parted import SESSION, check_system, forget_rounds, rounds_done, simulate_in_blocks
from grapevine.pipeline.session import SparkSettings
from grapevine.pipeline.stage import Stage
from grapevine.sim.churn import ChurnConfig, make_schedule
from grapevine.sim.clock import ClockConfig
from grapevine.sim.result import KIND, Simulation, export_links
from grapevine.sim.round_run import RunConfig
from grapevine.sim.simulate import simulate
from grapevine.sim.transcript import Transcript
from grapevine.systems.registry import DRIVERS, System, all_systems, broken, choose_driver, system_named, systems_with


def _clock(
    system: str, driver: str, run: RunConfig, settings: list[str], latency_from: str | None
) -> ClockConfig | None:
    """How peers run in virtual time; None for runs by rounds. What would be ignored is refused."""
    if driver != "peers":
        if settings or latency_from:
            raise UsageError(f"--clock, --latency-from: {system} runs by rounds; they are for peers{_peers_of(system)}")
        return None
    if run != RunConfig():
        given = [name for name, value in run.as_dict().items() if value != RunConfig().as_dict()[name]]
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{options}: {system} runs in virtual time; say how with --clock, e.g. --clock hours=2")
    chosen = parse_texts(settings, ClockConfig, owner="the clock", flag="--clock").or_raise()
    recorded: dict[str, Any] = {"latency": "recorded"} if latency_from else {}
    return ClockConfig(**recorded | chosen)


def _peers_of(system: str) -> str:
    """Where peers are to be had, for a message about something that only they have."""
    if "peers" in system_named(system).drivers:
        return ": add --driver peers"
    return f", which {', '.join(systems_with('peers'))} have"


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


def print_simulations(runs: list[Simulation], title: str) -> None:
    """Headline numbers, a column per run."""
    made = table(title, "", *(run.system for run in runs))
    add_metrics(made, HEADLINE, *(run.summary for run in runs))
    out.print(made)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Where rounds run, as given on the command line."""

    engine: str
    blocks: int | None
    resume: bool
    master: str | None
    driver_memory: str | None
    conf: list[str] | None

    def stage(self, system: str, driver: str, *, quiet: bool) -> Stage:
        """The stage that opens files, and runs the rounds where Spark does. What would be ignored is refused."""
        if self.engine == "spark":
            check_system(system, driver)
            given = SparkSettings.gather(
                master=self.master, driver_memory=self.driver_memory, conf=tuple(self.conf or ())
            )
            return Stage(dataclasses.replace(given, conf=SESSION | given.conf), quiet=quiet)
        if self.engine != "local":
            raise UsageError(f"--engine {self.engine}: is neither local nor spark")
        if self.blocks is not None or self.resume or self.master or self.driver_memory:
            raise UsageError("--blocks, --resume, --master, --driver-memory: are for --engine spark; add it")
        return for_files(self.conf, quiet=quiet)


def _take_spark(run: RunConfig, **given: Any) -> None:
    """The command: what belongs to Spark, as one."""
    names = [field.name for field in dataclasses.fields(SparkOptions)]
    _run_simulate(run, spark=SparkOptions(**{name: given.pop(name) for name in names}), **given)


def _run_simulate(
    run: RunConfig,
    *,
    system: str,
    driver: str | None,
    workload: str,
    out_: str,
    set_: list[str] | None,
    clock: list[str] | None,
    latency_from: str | None,
    transcript: bool,
    seed: int,
    threads: int | None,
    force: bool,
    json: bool,
    churn: str | None,
    spark: SparkOptions,
    **playing: Any,
) -> None:
    driver = choose_driver(system, driver)
    parameters = parse_texts(set_ or [], system_named(system).config_type(driver), owner=system).or_raise()
    timed = _clock(system, driver, run, clock or [], latency_from)
    if timed and threads is not None:
        raise UsageError(f"--threads: {system} runs in virtual time, on one core; leave it out")
    files = spark.stage(system, driver, quiet=json)
    target = files.location(out_)
    loaded = Workload.load(files.location(workload), latency=latency_from and files.location(latency_from))
    sessions = None if churn is None else load_churn(files.location(churn))
    schedule = make_schedule(take_config(ChurnConfig, playing), loaded.node_count, sessions, seed=seed)
    rounds = int(timed.end_s) if timed else run.rounds
    with (
        new_folder(target, kind=KIND, force=force) as draft,
        local_draft(draft) as partial,
        live_progress(rounds, quiet=json) as progress,
        _transcript(partial, system, driver, wanted=transcript) as lines,
    ):
        how: dict[str, Any] = {"seed": seed, "schedule": schedule, "run": run, "progress": progress} | parameters
        if spark.engine == "spark":
            where: dict[str, Any] = {"blocks": spark.blocks, "resume": spark.resume, "force": force}
            with _tell_of_resume(target):
                done = simulate_in_blocks(files, system, loaded, target, threads=threads, **where, **how)
        else:
            peers: dict[str, Any] = {"clock": timed, "latency": loaded.latency, "transcript": lines}
            done = simulate(system, loaded, driver=driver, threads=threads, **peers, **how)
        done.write(partial)
    if spark.engine == "spark":
        forget_rounds(target)
    if json:
        print_json({"folder": str(target), "system": system, "driver": driver, "summary": done.summary})
        return
    print_simulations([done], escape(f"{system} on {loaded.name}: {target}"))


@contextmanager
def _tell_of_resume(target: Location) -> Iterator[None]:
    """If the block fails after complete rounds, say that they are not lost."""
    try:
        yield
    except UsageError:
        raise
    except (GrapevineError, Stopped):
        if rounds_done(target):
            err.print(f"{rounds_done(target)} rounds are complete: the same command with --resume goes on after them")
        raise


@contextmanager
def _transcript(folder: Path, system: str, driver: str, *, wanted: bool) -> Iterator[Transcript | None]:
    """A file beside the tables, written as the run goes."""
    if not wanted:
        yield None
        return
    if driver != "peers":
        raise UsageError(
            f"--transcript: {system} runs by rounds and sends no messages; it is for peers{_peers_of(system)}"
        )
    with (folder / "transcript.txt").open("w") as file:
        yield Transcript(write=file.write)


def systems(
    name: Annotated[str | None, typer.Argument(help="A system; without it, all are listed.")] = None,
    json: JsonOption = False,
) -> None:
    """Say which systems there are; with a name, every facet with its parameters, defaults and where they come from."""
    chosen = [system_named(name)] if name else list(all_systems().values())
    if json:
        print_json([_describe_system(system) for system in chosen])
        return
    for system in chosen:
        facets = ", ".join(system.facets)
        out.print(f"[bold]{system.name}[/]  {escape(system.summary)}", highlight=False)
        out.print(f"  [dim]{escape(system.paper)} · {facets}[/]", highlight=False)
        if name:
            _print_facets(system)
    for missing, reason in ({} if name else broken()).items():
        err.print(f"{escape(missing)} could not be loaded: {escape(reason)}")


_RUN_BY = {
    "rounds": "grapevine simulate {name}",
    "peers": "grapevine simulate {name} --driver peers",
    "live": "grapevine node --system {name}",
}


def _print_facets(system: System) -> None:
    for facet, kind in system.facets.items():
        how = _RUN_BY[facet] if facet not in DRIVERS or facet != system.drivers[0] else _RUN_BY["rounds"]
        title = f"{facet}: {how.format(name=system.name)} --set KEY=VALUE"
        _print_parameters(title, kind.config_type, getattr(kind, "live_values", {}))
        if facet == "peers":
            _print_parameters("the clock that peers run by: --clock KEY=VALUE", ClockConfig, {})


def _print_parameters(title: str, config: type[Config], other: dict[str, Any]) -> None:
    """A row per parameter; `other` are defaults that differ from the config's."""
    made = table(title, "parameter", "default", "meaning", "source")
    for column in made.columns:
        column.justify = "left"
    for field in dataclasses.fields(config):
        meta = field.metadata
        default = str(other.get(field.name, field.default)).lower()
        made.add_row(field.name, default, escape(meta["help"]), escape(meta["source"]))
    out.print(made)


def _describe_system(system: System) -> dict[str, Any]:
    facets = {
        name: {"parameters": _parameters(facet.config_type, getattr(facet, "live_values", {}))}
        for name, facet in system.facets.items()
    }
    if "peers" in facets:
        facets["peers"]["clock"] = _parameters(ClockConfig, {})
    return {"name": system.name, "summary": system.summary, "paper": system.paper, "facets": facets}


def _parameters(config: type[Config], other: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": field.name,
            "default": other.get(field.name, field.default),
            **{key: value for key, value in field.metadata.items() if value is not None},
        }
        for field in dataclasses.fields(config)
    ]


def export(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A simulation.")],
    target: Annotated[str, typer.Argument(metavar="FILE", help="New file, .graphml or .edges.")],
    format: Annotated[str | None, typer.Option(help="graphml or edges. Default: by the file's name.")] = None,
    conf: ConfOption = None,
) -> None:
    """Write the overlay of a simulation for networkx, igraph or Gephi."""
    files = for_files(conf)
    run = Simulation.load(files.location(folder))
    written = export_links(run.links, files.location(target), format=format)
    out.print(f"{run.links.num_rows:,} links: [bold]{escape(str(written))}[/]", highlight=False)


_SIMULATE_HELP = """Run a system on a workload, and measure what delivery costs.

[bold]--set[/] gives the system's own parameters, e.g. --set table_size=20; [bold]grapevine systems NAME[/] lists them.
Systems run by rounds, or message by message as peers in virtual time ([bold]--driver peers[/]): [bold]--clock[/]
says how long and on which latencies.
Rounds of gossip can run on a cluster, in blocks of nodes ([bold]--engine spark[/]), to the same result.
Prints the headline numbers, and writes the tables events, node_load, topic_overlay, links and rounds."""


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    first = [
        option("system", Annotated[str, typer.Argument(metavar="SYSTEM", help=f"One of {', '.join(all_systems())}.")]),
        option(
            "driver",
            Annotated[
                str | None,
                typer.Option(metavar="|".join(DRIVERS), help="How it is simulated. Default: rounds where it has them."),
            ],
            None,
        ),
        option("workload", Annotated[str, typer.Option("--workload", "-w", metavar="DIR", help="The workload.")]),
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
            Annotated[str | None, typer.Option(metavar="DIR", help="Latencies of this workload, for peers.")],
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
            Annotated[str | None, typer.Option(metavar="DIR", help="Nodes come and go as in this workload's churn.")],
            None,
        ),
        *config_options(ChurnConfig),
        option("seed", SeedOption, 1),
        option("threads", Annotated[int | None, typer.Option(min=1, help="Threads. Default: all cores.")], None),
        option("force", ForceOption, False),
        option("json", JsonOption, False),
        option(
            "engine",
            Annotated[
                str,
                typer.Option(metavar="local|spark", help="Where rounds run: here, or in blocks of nodes on Spark."),
            ],
            "local",
        ),
        option(
            "blocks",
            Annotated[int | None, typer.Option(min=1, help="Blocks of nodes on Spark. Default: by nodes and tasks.")],
            None,
        ),
        option(
            "resume",
            Annotated[bool, typer.Option("--resume", help="Go on with a run on Spark that was killed.")],
            False,
        ),
        option("master", MasterOption, None),
        option("driver_memory", MemoryOption, None),
        option("conf", ConfOption, None),
    ]
    add_config_command(app, "simulate", RunConfig, _take_spark, first=first, last=last, help=_SIMULATE_HELP)
    app.command()(systems)
    app.command()(export)
