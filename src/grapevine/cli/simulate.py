"""`grapevine simulate`: run a system on a workload, and measure what delivery costs."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from grapevine.cli.console import (
    ConfOption,
    ForceOption,
    JsonOption,
    LogOption,
    MasterOption,
    MemoryOption,
    OutOption,
    SeedOption,
    Stopped,
    add_metrics,
    check_log,
    err,
    out,
    print_json,
    table,
)
from grapevine.cli.from_config import add_config_command, config_options, option, take_config
from grapevine.cli.progress import live_progress
from grapevine.cli.storage import for_files
from grapevine.metrics.headlines import HEADLINE
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
from grapevine.sim.progress import Extent, watched
from grapevine.sim.result import KIND, Simulation
from grapevine.sim.round_run import RunConfig
from grapevine.sim.simulate import simulate
from grapevine.sim.transcript import Transcript
from grapevine.systems.registry import DRIVERS, all_systems, choose_driver, system_named, systems_with


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
    log: str,
    churn: str | None,
    spark: SparkOptions,
    **playing: Any,
) -> None:
    check_log(log)
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
    extent = Extent(int(timed.end_s), is_timed=True) if timed else Extent(run.rounds, is_timed=False)
    with (
        new_folder(target, kind=KIND, force=force) as draft,
        local_draft(draft) as partial,
        live_progress(extent, log=log, quiet=json) as progress,
        _transcript(partial, system, driver, wanted=transcript) as lines,
    ):
        how: dict[str, Any] = {"seed": seed, "schedule": schedule, "run": None if timed else run} | parameters
        if spark.engine == "spark":
            where: dict[str, Any] = {"blocks": spark.blocks, "resume": spark.resume, "force": force, "threads": threads}
            with _tell_of_resume(target), watched(system, progress, extent) as tell:
                done = simulate_in_blocks(files, system, loaded, target, progress=tell, **where, **how)
        else:
            peers: dict[str, Any] = {"clock": timed, "latency": loaded.latency, "transcript": lines}
            done = simulate(system, loaded, driver=driver, threads=threads, progress=progress, **peers, **how)
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


_SIMULATE_HELP = """Run a system on a workload, and measure what delivery costs.

[bold]--set[/] gives the system's own parameters, e.g. --set table_size=20; [bold]grapevine systems NAME[/] lists them.
Systems run by rounds, or message by message as peers in virtual time ([bold]--driver peers[/]): [bold]--clock[/]
says how long and on which latencies.
Rounds of gossip can run on a cluster, in blocks of nodes ([bold]--engine spark[/]), to the same result.
Prints the headline numbers, and writes the tables events, node_load, topic_overlay, links and rounds."""


def _what_runs() -> list[inspect.Parameter]:
    """The options that say which system runs on what, in the order of the help."""
    names = ", ".join(all_systems())
    system = Annotated[str, typer.Argument(metavar="SYSTEM", help=f"One of {names}.")]
    driver = typer.Option(metavar="|".join(DRIVERS), help="How it is simulated. Default: rounds where it has them.")
    workload = Annotated[str, typer.Option("--workload", "-w", metavar="DIR", help="The workload.")]
    set_ = typer.Option("--set", metavar="KEY=VALUE", help="A parameter; repeatable.")
    clock = typer.Option("--clock", metavar="KEY=VALUE", help="How peers run in virtual time, e.g. hours=2.")
    latency = typer.Option(metavar="DIR", help="Latencies of this workload, for peers.")
    transcript = typer.Option("--transcript", help="Write every message of peers to transcript.txt.")
    return [
        option("system", system),
        option("driver", Annotated[str | None, driver], None),
        option("workload", workload),
        option("out_", OutOption),
        option("set_", Annotated[list[str] | None, set_], None),
        option("clock", Annotated[list[str] | None, clock], None),
        option("latency_from", Annotated[str | None, latency], None),
        option("transcript", Annotated[bool, transcript], False),
    ]


def _how_it_runs() -> list[inspect.Parameter]:
    """The options that say who comes and goes, and how the run is done."""
    churn = typer.Option(metavar="DIR", help="Nodes come and go as in this workload's churn.")
    threads = typer.Option(min=1, help="Threads. Default: all cores.")
    return [
        option("churn", Annotated[str | None, churn], None),
        *config_options(ChurnConfig),
        option("seed", SeedOption, 1),
        option("threads", Annotated[int | None, threads], None),
        option("force", ForceOption, False),
        option("json", JsonOption, False),
        option("log", LogOption, "plain"),
    ]


def _where_it_runs() -> list[inspect.Parameter]:
    """The options of `SparkOptions`."""
    engine = typer.Option(metavar="local|spark", help="Where rounds run: here, or in blocks of nodes on Spark.")
    blocks = typer.Option(min=1, help="Blocks of nodes on Spark. Default: by nodes and tasks.")
    resume = typer.Option("--resume", help="Go on with a run on Spark that was killed.")
    return [
        option("engine", Annotated[str, engine], "local"),
        option("blocks", Annotated[int | None, blocks], None),
        option("resume", Annotated[bool, resume], False),
        option("master", MasterOption, None),
        option("driver_memory", MemoryOption, None),
        option("conf", ConfOption, None),
    ]


def add_to(app: typer.Typer) -> None:
    """Add the command, whose further options are the fields of `RunConfig`."""
    last = [*_how_it_runs(), *_where_it_runs()]
    add_config_command(app, "simulate", RunConfig, _take_spark, first=_what_runs(), last=last, help=_SIMULATE_HELP)
