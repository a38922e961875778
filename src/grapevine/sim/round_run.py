"""A run by rounds, from the first round to tables and headline numbers, with measurements on the way."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grapevine.metrics.distributions import Histogram
from grapevine.metrics.findings import (
    CPU_S,
    LOOKUP_HOPS,
    OVERLAY_DIAMETER,
    OVERLAY_DIAMETER_MAX,
    POPULARITY_EXPONENT,
    RING,
    TOP_INTERSECTION,
    UTILITY,
    WALL_S,
)
from grapevine.metrics.headlines import headlines
from grapevine.metrics.power_law import fit_power_law
from grapevine.metrics.similarity import mean_top_intersection
from grapevine.metrics.structure import CONNECTED_TOPICS, DEGREE, DEGREE_MAX, DIAMETER, DIAMETER_MAX
from grapevine.metrics.traffic import outcome
from grapevine.metrics.workload import describe
from grapevine.model import tables
from grapevine.model.config import Config, parameter
from grapevine.model.workload import Workload
from grapevine.sim.progress import MEASURING, RUNNING, Progress
from grapevine.sim.result import Simulation, own_tables
from grapevine.sim.round_tables import final_tables, with_diameters
from grapevine.sim.rounds import Rounds, Traffic
from grapevine.systems.contracts.rounds import Sent

Columns = dict[str, NDArray[Any]]


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
    overlay_diameters: bool = parameter(
        False,
        "measure their diameters by way of any node, too (another search from every subscriber, of all nodes)",
        source="SpiderCast §3.4: its diameters are of this kind (docs/papers.md#spidercast)",
    )
    measure_diameters: bool = parameter(
        False, "measure the diameters of the sampled topics on the way, too", source="OMen Fig. 11"
    )
    fit_popularity: bool = parameter(
        False, "fit a power law to the popularity of topics (exponent of the tail)", source="Magnet Fig. 7"
    )
    describe_workload: bool = parameter(
        False, "tell nodes, degrees and their exponents of the workload among the results", source="Vitis Fig. 9"
    )
    intersection_nodes: int = parameter(
        0,
        "nodes whose interests are compared with all others' (top-d intersection, d = twice a node's topics)",
        source="SpiderCast §3.4",
        low=0,
    )


class Course:
    """What is measured on the way: rows of the tables `rounds` and `messages`, and the events of sampled topics."""

    def __init__(self, engine: Rounds, run: RunConfig) -> None:
        self._engine, self._run = engine, run
        self.rounds: list[dict[str, Any]] = []
        self.messages: list[dict[str, Any]] = []
        self.events: list[Columns] = []  # columns of the table, of one measurement each; none: no topics are sampled
        self.hops: list[Columns] = []  # of the table `delivery_hops`, likewise
        self._before = 0, 0  # joined and left, at the measurement before
        self._sent: dict[str, Sent] = {}

    def is_measured(self, now: int) -> bool:
        """Whether this round is one of those that are measured; the last one always is."""
        run = self._run
        return now == run.rounds or (now >= run.measure_from and now % run.measure_every == 0)

    def measure(self) -> dict[str, Any]:
        """Measure the round that has just been done; returns the row of the table `rounds`."""
        engine = self._engine
        row, traffic = _measure_sample(engine, self._run, len(self.rounds))
        row |= {"joined": engine.joined - self._before[0], "left": engine.left - self._before[1]}
        self._before = engine.joined, engine.left
        sent = engine.system.messages()
        self.messages += [
            _message_row(engine.now, kind, total, self._sent.get(kind, Sent(0, 0))) for kind, total in sent.items()
        ]
        self._sent = sent
        self.rounds.append(row)
        if traffic is not None:
            self.events.append(traffic.events)
            self.hops.append(traffic.hops)
        return row

    def saved(self) -> tuple[dict[str, Any], Columns]:
        """What was measured so far, as `restore` takes it: plain values for JSON, and arrays."""
        rows = {"rounds": self.rounds, "messages": self.messages, "before": self._before, "sent": self._sent}
        plain = json.loads(json.dumps(rows, default=lambda value: value.item()))  # numpy's numbers as Python's
        kept = {
            f"{kind}-{i:06}-{name}": array
            for kind, measured in (("events", self.events), ("hops", self.hops))
            for i, one in enumerate(measured)
            for name, array in one.items()
        }
        return plain, kept

    def restore(self, rows: dict[str, Any], kept: Columns) -> None:
        """Take what `saved` gave."""
        self.rounds, self.messages = rows["rounds"], rows["messages"]
        self._before = rows["before"][0], rows["before"][1]
        self._sent = {kind: Sent(*counts) for kind, counts in rows["sent"].items()}
        found: dict[str, dict[str, Columns]] = {"events": {}, "hops": {}}
        for name, array in sorted(kept.items()):
            kind, i, column = name.split("-")
            found[kind].setdefault(i, {})[column] = array
        self.events, self.hops = (list(found[kind].values()) for kind in ("events", "hops"))


class Keeps(Protocol):
    """Who keeps a run after every round, so that it can go on after it was killed (`sim/parts/keeper`)."""

    def keep(self, engine: Rounds, course: Course) -> None:
        """The round is done and measured."""

    def go_on(self, engine: Rounds, course: Course) -> bool:
        """Bring both to the last round that was kept, if there is one."""
        ...


def simulate_rounds(
    engine: Rounds, config: Config, run: RunConfig, progress: Progress | None, keeper: Keeps | None = None
) -> Simulation:
    """Run a system by rounds and measure it. The engine is fresh, though the keeper may bring it further before the
    first round; `config` is that of its system."""
    from grapevine.version import __version__

    began, cpu = time.perf_counter(), time.process_time()
    course = Course(engine, run)
    if keeper:
        keeper.go_on(engine, course)
    for now in range(engine.now + 1, run.rounds + 1):
        engine.step()
        if course.is_measured(now):
            row = course.measure()
            if progress:
                progress(row | {"stage": RUNNING, "bytes_sent": engine.network.bytes_sent})
        if keeper:
            keeper.keep(engine, course)
    if progress:
        progress(course.rounds[-1] | {"stage": MEASURING, "bytes_sent": engine.network.bytes_sent})
    workload = engine.workload
    engine.settle((0, workload.topic_count))
    everything = np.arange(workload.topic_count, dtype=np.int32)
    traffic = engine.publish(everything, grace_rounds=run.grace_rounds)
    if engine.schedule.changes and course.events:  # otherwise the samples say nothing that the end does not
        traffic = traffic._replace(events=_joined(course.events), hops=_joined(course.hops))
    found = {
        **final_tables(engine, traffic, diameter_topics=run.diameter_topics),
        tables.ROUNDS.name: pa.Table.from_pylist(course.rounds, schema=tables.ROUNDS.schema),
        tables.MESSAGES.name: pa.Table.from_pylist(course.messages, schema=tables.MESSAGES.schema),
        **own_tables(engine.name, "rounds", engine.system.own_rows()),
        **{table.name: table.schema.empty_table() for table in tables.TIMED_TABLES},
    }
    summary = _summarise(engine, run, found) | {
        WALL_S.name: time.perf_counter() - began,
        CPU_S.name: time.process_time() - cpu,
    }
    parameters, settings = config.as_dict(), run.as_dict()
    return Simulation(
        *(engine.name, "rounds", parameters, settings, workload.name, engine.network.seed),
        summary=summary,
        tables=found,
        version=__version__,
    )


def _summarise(engine: Rounds, run: RunConfig, found: dict[str, pa.Table]) -> dict[str, float | None]:
    """Headline numbers: what the tables tell, the state of the overlay, and what the run was asked for besides."""
    similar = mean_top_intersection(engine.workload, run.intersection_nodes) if run.intersection_nodes else None
    return headlines(found) | {
        RING.name: engine.ring_correctness(),
        LOOKUP_HOPS.name: engine.lookup_hops(),
        UTILITY.name: engine.mean_utility(),
        **engine.system.findings(),
        TOP_INTERSECTION.name: similar,
        POPULARITY_EXPONENT.name: _popularity_exponent(engine.workload) if run.fit_popularity else None,
        **(_overlay_diameters(engine, run.diameter_topics) if run.overlay_diameters else {}),
        **(describe(engine.workload) if run.describe_workload else {}),
    }


def _overlay_diameters(engine: Rounds, diameter_topics: int) -> dict[str, float | None]:
    """Their mean and largest, over topics whose subscribers reach each other; None where there is no such topic."""
    sizes = engine.topic_clusters()[:, 0]
    chosen = with_diameters(len(sizes), diameter_topics)
    found = engine.overlay_diameters(chosen)
    found = found[(found >= 0) & (sizes[chosen] > 0)]
    mean, most = (float(found.mean()), float(found.max())) if len(found) else (None, None)
    return {OVERLAY_DIAMETER.name: mean, OVERLAY_DIAMETER_MAX.name: most}


def _popularity_exponent(workload: Workload) -> float | None:
    fit = fit_power_law(Histogram.of(workload.topic_nodes.sizes()))
    return fit.exponent if fit else None


def _message_row(now: int, kind: str, total: Sent, before: Sent) -> dict[str, Any]:
    """A row of the `messages` table: what was sent since the measured round before."""
    carried = total.descriptors - before.descriptors
    return {"round": now, "kind": kind, "count": total.messages - before.messages, "descriptors": carried}


def _joined(parts: list[Columns]) -> Columns:
    return {name: np.concatenate([columns[name] for columns in parts]) for name in parts[0]}


def _measure_sample(engine: Rounds, run: RunConfig, index: int) -> tuple[dict[str, Any], Traffic | None]:
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
    traffic = engine.publish(topics, grace_rounds=run.grace_rounds)
    row[CONNECTED_TOPICS.name] = engine.connected_topics(window, grace_rounds=run.grace_rounds)
    if run.measure_diameters:
        whole = topics[engine.topic_clusters(window)[:, 1] == 1]
        if len(whole):
            diameters = engine.topic_diameters(whole)
            row |= {DIAMETER.name: float(diameters.mean()), DIAMETER_MAX.name: int(diameters.max())}
    return row | outcome(traffic.events), traffic
