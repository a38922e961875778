"""Which systems are compared, with which parameters, and in which experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grapevine.comparison.costs import CALM, CRASH, Rates
from grapevine.experiment.description import Experiment, SystemEntry, WorkloadEntry
from grapevine.model.config import Config, parameter
from grapevine.model.errors import UsageError
from grapevine.sim.clock import ClockConfig
from grapevine.sim.round_run import RunConfig
from grapevine.systems.registry import all_systems, system_named

_MEASURED_ROUNDS = 40  # after a crash


@dataclass(frozen=True, slots=True)
class Source:
    """The workload that is compared on."""

    name: str  # as sentences call it
    folder: Path
    rates: Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareConfig(Config):
    """How systems are compared, and what is assumed where the trace does not tell."""

    users: int = parameter(2_000, "a larger trace is cut to so many users", source="ours: minutes on two cores", low=10)
    rounds: int = parameter(80, "gossip rounds before anything is measured", source="ours", low=10, high=100_000)
    crash: float = parameter(
        0.2,
        "share of the nodes that crash at once in a second set of runs; 0: no such runs",
        source="ours",
        low=0,
        high=0.9,
    )
    seeds: int = parameter(1, "runs of each kind, with different seeds", source="ours", low=1, high=100)
    payload: int = parameter(1_000, "bytes of an event", source="ours: a short message", low=0, high=2**40)
    events: float | None = parameter(
        None,
        "events a day on a mean topic; none: as the trace has it, or one an hour",
        source="ours",
        low=1e-6,
        high=1e9,
    )
    enough: float = parameter(
        0.999, "share of deliveries that a system has to make to be recommended", source="ours", low=0, high=1
    )


def check_links(links: Sequence[int]) -> tuple[int, ...]:
    """Budgets of connections, each once and in order; UsageError for what is none."""
    if not links or any(type(most) is not int or not 5 <= most <= 1_000 for most in links):
        raise UsageError(f"links {list(links)!r}: needs whole numbers of connections between 5 and 1,000")
    return tuple(sorted(set(links)))


def fitting_systems(named: Sequence[str] | None) -> list[str]:
    """The systems to compare: those that are named, or all that run by rounds.

    Others take minutes of virtual time for every hour; who wants them describes an experiment.
    """
    if named is None:
        return [name for name, system in all_systems().items() if "rounds" in system.facet_names]
    for name in named:
        system_named(name).round_facet()
    return list(dict.fromkeys(named))


def describe(
    source: Source, systems: Mapping[str, Mapping[str, Any]], links: Sequence[int], config: CompareConfig
) -> Experiment:
    """The experiment: every system with its parameters, once for each budget where it can keep to one.

    `systems` has parameters that are set besides. Runs with a crash are measured from then on, so that their hit ratio
    tells of the time in which the overlay mends. UsageError if every budget is as large as the network.
    """
    folder, nodes = str(source.folder.absolute()), source.rates.nodes
    if not (links := [most for most in links if most < nodes]):
        raise UsageError(f"links: {source.name} has {nodes:,} nodes, fewer than every budget; give smaller ones")
    entries = [WorkloadEntry(CALM, folder=folder)]
    run = RunConfig(rounds=config.rounds, measure_topics=0, diameter_topics=0)
    if config.crash:
        crashed = config.rounds + 1
        entries.append(WorkloadEntry(CRASH, folder=folder, churn={"crash": f"{config.crash}@{crashed}"}))
        run = RunConfig(
            rounds=config.rounds + _MEASURED_ROUNDS, measure_from=crashed, measure_every=5, diameter_topics=0
        )
    names = tuple(entry.name for entry in entries)
    made: list[SystemEntry] = []
    for name, given in systems.items():
        facet = system_named(name).round_facet()
        budgets = [facet.within(most) for most in links]
        bounded: list[dict[str, Any]] = [found for found in budgets if found is not None]
        made += [
            SystemEntry(name, "rounds", False, names, _as_grid(parameters | dict(given)))
            for parameters in bounded or [{}]
        ]
    return Experiment(
        name="compare",
        title=f"Which system for {source.name}?",
        workloads=tuple(entries),
        systems=tuple(made),
        run=run,
        clock=ClockConfig(),
        seeds=tuple(range(1, config.seeds + 1)),
    )


def _as_grid(parameters: dict[str, Any]) -> dict[str, Any]:
    """Each value as a list of one, so that the tables name it among what was set."""
    return {key: [value] for key, value in parameters.items()}
