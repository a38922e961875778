"""The schema of every stored table, in one place; docs/tables.md is written from it (`make docs`).

A stage writes exactly these columns, in this order and of these types, and readers may rely on it. `empty` in a meaning
says what a null stands for; columns that may be null are declared so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, Arrow type, what a value means (with its unit), and whether it may be null."""

    name: str
    type: pa.DataType
    meaning: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One stored table: a folder of Parquet files below the stage's output folder."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, as stored."""
        return pa.schema([pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns])

    @property
    def column_names(self) -> list[str]:
        """Column names in stored order."""
        return [column.name for column in self.columns]


_int = pa.int32()
_long = pa.int64()
_real = pa.float64()
_text = pa.string()

NODES = Table(
    "nodes",
    "Everyone who takes part: subscribers and publishers, numbered 0 … nodes-1 in the order of their names.",
    (Column("node", _int, "dense number"), Column("name", _text, "name in the source trace")),
)

TOPICS = Table(
    "topics",
    "Topics, numbered 0 … topics-1 in the order of their names. In traces and samples each has a subscriber.",
    (
        Column("topic", _int, "dense number"),
        Column("name", _text, "name in the source trace"),
        Column(
            "rate",
            _real,
            "publication rate: events per day for timed traces, otherwise relative (mean 1 before sampling)",
        ),
        Column(
            "publisher",
            _int,
            "the node that publishes it, where that is known (follows, friends, magnet-spatial)",
            True,
        ),
    ),
)

SUBSCRIPTIONS = Table(
    "subscriptions",
    "Who subscribes to what; each pair once, sorted by node and topic inside each file.",
    (Column("node", _int, "subscriber"), Column("topic", _int, "topic")),
)

CHURN = Table(
    "churn",
    "Sessions: when a node was there.",
    (
        Column("node", _int, "node"),
        Column("joined_s", _real, "seconds from the trace's origin"),
        Column("left_s", _real, "seconds from the trace's origin; empty: still there at the end of the trace", True),
    ),
)

LATENCY = Table(
    "latency",
    "Measured round-trip times between ordered pairs of nodes.",
    (
        Column("slice", _int, "time slice: the number of the input file for matrices, 0 for pair lists"),
        Column("source", _int, "node that measured"),
        Column("target", _int, "node that answered"),
        Column("rtt_ms", _real, "round-trip time, milliseconds"),
    ),
)

REJECTED = Table(
    "rejected",
    "Input lines that could not be read.",
    (
        Column("file", _text, "input file"),
        Column("line", _long, "line number, from 1"),
        Column("reason", _text, "what is wrong with it"),
        Column("content", _text, "its first 200 characters"),
    ),
)

_workload = Column("workload", _text, "name of the profiled workload")
_degree = Column("degree", _text, "`subscriptions` of a subscriber, or `subscribers` of a topic")

DEGREE_STATISTICS = Table(
    "degree_statistics",
    "The rows of Vitis Fig. 9, inequality and the power-law fit of both degree distributions.",
    (
        _workload,
        _degree,
        Column("count", _long, "how many subscribers, or topics"),
        Column("mean", _real, "mean degree"),
        Column("variance", _real, "variance (of the whole population)"),
        Column("standard_deviation", _real, "square root of the variance"),
        Column("maximum", _long, "largest degree"),
        Column("gini", _real, "0: all equal, 1: one has all"),
        Column("exponent", _real, "power-law exponent of the tail, discrete maximum likelihood", True),
        Column("exponent_error", _real, "standard error of the exponent", True),
        Column("tail_start", _long, "smallest degree of the fitted tail", True),
        Column("tail_share", _real, "share of the population in the fitted tail", True),
        Column("fit_distance", _real, "Kolmogorov–Smirnov distance of tail and fit", True),
        Column(
            "whole_exponent",
            _real,
            "exponent when the whole distribution is fitted, from its smallest degree",
            True,
        ),
        Column("whole_fit_distance", _real, "Kolmogorov–Smirnov distance of that fit", True),
    ),
)

DEGREE_CCDF = Table(
    "degree_ccdf",
    "Both degree distributions, complete.",
    (
        _workload,
        _degree,
        Column("value", _long, "a degree that occurs"),
        Column("count", _long, "how many have it"),
        Column("ccdf", _real, "share that has at least this degree"),
    ),
)

INTEREST_COVERAGE = Table(
    "interest_coverage",
    "Interest locality (Rappel Fig. 1): how far a few greedily chosen best friends cover a subscriber's topics.",
    (
        _workload,
        Column("friends", _int, "number of friends, k"),
        Column("complete", _real, "share of sampled subscribers whose k friends cover all their topics"),
        Column("complete_coverable", _real, "like `complete`, not counting topics that have no other subscriber"),
        Column("mean_coverage", _real, "mean share of topics covered"),
        Column("sampled", _long, "subscribers in the sample (of at least `least_subscriptions` each)"),
    ),
)

INTEREST_OVERLAP = Table(
    "interest_overlap",
    "How alike subscribers are.",
    (
        _workload,
        Column("measure", _text, "`tdi` (SpiderCast §3.4, percent) or `jaccard` (mean over pairs, 0 … 1)"),
        Column("d", _int, "d of tdi(d); empty for jaccard", True),
        Column("value", _real, "measured value"),
        Column("sampled", _long, "subscribers in the sample"),
    ),
)

LINKS = Table(
    "links",
    "The overlay at the end: whom each online node chose. A link is a connection and carries events both ways.",
    (
        Column("source", _int, "node that chose the link"),
        Column("target", _int, "node at the other end"),
        Column(
            "kind",
            _text,
            "what it was chosen for: `successor`, `predecessor`, `long`, `finger`, `friend`, `coverage`, "
            "`topic successor`, `designed`, `parent`; `neighbour` where both ends agreed on it",
        ),
    ),
)

EVENTS = Table(
    "events",
    "Published events and what became of them. Received = wanted + duplicate + unwanted.",
    (
        Column("round", _int, "round in which it was published"),
        Column("topic", _int, "topic"),
        Column("publisher", _int, "node that published it"),
        Column("rate", _real, "publication rate of the topic: the event's weight in means"),
        Column(
            "subscribers",
            _long,
            "online subscribers that count (there for the grace time), publisher excluded; of a live run also those "
            "that were away and came back",
        ),
        Column("reached", _long, "subscribers that count and received it"),
        Column("wanted", _long, "first notifications to interested nodes"),
        Column("duplicate", _long, "further notifications to interested nodes"),
        Column("unwanted", _long, "notifications to nodes without interest, repeated ones included"),
        Column("relays", _long, "nodes without interest that received it"),
        Column("hops_sum", _long, "hops to the reached subscribers, summed"),
        Column("hops_p50", _long, "hops within which half of them were reached (nearest rank; 0: none reached)"),
        Column("hops_p95", _long, "hops within which 95 % of them were reached"),
        Column("hops_p99", _long, "hops within which 99 % of them were reached"),
        Column("hops_max", _long, "hops to the subscriber that is farthest"),
    ),
)

NODE_LOAD = Table(
    "node_load",
    "Per node: its links, and what it received in the last evaluation (one event per topic, weighted by rate).",
    (
        Column("node", _int, "node"),
        Column("online", pa.bool_(), "whether it was there at the end"),
        Column("degree", _long, "distinct neighbours, both ways"),
        Column("wanted", _real, "first notifications of its topics, per mean topic rate"),
        Column("duplicate", _real, "further notifications of its topics, per mean topic rate"),
        Column("unwanted", _real, "notifications of topics that it does not want, per mean topic rate"),
        Column("overhead", _real, "unwanted over all received; empty: it received nothing", True),
    ),
)

TOPIC_OVERLAY = Table(
    "topic_overlay",
    "Per topic: the graph of its online subscribers at the end.",
    (
        Column("topic", _int, "topic"),
        Column("subscribers", _long, "online subscribers"),
        Column("clusters", _long, "connected parts of their links; 1: the topic is connected"),
        Column("largest_cluster", _long, "subscribers in the largest part"),
        Column("gateways", _long, "subscribers that look up the topic's rendezvous"),
        Column("diameter", _long, "longest shortest path inside a cluster; empty: not asked for this topic", True),
    ),
)

ROUNDS = Table(
    "rounds",
    "The run as it went: one row per measured round. Delivery is measured on a sample of topics. A timed "
    "run, virtual or live, has a round per second and measures all topics.",
    (
        Column("round", _int, "round"),
        Column("online", _long, "nodes that are there"),
        Column("joined", _long, "joins since the row before"),
        Column("left", _long, "leaves and crashes since the row before"),
        Column(
            "ring", _real, "share of nodes with true successor and predecessor; empty: the system has no ring", True
        ),
        Column("utility", _real, "mean utility (Vitis Eq. 1) of the links of a sample of nodes", True),
        Column("hit_ratio", _real, "share of counted subscribers reached; empty: nothing published", True),
        Column("overhead", _real, "share of notifications that nobody wanted", True),
        Column("hops", _real, "mean hops of deliveries", True),
        Column("degree", _real, "mean neighbours of online nodes", True),
        Column(
            "connected_topics", _real, "share of the sampled topics whose counted subscribers form one cluster", True
        ),
        Column("degree_max", _long, "most neighbours of an online node", True),
        Column("delay_ms_p50", _real, "timed runs: median delay of the events since the row before", True),
        Column("delay_ms_p95", _real, "timed runs: 95th percentile of these delays", True),
        Column("stretch_p50", _real, "median length of their ways in coordinates, over the direct distance", True),
        Column("stretch_p95", _real, "95th percentile of these ratios", True),
        Column("diameter", _real, "mean diameter of the sampled topics; empty: not asked for", True),
    ),
)

MESSAGES = Table(
    "messages",
    "Control messages of systems that count them: one row per measured round and kind.",
    (
        Column("round", _int, "round"),
        Column(
            "kind",
            _text,
            "SpiderCast: connect, connect-ok, redirect, disconnect, disconnect-ok, leave. OMen: gossip (views), join, "
            "notify (an event to the successors), collect (the shadow set asked, and its answers), connect (new "
            "links to their ends), neighbours (changed links to the successors), done. Timed runs: message kinds",
        ),
        Column("count", _long, "messages since the measured round before"),
        Column("descriptors", _long, "descriptors of nodes (address and topics) that they carried"),
    ),
)

DELIVERIES = Table(
    "deliveries",
    "Timed runs: every first copy of an event that a counted subscriber got.",
    (
        Column("event", _int, "row number of the event in `events`, from 0"),
        Column("node", _int, "who got it"),
        Column("delay_ms", _real, "from publication to delivery"),
        Column("hops", _int, "nodes that passed it on, the publisher included"),
        Column("pulled", pa.bool_(), "asked for, because it had been missed"),
        Column(
            "direct_ms",
            _real,
            "what a message from publisher to node would have taken then; empty: a live run, nobody knows",
            True,
        ),
        Column("coordinate_ms", _real, "distance of the two in network coordinates; empty: the system has none", True),
        Column("path_ms", _real, "length in network coordinates of the way that the event took; empty: none", True),
        Column("observer", pa.bool_(), "one of the nodes that never leave"),
    ),
)

PEERS = Table(
    "peers",
    "Timed runs: every node that was online at the end, or since the measurement began.",
    (
        Column("node", _int, "node"),
        Column("online", pa.bool_(), "whether it was there at the end"),
        Column("online_s", _real, "seconds that it was there since the measurement began"),
        Column("subscriptions", _long, "topics that it subscribes to"),
        Column("neighbours", _long, "distinct friends, parents and children"),
        Column("roles", _long, "roles that these play, e.g. the parent in one tree and a friend"),
        Column("messages_in", _long, "messages received since the measurement began, events included"),
        Column("messages_out", _long, "messages sent since the measurement began, events included"),
        Column("events_in", _long, "received messages that carried an event, repeated ones included"),
        Column("events_out", _long, "sent messages that carried an event"),
    ),
)

DRAWN_NODES = Table(
    "drawn_nodes",
    "One topic to look at: every node that carries it, with its place on the ring.",
    (
        Column("topic", _int, "topic"),
        Column("node", _int, "node"),
        Column("role", _text, "`subscriber`, `gateway` (a subscriber), `relay`, `rendezvous` (a relay) or `publisher`"),
        Column("cluster", _int, "number of its cluster, from 0 by size; empty: not a subscriber", True),
        Column("position", _real, "place on the identifier ring, or direction from the publisher, 0 … 1"),
    ),
)

DRAWN_LINKS = Table(
    "drawn_links",
    "The links that the topic's events travel on.",
    (
        Column("topic", _int, "topic"),
        Column("source", _int, "one end"),
        Column("target", _int, "the other end"),
        Column("kind", _text, "`cluster` (between subscribers) or `path` (of a lookup, or of a tree by way of others)"),
    ),
)

_system = Column("system", _text, "system")
_on = Column("workload", _text, "name of the workload in the experiment")
_parameters = Column("parameters", _text, 'what the grid set, as JSON with sorted keys, e.g. `{"table_size": 15}`')
_mean = Column("mean", _real, "mean over seeds")
_low = Column("low", _real, "lower end of its 95 % confidence interval; the mean itself for one seed")
_high = Column("high", _real, "upper end of its 95 % confidence interval; the mean itself for one seed")
_count = Column("runs", _long, "seeds that it is the mean of")

RUNS = Table(
    "runs",
    "Every run of an experiment; its own tables lie in `simulations/run_id=…`.",
    (
        Column("run_id", _text, "hash of system, configuration, workload, seed and code version"),
        _system,
        _on,
        _parameters,
        Column("seed", _long, "seed"),
        Column("status", _text, "`done` or `failed`"),
        Column("error", _text, "why it failed", True),
        Column("wall_s", _real, "wall seconds", True),
        Column("cpu_s", _real, "CPU seconds", True),
    ),
)

METRICS = Table(
    "metrics",
    "Measures of each run, aggregated from its tables.",
    (
        Column("run_id", _text, "run"),
        Column("metric", _text, "name, e.g. `hit_ratio`, `overhead`, `hops`"),
        Column("value", _real, "value; empty: undefined for this run", True),
    ),
)

SERIES = Table(
    "series",
    "Measures of runs that differ in their seeds alone, averaged: the points of a figure.",
    (_system, _on, _parameters, Column("metric", _text, "name"), _count, _mean, _low, _high),
)

DISTRIBUTIONS = Table(
    "distributions",
    "How a quantity is distributed over online nodes, all seeds together.",
    (
        _system,
        _on,
        _parameters,
        Column("quantity", _text, "`overhead` (in steps of 0.1), `degree`, `view` or `backup_of`"),
        Column("at", _real, "lower end of the step of `overhead`; the value itself of the other quantities"),
        Column("share", _real, "share of the nodes in this step, or with this value"),
    ),
)

PROGRESS = Table(
    "progress",
    "Measures over the rounds of a run, for runs with churn.",
    (
        _system,
        _on,
        _parameters,
        Column("round", _int, "round"),
        Column("metric", _text, "a measure of the `rounds` table, e.g. `online`, `hit_ratio` or `degree_max`"),
        _count,
        _mean,
        _low,
        _high,
    ),
)

TOPIC_GRAPHS = Table(
    "topic_graphs",
    "Per topic: the graph of its online subscribers, measured from stored links (`grapevine measure`).",
    (
        Column("topic", _int, "topic"),
        Column("subscribers", _long, "online subscribers"),
        Column("clusters", _long, "connected parts of their links"),
        Column("largest_cluster", _long, "subscribers in the largest part"),
        Column("diameter", _long, "longest shortest path inside a cluster"),
    ),
)

WORKLOAD_TABLES = (NODES, TOPICS, SUBSCRIPTIONS, CHURN, LATENCY, REJECTED)
PROFILE_TABLES = (DEGREE_STATISTICS, DEGREE_CCDF, INTEREST_COVERAGE, INTEREST_OVERLAP)
TIMED_TABLES = (DELIVERIES, PEERS)  # empty in runs by rounds
SIMULATION_TABLES = (  # of every run; a system may have tables of its own beside these
    *(EVENTS, NODE_LOAD, TOPIC_OVERLAY, LINKS, ROUNDS, MESSAGES, DRAWN_NODES, DRAWN_LINKS),
    *TIMED_TABLES,
)
EXPERIMENT_TABLES = (RUNS, METRICS, SERIES, DISTRIBUTIONS, PROGRESS)
ALL_TABLES = {
    "Workload (`grapevine workload ingest | sample | generate`)": WORKLOAD_TABLES,
    "Profile (`grapevine workload profile`)": PROFILE_TABLES,
    "Simulation (`grapevine simulate`), or a live run (`grapevine collect`)": SIMULATION_TABLES,
    "Experiment (`grapevine run`)": EXPERIMENT_TABLES,
    "Graphs (`grapevine measure`)": (TOPIC_GRAPHS,),
}


def data_dictionary(own: Mapping[str, Iterable[Table]]) -> str:
    """The part of docs/tables.md that tells of tables, as Markdown; `own` are those of single systems, by name."""
    parts = [
        "# Tables: the data dictionary",
        "",
        "Written by `make docs` from `src/grapevine/model/tables.py`; do not edit it by hand.",
        "",
        "Every table is a folder of Parquet files with exactly these columns; `manifest.json` beside them tells the",
        "stage, config, seed, code version and row counts. A folder without a manifest is not complete, and no stage",
        "reads it.",
    ]
    for heading, tables in ALL_TABLES.items():
        parts += ["", f"## {heading}"]
        parts += [line for table in tables for line in _describe(table)]
    parts += ["", "## Tables of single systems, beside those of every simulation"]
    for systems, found in own.items():
        parts += ["", f"Of {systems}:"]
        parts += [line for table in found for line in _describe(table)]
    return "\n".join(parts) + "\n"


def _describe(table: Table) -> Iterable[str]:
    yield from ("", f"### `{table.name}`", "", table.meaning, "", "| column | type | meaning |", "|---|---|---|")
    for column in table.columns:
        kind = f"{column.type}{' or empty' if column.nullable else ''}"
        yield f"| `{column.name}` | {kind} | {column.meaning} |"
