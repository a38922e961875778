"""Collect: the diaries of a live network become a workload and the tables of a run, measured like an experiment.

    OUT/workload                      who was there, and who wanted what at the end; lines that were rejected
    OUT/simulations/run_id=live       the tables of the run
    OUT/runs, metrics, series, …      the tables of an experiment of one run, and manifest.json last

Delays are differences of two nodes' clocks: exact on one machine, and elsewhere as good as the clocks agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from grapevine.metrics.course import ONLINE
from grapevine.metrics.findings import MESSAGES
from grapevine.metrics.headlines import headlines
from grapevine.metrics.structure import GATEWAYS_PER_TOPIC
from grapevine.metrics.timed import DELAY_MS_AT
from grapevine.metrics.traffic import HIT_RATIO, OVERHEAD, delivery_hops
from grapevine.model import tables
from grapevine.model.folder import new_folder
from grapevine.model.location import Location, remove
from grapevine.model.manifest import Manifest
from grapevine.model.store import read_table, write_table
from grapevine.pipeline import live_events, live_nodes
from grapevine.pipeline.dense import number_names
from grapevine.pipeline.diaries import Diaries, find_diaries, read_diaries, system_and_config
from grapevine.pipeline.live_course import Course, messages_table, rounds_table
from grapevine.pipeline.live_drawing import draw, drawn_topic
from grapevine.pipeline.measure import KIND, Run, measure
from grapevine.pipeline.stage import Stage
from grapevine.pipeline.topic_graphs import graphs_of
from grapevine.sim.result import KIND as SIMULATION
from grapevine.sim.result import SIMULATIONS, run_folder
from grapevine.version import __version__

RUN = "live"
_RECORD_BYTES = 128  # of a diary, on disk
_PROGRESS = {
    "Hit ratio": HIT_RATIO,
    "Delay": DELAY_MS_AT.of(quantile="p50"),
    "Delay of the slowest": DELAY_MS_AT.of(quantile="p95"),
    "Overhead": OVERHEAD,
    "Nodes": ONLINE,
}
_PLOTS: list[dict[str, Any]] = [
    *({"title": title, "kind": "progress", "y": metric.name} for title, metric in _PROGRESS.items()),
    {"title": "Degree", "kind": "distribution", "quantity": "degree", "x_label": "neighbours"},
]


def collect(stage: Stage, folder: Location, out: Location, *, force: bool = False) -> Manifest:
    """Read the diaries of a folder into a new experiment folder, which `grapevine report` makes a page of.

    UsageError if there are no diaries, none can be read, or they are of several networks. Lines that cannot be read are
    counted, and stored in the workload's `rejected` table.
    """
    paths = find_diaries(folder)
    with stage.expecting(folder, row_bytes=_RECORD_BYTES), new_folder(out, kind=KIND, force=force) as partial:
        scratch = partial / "_scratch"
        diaries = read_diaries(stage, paths, scratch / "records")
        system, config = system_and_config(diaries)
        made = _Collection(stage, diaries, partial, scratch)
        made.write_workload(str(folder))
        summary = made.write_run()
        counts = diaries.counts | made.counts
        simulation = Manifest(
            kind=SIMULATION,
            stage="collect",
            version=__version__,
            config={
                "system": system,
                "driver": "live",
                "parameters": config,
                "run": {"seconds": made.course.end_s},
            },
            inputs=[RUN],
            tables=made.written,
            counts=summary | counts,
        )
        simulation.write(made.run)
        remove(scratch)
        return measure(
            stage,
            [Run(RUN, system, RUN, "{}", 0, show_course=True)],
            {},
            made.simulations,
            partial,
            Manifest(
                kind=KIND,
                stage="collect",
                version=__version__,
                config=_description(system, counts),
                inputs=[str(folder)],
                counts=counts,
            ),
        )


def _description(system: str, counts: dict[str, Any]) -> dict[str, Any]:
    """The run described as an experiment: what a page says of it, and draws."""
    notes = (
        f"{counts['nodes']:,} nodes on real sockets, {counts['seconds']:,} seconds, {counts['events']:,} events. "
        "Delays are differences of two nodes’ clocks. Subscribers that were away when an event was published, and came "
        "back, count."
    )
    if counts["rejected"] or counts["lost"]:
        notes += f"\n\n{counts['rejected']:,} lines could not be read, and nodes lost {counts['lost']:,}."
    return {
        "name": RUN,
        "title": f"A live network: {system}",
        "notes": notes,
        "workloads": [{"name": RUN}],
        "systems": [{"system": system}],
        "plots": [{"x_label": "seconds"} | plot for plot in _PLOTS],
    }


@dataclass(slots=True)
class _Collection:
    """One collection at work: `write_workload` makes the frames, then `write_run` reads them."""

    stage: Stage
    diaries: Diaries
    out: Location
    scratch: Location
    written: dict[str, int] = field(default_factory=dict)  # tables of the run → rows
    counts: dict[str, Any] = field(default_factory=dict)  # for the manifests
    nodes: DataFrame = field(init=False)  # node, name
    topics: DataFrame = field(init=False)  # topic, name, id (as diaries write it)
    sessions: DataFrame = field(init=False)  # live_nodes.session_spans
    seen: DataFrame = field(init=False)  # live_nodes.last_seen
    spans: DataFrame = field(init=False)  # live_events.subscription_spans
    events: DataFrame = field(init=False)  # live_events.number_events
    course: Course = field(init=False)

    @property
    def workload(self) -> Location:
        return self.out / "workload"

    @property
    def simulations(self) -> Location:
        return self.out / SIMULATIONS

    @property
    def run(self) -> Location:
        return run_folder(self.simulations, RUN)

    def keep(self, frame: DataFrame, name: str, label: str | None = None) -> DataFrame:
        """Store a frame that several steps read, and read it again."""
        return self.stage.hold(frame, self.scratch / name, label or f"gathering {name}")

    def write(self, frame: DataFrame, table: tables.Table) -> DataFrame:
        """Store a table of the run, note its rows, and read it again."""
        self.written[table.name] = self.stage.write(frame, self.run, table)
        return self.stage.read(self.run, table)

    def write_workload(self, source: str) -> None:
        """The workload: nodes, topics, and subscriptions as they were at the end, with its manifest."""
        stage, diaries = self.stage, self.diaries
        names = diaries.all().select(F.col("owner").alias("name"))
        self.nodes = number_names(stage, names, "node", self.scratch / "nodes", "numbering nodes", natural=False)
        named = self.keep(_topic_names(diaries), "topic_names")
        numbers = number_names(stage, named.select("name"), "topic", self.scratch / "topics", "numbering topics")
        self.topics = numbers.join(named, "name").select("topic", "name", "id")
        self.sessions = self.keep(live_nodes.session_spans(diaries, self.nodes), "sessions")
        self.course = Course(live_nodes.span_of(self.sessions))
        self.seen = live_nodes.last_seen(self.sessions, self.course.span)
        self.spans = self.keep(live_events.subscription_spans(diaries, self.nodes, self.topics), "subscription_spans")
        self.events = self.keep(live_events.number_events(diaries, self.nodes, self.topics), "events")
        publishers = self.events.groupBy("topic").agg(
            F.min("publisher").alias("one"), F.max("publisher").alias("other")
        )
        publisher = F.when(F.col("one") == F.col("other"), F.col("one")).alias("publisher")
        topics = numbers.join(publishers, "topic", "left").select("topic", "name", F.lit(1.0).alias("rate"), publisher)
        wanted = self.spans.where(
            f"since <= {self.course.span.end} AND (until IS NULL OR until > {self.course.span.end})"
        )
        found = {
            table.name: stage.write(frame, self.workload, table)
            for table, frame in (
                (tables.NODES, self.nodes.orderBy("node")),
                (tables.TOPICS, topics.orderBy("topic")),
                (tables.SUBSCRIPTIONS, wanted.select("node", "topic").distinct().orderBy("node", "topic")),
            )
        }
        if diaries.counts["rejected"]:
            found[tables.REJECTED.name] = stage.write(diaries.rejected(), self.workload, tables.REJECTED)
        self.counts |= {"nodes": found["nodes"], "topics": found["topics"], "seconds": self.course.end_s}
        Manifest(
            kind="workload",
            stage="collect",
            version=__version__,
            inputs=[source],
            tables=found,
            counts=dict(diaries.counts),
        ).write(self.workload)

    def write_run(self) -> dict[str, Any]:
        """All tables of a run; returns its headline numbers."""
        diaries, nodes, course, known = self.diaries, self.nodes, self.course, self.events
        copies = self.keep(live_events.received_copies(diaries, known, nodes), "copies")
        handed = self.keep(live_events.handed_over(diaries, known, nodes), "handed")
        counted = self.keep(live_events.counted_subscribers(known, self.spans, self.seen), "counted")
        ways = self.keep(live_events.first_senders(copies, handed), "ways")
        hops = live_events.hops_of(self.stage, ways, known)
        deliveries = self.write(
            live_events.deliveries_table(handed, counted, hops, known).orderBy("event", "delay_ms", "node"),
            tables.DELIVERIES,
        )
        round_of = course.second(F.col("time"))
        events = self.write(live_events.events_table(known, counted, copies, deliveries, round_of), tables.EVENTS)
        reports = self.keep(live_nodes.link_reports(diaries, self.sessions, nodes), "links")
        final = self.keep(live_nodes.final_links(reports, self.seen, course.span), "final_links")
        links = self.write(live_nodes.links_table(final, nodes), tables.LINKS)
        self.write(live_nodes.node_load_table(nodes, self.seen, final, copies), tables.NODE_LOAD)
        wants = self.stage.read(self.workload, tables.SUBSCRIPTIONS)
        self.write(live_nodes.peers_table(diaries, nodes, self.sessions, self.seen, final, copies, wants), tables.PEERS)
        here = wants.join(self.seen.where("online"), "node").select("node", "topic")
        graphs = graphs_of(self.stage, here, links.select("source", "target"))
        self.write(live_nodes.topic_overlay_table(graphs, self.topics), tables.TOPIC_OVERLAY)
        self.write(self._rounds(known, events, deliveries, reports), tables.ROUNDS)
        self.write(messages_table(diaries, course), tables.MESSAGES)
        self._draw(known, ways, here)
        return self._summarise(copies, known)

    def _rounds(self, known: DataFrame, events: DataFrame, deliveries: DataFrame, reports: DataFrame) -> DataFrame:
        course = self.course
        since_begin = F.col("round").cast("bigint") * 1_000_000  # as an integer it would end after 36 minutes
        row = course.row(since_begin + F.lit(course.span.begin)).alias("row")
        of_event = known.select("event", course.row(F.col("time")).alias("row"))
        return rounds_table(
            course,
            course.rows(self.stage),
            self.sessions,
            reports,
            events.select("*", row),
            deliveries.join(of_event, "event"),
        )

    def _draw(self, known: DataFrame, ways: DataFrame, here: DataFrame) -> None:
        topic = drawn_topic(self.run)
        drawn = tables.DRAWN_NODES.schema.empty_table(), tables.DRAWN_LINKS.schema.empty_table()
        if topic is not None:
            online = self.nodes.join(self.seen.where("online"), "node").collect()
            wanting = {row.node for row in here.where(F.col("topic") == topic).collect()}
            links = read_table(self.run, tables.LINKS)
            with self.stage.step("drawing a topic"):
                drawn = draw(topic, {row.node: row.name for row in online}, wanting, links, ways, known)
        for content, table in zip(drawn, (tables.DRAWN_NODES, tables.DRAWN_LINKS), strict=True):
            self.written[table.name] = write_table(content, self.run, table)

    def _summarise(self, copies: DataFrame, known: DataFrame) -> dict[str, Any]:
        """The headline numbers of a simulation; and into `counts` what only a live run has."""
        found = {
            table.name: read_table(self.run, table)
            for table in (tables.EVENTS, tables.NODE_LOAD, tables.PEERS, tables.TOPIC_OVERLAY, tables.DELIVERIES)
        }
        rounds, (event, hops) = found["events"]["round"], (found["deliveries"][name] for name in ("event", "hops"))
        ways = delivery_hops(rounds.to_numpy(), event.to_numpy(), hops.to_numpy())
        found |= {tables.DELIVERY_HOPS.name: ways}
        self.written[tables.DELIVERY_HOPS.name] = write_table(ways, self.run, tables.DELIVERY_HOPS)
        traffic = self.diaries.of("traffic")
        with self.stage.step("summing up"):
            totals = traffic.agg(*(F.sum(name).alias(name) for name in ("bytes_in", "bytes_out"))).collect()[0]
            sessions, unfinished = self.sessions.agg(F.count("*"), F.count_if(~F.col("ended"))).collect()[0]
            heard = self.diaries.of("received").count()
        self.counts |= {
            "events": self.written["events"],
            "sessions": sessions,
            "unfinished_sessions": unfinished,
            "unknown_copies": heard - copies.count(),
            **{name: value or 0 for name, value in totals.asDict().items()},
        }
        sent = found["peers"]["messages_out"].to_numpy().sum()
        return headlines(found) | {MESSAGES.name: float(sent), GATEWAYS_PER_TOPIC.name: None}


def _topic_names(diaries: Diaries) -> DataFrame:
    """(id, name) of all topics that somebody subscribed to or published in; where nobody says a name, it is the id."""
    named = diaries.of("subscribed", "unsubscribed").select(F.col("topic").alias("id"), "name")
    published = diaries.of("published").select(F.col("topic").alias("id"), F.lit(None).alias("name"))
    return named.union(published).groupBy("id").agg(F.coalesce(F.min("name"), F.col("id")).alias("name"))
