"""`grapevine.simulate`: a system on a workload, by one of its drivers, up to tables and headline numbers."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

from grapevine.blocks.network import Network
from grapevine.model.config import Config, check_seed
from grapevine.model.errors import UsageError
from grapevine.model.settings import check_kind, make
from grapevine.model.workload import Latency, Workload
from grapevine.sim.churn import Schedule
from grapevine.sim.clock import ClockConfig
from grapevine.sim.peers import simulate_peers
from grapevine.sim.result import Simulation
from grapevine.sim.round_run import Progress, RunConfig, simulate_rounds
from grapevine.sim.rounds import Rounds
from grapevine.sim.transcript import Transcript
from grapevine.systems.registry import choose_driver, system_named


def make_config(system: str, parameters: dict[str, Any], driver: str | None = None) -> Config:
    """The configuration of a system that is simulated by this driver, or by its first one.

    UsageError that tells all unknown names, wrong types and values out of limits.
    """
    return make(system_named(system).config_type(choose_driver(system, driver)), parameters, owner=system)


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
    progress: Progress | None = None,
    rounds: int | None = None,
    **parameters: Any,
) -> Simulation:
    """Run a system on a workload and measure it.

    `driver` is "rounds" (arrays, a round at a time: `run` says how) or "peers" (message by message in virtual time:
    `clock` says how, with one second per round of the schedule); by default the first of these that the system has.
    `parameters` are the system's for that driver (`grapevine systems vitis` lists them). The result depends on
    workload, parameters, schedule and seed, not on `threads` (default: all cores), which only rounds use. `rounds`
    overrides the run's. For peers, `latency` is the recorded one, and `transcript` writes down every message.
    """
    driver = choose_driver(system, driver)
    named = f"read the folder with Workload.load({workload!r})" if isinstance(workload, str) else ""
    check_kind("workload", workload, Workload, named)
    for name, given, kind in (("schedule", schedule, Schedule), ("run", run, RunConfig), ("clock", clock, ClockConfig)):
        if given is not None:
            check_kind(name, given, kind)
    config = make_config(system, parameters, driver)
    run = run or RunConfig()
    run = dataclasses.replace(run, rounds=rounds) if rounds is not None else run
    if driver == "peers":
        check_seed(seed)
        check_threads(threads)
        check_fit(workload, config, by_rounds=False)
        return simulate_peers(
            *(system, workload, config, clock or ClockConfig()),
            seed=seed,
            schedule=schedule,
            recorded=latency,
            transcript=transcript,
            progress=progress,
        )
    engine = make_rounds(system, workload, config, run, seed=seed, threads=threads, schedule=schedule)
    return simulate_rounds(engine, config, run, progress)


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
