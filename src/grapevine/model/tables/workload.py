"""Tables of a workload: who subscribes to what, who comes and goes, and how far apart nodes are."""

from __future__ import annotations

from grapevine.model.tables.schema import INT, LONG, REAL, TEXT, Column, Table

NODES = Table(
    "nodes",
    "Everyone who takes part: subscribers and publishers, numbered 0 … nodes-1 in the order of their names.",
    (Column("node", INT, "dense number"), Column("name", TEXT, "name in the source trace")),
)

TOPICS = Table(
    "topics",
    "Topics, numbered 0 … topics-1 in the order of their names. In traces and samples each has a subscriber.",
    (
        Column("topic", INT, "dense number"),
        Column("name", TEXT, "name in the source trace"),
        Column(
            "rate",
            REAL,
            "publication rate: events per day for timed traces, otherwise relative (mean 1 before sampling)",
        ),
        Column(
            "publisher",
            INT,
            "the node that publishes it, where that is known (follows, friends, magnet-spatial)",
            True,
        ),
    ),
)

SUBSCRIPTIONS = Table(
    "subscriptions",
    "Who subscribes to what; each pair once, sorted by node and topic inside each file.",
    (Column("node", INT, "subscriber"), Column("topic", INT, "topic")),
)

CHURN = Table(
    "churn",
    "Sessions: when a node was there.",
    (
        Column("node", INT, "node"),
        Column("joined_s", REAL, "seconds from the trace's origin"),
        Column("left_s", REAL, "seconds from the trace's origin; empty: still there at the end of the trace", True),
    ),
)

LATENCY = Table(
    "latency",
    "Measured round-trip times between ordered pairs of nodes.",
    (
        Column("slice", INT, "time slice: the number of the input file for matrices, 0 for pair lists"),
        Column("source", INT, "node that measured"),
        Column("target", INT, "node that answered"),
        Column("rtt_ms", REAL, "round-trip time, milliseconds"),
    ),
)

REJECTED = Table(
    "rejected",
    "Input lines that could not be read.",
    (
        Column("file", TEXT, "input file"),
        Column("line", LONG, "line number, from 1"),
        Column("reason", TEXT, "what is wrong with it"),
        Column("content", TEXT, "its first 200 characters"),
    ),
)

WORKLOAD_TABLES = (NODES, TOPICS, SUBSCRIPTIONS, CHURN, LATENCY, REJECTED)
