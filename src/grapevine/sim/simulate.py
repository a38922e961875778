"""`grapevine.simulate`: a system on a workload, from the first round to tables and headline numbers."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grapevine.metrics.distributions import Histogram
from grapevine.metrics.findings import CPU_S, LOOKUP_HOPS, POPULARITY_EXPONENT, RING, TOP_INTERSECTION, UTILITY, WALL_S
from grapevine.metrics.headlines import headlines
from grapevine.metrics.power_law import fit_power_law
from grapevine.metrics.similarity import mean_top_intersection
from grapevine.metrics.structure import CONNECTED_TOPICS, DEGREE, DEGREE_MAX, DIAMETER
from grapevine.metrics.traffic import node_overhead, outcome
from grapevine.model import tables
from grapevine.model.config import Config, check_seed, parameter
from grapevine.model.errors import UsageError
from grapevine.model.settings import make
from grapevine.model.workload import Latency, Workload
from grapevine.sim.churn import Schedule
from grapevine.sim.clock import ClockConfig
from grapevine.sim.peers import simulate_peers
from grapevine.sim.result import Simulation, own_tables
from grapevine.sim.rounds import Rounds
from grapevine.sim.snapshot import draw_topic, links_of
from grapevine.sim.transcript import Transcript
from grapevine.systems.contracts.rounds import Sent
from grapevine.systems.registry import choose_driver, system_named

Progress = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig(Config):
    """How long to run and what to measure."""

    rounds: int = parameter(160, "gossip rounds", source="ours: the ring of 10,000 nodes is exact long before", low=1)
    measure_every: int = parameter(10, "rounds between two measurements of a sample of topics", source="ours", low=1)
    measure_from: int = parameter(0, "the first round that is measured on the way", source="ours", low=0)
    measure_topics: int = parameter(50, "topics in such a sample; 0: measure at the end only", source="ours", low=0)
    grace_rounds: int = parameter(
        10, "a node counts from so many rounds after its join", source="Vitis §IV-E: 10 s, a round is a second", low=0
    )
    publish_from: str = parameter(
        "subscriber",
        "who publishes: a random subscriber, or the topic's owner where the trace knows it",
        source="ours: Vitis does not say",
        choices=("subscriber", "owner"),
    )
    diameter_topics: int = parameter(
        20, "topics whose diameter is measured (a search from every subscriber)", source="ours", low=0
    )
    measure_diameters: bool = parameter(
        False, "measure the diameters of the sampled topics on the way, too", source="OMen Fig. 11"
    )
    fit_popularity: bool = parameter(
        False, "fit a power law to the popularity of topics (exponent of the tail)", source="Magnet Fig. 7"
    )
    intersection_nodes: int = parameter(
        0,
        "nodes whose interests are compared with all others' (top-d intersection, d = twice a node's topics)",
        source="SpiderCast §3.4",
        low=0,
    )


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
    from grapevine import __version__

    driver = choose_driver(system, driver)
    config = make_config(system, parameters, driver)
    run = run or RunConfig()
    run = dataclasses.replace(run, rounds=rounds) if rounds is not None else run
    check_seed(seed)
    if threads is not None and (type(threads) is not int or threads < 1):
        raise UsageError(f"threads={threads!r}: needs a whole number of 1 or more, or none for all cores")
    check_fit(workload, config, by_rounds=driver == "rounds")
    if driver == "peers":
        return simulate_peers(
            *(system, workload, config, clock or ClockConfig()),
            seed=seed,
            schedule=schedule,
            recorded=latency,
            transcript=transcript,
            progress=progress,
        )
    began, cpu = time.perf_counter(), time.process_time()
    engine = Rounds(
        system,
        workload,
        config,
        seed=seed,
        threads=threads or len(os.sched_getaffinity(0)),
        schedule=schedule,
        owners=run.publish_from == "owner",
    )
    samples: list[dict[str, Any]] = []
    measured: list[dict[str, NDArray[Any]]] = []
    before = 0, 0
    sent_before: dict[str, Sent] = {}
    messages: list[dict[str, Any]] = []
    for now in range(1, run.rounds + 1):
        engine.step()
        if (now >= run.measure_from and now % run.measure_every == 0) or now == run.rounds:
            row, events = _measure_sample(engine, run, len(samples))
            row |= {"joined": engine.joined - before[0], "left": engine.left - before[1]}
            before = engine.joined, engine.left
            sent = engine.system.messages()
            messages += [
                _message_row(now, kind, total, sent_before.get(kind, Sent(0, 0))) for kind, total in sent.items()
            ]
            sent_before = sent
            samples.append(row)
            if engine.schedule.changes and events is not None:
                measured.append(events)
            if progress:
                progress(row)
    topics = np.arange(workload.topic_count, dtype=np.int32)
    engine.settle((0, len(topics)))
    last, load = engine.publish(topics, grace_rounds=run.grace_rounds)
    if not engine.schedule.changes or not measured:
        measured = [last]  # without churn, the samples on the way say nothing that the end does not
    found = {
        tables.EVENTS.name: _table(tables.EVENTS, {k: np.concatenate([e[k] for e in measured]) for k in last}),
        tables.NODE_LOAD.name: _node_load(engine, load),
        tables.TOPIC_OVERLAY.name: _topic_overlay(engine, run),
        tables.LINKS.name: _table(tables.LINKS, links_of(engine)),
        **_drawn(engine),
        tables.ROUNDS.name: pa.Table.from_pylist(samples, schema=tables.ROUNDS.schema),
        tables.MESSAGES.name: pa.Table.from_pylist(messages, schema=tables.MESSAGES.schema),
        **own_tables(system, driver, engine.system.own_rows()),
        **{table.name: table.schema.empty_table() for table in tables.TIMED_TABLES},
    }
    similar = mean_top_intersection(workload, run.intersection_nodes) if run.intersection_nodes else None
    summary = headlines(found) | {
        RING.name: engine.ring_correctness(),
        LOOKUP_HOPS.name: engine.lookup_hops(),
        UTILITY.name: engine.mean_utility(),
        **engine.system.findings(),
        TOP_INTERSECTION.name: similar,
        POPULARITY_EXPONENT.name: _popularity_exponent(workload) if run.fit_popularity else None,
        WALL_S.name: time.perf_counter() - began,
        CPU_S.name: time.process_time() - cpu,
    }
    settings = run.as_dict()
    return Simulation(
        system, driver, config.as_dict(), settings, workload.name, seed, summary, found, version=__version__
    )


def _popularity_exponent(workload: Workload) -> float | None:
    fit = fit_power_law(Histogram.of(workload.topic_nodes.sizes()))
    return fit.exponent if fit else None


def _message_row(now: int, kind: str, total: Sent, before: Sent) -> dict[str, Any]:
    """A row of the `messages` table: what was sent since the measured round before."""
    carried = total.descriptors - before.descriptors
    return {"round": now, "kind": kind, "count": total.messages - before.messages, "descriptors": carried}


def _measure_sample(
    engine: Rounds, run: RunConfig, index: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]] | None]:
    """A row of the `rounds` table; the sampled topics move on from one measurement to the next."""
    alive = engine.network.alive
    degree = engine.network.neighbours().sizes()[alive]
    row = {
        "round": engine.now,
        "online": int(alive.sum()),
        DEGREE.name: float(degree.mean()) if alive.any() else None,
        DEGREE_MAX.name: int(degree.max()) if alive.any() else None,
        RING.name: engine.ring_correctness(),
        UTILITY.name: engine.mean_utility(),
    }
    if run.measure_topics == 0:
        return row, None
    count = engine.workload.topic_count
    first = index * run.measure_topics % count
    window = first, min(first + run.measure_topics, count)
    engine.settle(window)
    topics = np.arange(*window, dtype=np.int32)
    events, _ = engine.publish(topics, grace_rounds=run.grace_rounds)
    row[CONNECTED_TOPICS.name] = engine.connected_topics(window, grace_rounds=run.grace_rounds)
    if run.measure_diameters:
        row[DIAMETER.name] = float(engine.topic_diameters(topics).mean())
    return row | outcome(events), events


def _table(table: tables.Table, columns: dict[str, Any]) -> pa.Table:
    return pa.table({name: columns[name] for name in table.column_names}).cast(table.schema)


def _node_load(engine: Rounds, load: dict[str, NDArray[np.float64]]) -> pa.Table:
    overhead = node_overhead(load["wanted"], load["duplicate"], load["unwanted"])
    columns = {
        "node": np.arange(engine.network.size, dtype=np.int32),
        "online": engine.network.alive,
        "degree": engine.network.neighbours().sizes(),
        **load,
        "overhead": pa.array(overhead, from_pandas=True),
    }
    return _table(tables.NODE_LOAD, columns)


def _topic_overlay(engine: Rounds, run: RunConfig) -> pa.Table:
    clusters = engine.topic_clusters()
    starts = engine.network.topic_nodes.starts
    running = np.concatenate([[0], np.cumsum(engine.system.delivery().gateways)])
    count = len(clusters)
    chosen = np.unique(np.linspace(0, count - 1, min(run.diameter_topics, count)).astype(np.int32))
    diameter = np.full(count, np.nan)
    diameter[chosen] = engine.topic_diameters(chosen)
    columns = {
        "topic": np.arange(count, dtype=np.int32),
        "subscribers": clusters[:, 0],
        "clusters": clusters[:, 1],
        "largest_cluster": clusters[:, 2],
        "gateways": running[starts[1:]] - running[starts[:-1]],
        "diameter": pa.array(diameter, from_pandas=True),
    }
    return _table(tables.TOPIC_OVERLAY, columns)


def _drawn(engine: Rounds) -> dict[str, pa.Table]:
    """The graph of the topic with most subscribers among the first hundred: enough of them to show clusters."""
    sizes = np.diff(engine.network.topic_nodes.starts)[:100]
    nodes, links = draw_topic(engine, int(np.argmax(sizes)))
    return {
        tables.DRAWN_NODES.name: pa.table(nodes, schema=tables.DRAWN_NODES.schema),
        tables.DRAWN_LINKS.name: pa.table(links, schema=tables.DRAWN_LINKS.schema),
    }
