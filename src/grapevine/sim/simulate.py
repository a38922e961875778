"""`grapevine.simulate`: a system on a workload, by one of its drivers, up to tables and headline numbers."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from grapevine.blocks.network import Network
from grapevine.model.arguments import of_kind, plain
from grapevine.model.config import Config, check_seed
from grapevine.model.errors import UsageError
from grapevine.model.settings import make
from grapevine.model.workload import Latency, Workload
from grapevine.sim.churn import Schedule, checked_schedule
from grapevine.sim.clock import ClockConfig
from grapevine.sim.peers import simulate_peers
from grapevine.sim.progress import Extent, Progress, watched
from grapevine.sim.result import Simulation
from grapevine.sim.round_run import RunConfig, simulate_rounds
from grapevine.sim.rounds import Rounds
from grapevine.sim.transcript import Transcript
from grapevine.systems.registry import choose_driver, system_named, systems_with


def make_config(system: str, parameters: dict[str, Any], driver: str | None = None) -> Config:
    """The configuration of a system that is simulated by this driver, or by its first one.

    UsageError that tells all unknown names, wrong types and values out of limits.
    """
    kind = system_named(system).config_type(choose_driver(system, driver))
    return make(kind, parameters, owner=system, beside=inspect.signature(simulate).parameters)


def check_fit(workload: Workload, config: Config, *, by_rounds: bool = True) -> None:
    """A workload that this configuration can be run on, or a sentence that says why not."""
    table_size = getattr(config, "table_size", None)
    if by_rounds and table_size is not None and workload.node_count <= table_size:
        raise UsageError(
            f"{workload.name}: has {workload.node_count} nodes, too few for table_size={table_size}; "
            "take a larger workload or a smaller table"
        )
    if workload.subscription_count == 0:
        raise UsageError(f"{workload.name}: nobody subscribes to anything, so there is nothing to deliver")


def simulate(
    system: str,
    workload: Workload,
    *,
    driver: str | None = None,
    seed: int = 1,
    threads: int | None = None,
    schedule: Schedule | None = None,
    run: RunConfig | None = None,
    clock: ClockConfig | None = None,
    latency: Latency | None = None,
    transcript: Transcript | None = None,
    progress: bool | Progress | None = None,
    rounds: int | None = None,
    **parameters: Any,
) -> Simulation:
    """Run a system on a workload and measure it.

    `driver` is "rounds" (arrays, a round at a time: `run` says how) or "peers" (message by message in virtual time:
    `clock` says how, with one second per round of the schedule); by default the first of these that the system has.
    `parameters` are the system's for that driver (`grapevine systems vitis` lists them). The result depends on
    workload, parameters, schedule and seed, not on `threads` (default: all cores), which only rounds use. `rounds`
    overrides the run's. For peers, `latency` is the recorded one, and `transcript` writes down every message.

    `progress` shows how the run goes: True on the error stream or in the notebook, False not at all; by default in
    notebooks only. A function is called with what there is to tell instead (`grapevine.sim.progress`).

    UsageError, before anything runs, for an argument that is not allowed, or that the driver would ignore.
    """
    driver = choose_driver(system, driver)
    given = {"run": run, "rounds": rounds, "threads": threads}
    timed = {"clock": clock, "latency": latency, "transcript": transcript}
    _refuse_ignored(system, driver, timed if driver == "rounds" else given)
    _check_kinds(workload, {"schedule": schedule, "run": run} | timed)
    config, seed = make_config(system, parameters, driver), plain(seed)
    if schedule is not None:
        schedule = checked_schedule(schedule, workload.node_count)
    if driver == "peers":
        check_seed(seed)
        check_fit(workload, config, by_rounds=False)
        clock = clock or ClockConfig()
        with watched(system, progress, Extent(int(clock.end_s), is_timed=True)) as tell:
            return simulate_peers(
                *(system, workload, config, clock),
                seed=seed,
                schedule=schedule,
                recorded=latency,
                transcript=transcript,
                progress=tell,
            )
    run = run or RunConfig()
    run = dataclasses.replace(run, rounds=plain(rounds)) if rounds is not None else run
    with watched(system, progress, Extent(run.rounds, is_timed=False)) as tell:
        engine = make_rounds(system, workload, config, run, seed=seed, threads=plain(threads), schedule=schedule)
        return simulate_rounds(engine, config, run, tell)


def _refuse_ignored(system: str, driver: str, given: Mapping[str, object]) -> None:
    """UsageError if any of these arguments was given, which a run by this driver would not look at."""
    names = ", ".join(name for name, value in given.items() if value is not None)
    if not names:
        return
    if driver == "peers":
        raise UsageError(
            f"{names}: {system} runs as peers in virtual time, on one core; leave it out, and say how long with "
            "clock=ClockConfig(hours=1)"
        )
    has_peers = "peers" in system_named(system).drivers
    cure = "add driver='peers'" if has_peers else f"take one of {', '.join(systems_with('peers'))}"
    raise UsageError(f"{names}: for peers in virtual time, and {system} runs by rounds; leave it out, or {cure}")


def _check_kinds(workload: object, given: Mapping[str, object]) -> None:
    cures = {
        str: f"read the folder with Workload.load({workload!r})",
        PurePath: "read the folder with Workload.load",
        dict: "make one with Workload.from_dict",
    }
    others = "make one with grapevine.synthetic.generate, Workload.from_dict or Workload.from_pandas"
    cure = next((said for kind, said in cures.items() if isinstance(workload, kind)), others)
    of_kind("workload", workload, Workload, cure)
    kinds: dict[str, tuple[type, str]] = {
        "schedule": (Schedule, "make one with grapevine.sim.churn"),
        "run": (RunConfig, "e.g. grapevine.sim.round_run.RunConfig(rounds=80)"),
        "clock": (ClockConfig, "e.g. grapevine.sim.clock.ClockConfig(hours=1)"),
        "latency": (Latency, "e.g. Workload.load(folder, latency=other_folder).latency"),
        "transcript": (Transcript, "e.g. grapevine.sim.transcript.Transcript()"),
    }
    for name, value in given.items():
        if value is not None:
            of_kind(name, value, *kinds[name])


def make_rounds(
    system: str,
    workload: Workload,
    config: Config,
    run: RunConfig,
    *,
    seed: int,
    threads: int | None,
    schedule: Schedule | None,
    network: Callable[..., Network] = Network,
) -> Rounds:
    """A fresh engine for a run by rounds, or a UsageError that says what does not fit. `threads` as for `simulate`."""
    check_seed(seed)
    check_threads(threads)
    check_fit(workload, config)
    return Rounds(
        system,
        workload,
        config,
        seed=seed,
        threads=threads or len(os.sched_getaffinity(0)),
        schedule=schedule,
        owners=run.publish_from == "owner",
        network=network,
    )


def check_threads(threads: int | None) -> None:
    """UsageError unless this is a number of threads, or none."""
    if threads is not None and (type(threads) is not int or threads < 1):
        raise UsageError(f"threads={threads!r}: needs a whole number of 1 or more, or none for all cores")
