"""A system of peers on a workload in virtual time: who starts, publishes, comes and goes when; then the tables."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from grapevine.kernels.rng import priorities
from grapevine.model import tables
from grapevine.model.config import Config
from grapevine.model.errors import UsageError
from grapevine.model.workload import Latency, Workload
from grapevine.sim.churn import Schedule, everyone
from grapevine.sim.clock import ClockConfig
from grapevine.sim.events import Events, Observers
from grapevine.sim.latency import make_latency
from grapevine.sim.peer_tables import final_tables, round_row, summarise
from grapevine.sim.progress import MEASURING, RUNNING, Progress
from grapevine.sim.recorder import Recorder
from grapevine.sim.result import Simulation
from grapevine.sim.transcript import Transcript
from grapevine.systems.contracts.peer import Address, Message, Peer, World
from grapevine.systems.registry import system_named

_START, _PHASE, _OBSERVER, _PUBLISHER = 221, 222, 223, 224  # the `round` words of these draws


class PeerRun:
    """One run: the engine, and what the world does to it."""

    def __init__(
        self,
        system: str,
        workload: Workload,
        config: Config,
        clock: ClockConfig,
        *,
        seed: int,
        schedule: Schedule | None = None,
        recorded: Latency | None = None,
        transcript: Transcript | None = None,
    ) -> None:
        self.name, kind = system, system_named(system).peer_facet()
        servers = kind.servers(config)
        self.workload, self.clock, self.seed = workload, clock, seed
        self.observers = self._observers()  # first: too many are the caller's mistake
        self.latency = make_latency(clock, nodes=workload.node_count, servers=servers, seed=seed, recorded=recorded)
        self.publishers = choose_publishers(workload, seed)
        self.system = kind(config, World(workload, self.publishers, self.latency.usual_s, seed))
        interested = [frozenset(workload.subscribers_of(topic).tolist()) for topic in range(workload.topic_count)]
        self.recorder = Recorder(interested, self.latency, self.position_of, self.observers, self.system.distance)
        self.engine = Events(
            self.latency.__call__,  # a bound method: calling the object itself takes a third longer
            seed=seed,
            loss=clock.loss,
            duplication=clock.duplication,
            observer=Observers(self.recorder, transcript) if transcript else self.recorder,
            watch_sends=transcript is not None,
        )
        self.interested = interested
        self.before: dict[Address, Peer] = {}  # last sessions
        self.since: dict[Address, float] = {}  # when those who are online came
        self.online_s: dict[Address, float] = defaultdict(
            float
        )  # of sessions that are over, since the measurement began
        self.joined = self.left = 0
        self.counted_from = 0.0
        self._said: Counter[type[Message]] = Counter()
        for index in range(servers):
            self.engine.start(workload.node_count + index, self.system.server(index))
        self._plan(schedule or everyone(workload.node_count))

    def _observers(self) -> frozenset[Address]:
        subscribers = np.flatnonzero(self.workload.node_topics.sizes() > 0)
        if self.clock.observers > len(subscribers):
            raise UsageError(f"observers={self.clock.observers}: there are only {len(subscribers)} subscribers")
        rank = priorities(self.seed, _OBSERVER, self.workload.node_count)[subscribers]
        return frozenset(subscribers[np.argsort(rank, kind="stable")[: self.clock.observers]].tolist())

    def position_of(self, node: Address) -> tuple[float, ...] | None:
        """Network coordinates of a node that is there."""
        peer = self.engine.peers.get(node)
        return self.system.position(peer) if peer is not None else None

    # What will happen

    def _plan(self, schedule: Schedule) -> None:
        """Publishers and observers are there from the beginning and stay (Rappel §6.2.3)."""
        clock, at, count = self.clock, self.engine.at, self.workload.node_count
        publishers = frozenset(self.publishers)
        steady = self.observers | publishers
        waits = priorities(self.seed, _START, count).astype(np.float64) / 2.0**64 * clock.start_s
        self._here = set(schedule.first.tolist()) | steady
        for node in sorted(self._here):
            wait = 0.0 if node in publishers else float(waits[node])
            at(clock.warm_up_s + wait, partial(self._start, node))
        for second, change in schedule.changes.items():
            for nodes, action in (
                (change.crashes, self._crash),
                (change.leaves, self._leave),
                (change.joins, self._join),
            ):
                first = clock.warm_up_s if action == self._join else 0.0  # landmarks have to settle
                for node in nodes.tolist():
                    if node not in steady:
                        at(max(float(second), first), partial(action, node))
        if clock.publish_every_s > 0:
            phase = priorities(self.seed, _PHASE, self.workload.topic_count).astype(np.float64) / 2.0**64
            for topic in range(self.workload.topic_count):
                first = clock.publish_from_s + float(phase[topic]) * clock.publish_every_s
                at(first, partial(self._publish, topic))
        at(clock.measure_from_s, self._begin_measurement)

    def _start(self, node: Address) -> None:
        if node in self._here and node not in self.engine.peers:
            self.joined += 1
            self.since[node] = self.engine.now
            self.engine.start(node, self.system.peer(node, self.before.get(node)))
            self.before[node] = self.engine.peers[node]

    def _join(self, node: Address) -> None:
        self._gone(node)
        self.engine.crash(node)  # one that was still leaving
        self._here.add(node)
        self._start(node)

    def _crash(self, node: Address) -> None:
        self._here.discard(node)
        self._gone(node)
        self.engine.crash(node)

    def _leave(self, node: Address) -> None:
        self._here.discard(node)
        self._gone(node)
        self.engine.leave(node)

    def _gone(self, node: Address) -> None:
        since = self.since.pop(node, None)
        if since is not None:
            self.left += 1
            self.online_s[node] += self.engine.now - max(since, self.counted_from)

    def _publish(self, topic: int) -> None:
        clock, engine, publisher = self.clock, self.engine, self.publishers[topic]
        if engine.now > clock.end_s - clock.quiet_s:
            return
        since, old = self.since, engine.now - clock.grace_s
        counted = {node for node in self.interested[topic] if since.get(node, math.inf) <= old} - {publisher}
        self.recorder.publish(engine.now, topic, publisher, counted)
        engine.do(publisher, engine.peers[publisher].publish(engine.now, topic, bytes(clock.payload_bytes)))
        engine.at(engine.now + clock.publish_every_s, partial(self._publish, topic))

    def _begin_measurement(self) -> None:
        """Loads are counted from now on."""
        engine = self.engine
        engine.restart_load()
        self.online_s.clear()
        self.recorder.restart_load()
        self.counted_from = engine.now
        for node, peer in engine.peers.items():
            if node < self.workload.node_count:
                self.system.restart_counts(peer)

    # What is measured on the way

    def messages_since(self) -> dict[str, int]:
        """Messages by kind since the last time that this was asked."""
        counts = self.engine.counts
        new = {kind.__name__: count - self._said[kind] for kind, count in counts.items()}
        self._said = counts
        return dict(sorted(new.items()))


def choose_publishers(workload: Workload, seed: int) -> list[Address]:
    """The publisher of every topic: the trace's, or a random subscriber; node 0 where there is none."""
    rank = priorities(seed, _PUBLISHER, workload.node_count)
    found = []
    for topic, publisher in enumerate(workload.publishers.tolist()):
        if publisher < 0:
            subscribers = workload.subscribers_of(topic)
            publisher = int(subscribers[np.argmin(rank[subscribers])]) if len(subscribers) else 0
        found.append(publisher)
    return found


def simulate_peers(
    system: str,
    workload: Workload,
    config: Config,
    clock: ClockConfig,
    *,
    seed: int,
    schedule: Schedule | None,
    recorded: Latency | None = None,
    transcript: Transcript | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Run a system of peers and measure it."""
    from grapevine.version import __version__

    began, cpu = time.perf_counter(), time.process_time()
    run = PeerRun(
        system, workload, config, clock, seed=seed, schedule=schedule, recorded=recorded, transcript=transcript
    )
    rows: list[dict[str, Any]] = []
    letters: list[dict[str, Any]] = []
    at = 0.0
    while at < clock.end_s:
        at = min(at + clock.sample_s, clock.end_s)
        run.engine.run(at)
        rows.append(round_row(run, rows))
        letters += [
            {"round": int(at), "kind": kind, "count": count, "descriptors": 0}
            for kind, count in run.messages_since().items()
        ]
        if progress:
            progress(rows[-1] | {"stage": RUNNING})
    if progress:
        progress(rows[-1] | {"stage": MEASURING})
    found = final_tables(run, rows)
    found[tables.MESSAGES.name] = pa.Table.from_pylist(letters, schema=tables.MESSAGES.schema)
    summary = summarise(run, found) | {
        "wall_s": time.perf_counter() - began,
        "cpu_s": time.process_time() - cpu,
    }
    return Simulation(
        system, "peers", config.as_dict(), clock.as_dict(), workload.name, seed, summary, found, version=__version__
    )
