"""The nodes of a live run, from diaries: when they were there, whom they chose, what they carried.

A network that is taken down ends node by node, so *the end* is the moment at which the first of those began to leave
that stayed: nodes whose last line is as late as the last line of all, give or take `CLOSING_US`. (A node that is there
writes what its traffic was, every second.) What nodes report of their links afterwards is how the network dissolves:
whoever leaves has told its neighbours, and they have dropped it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from grapevine.pipeline.diaries import Diaries
from grapevine.pipeline.live_events import load_by

CLOSING_US = 10_000_000


@dataclass(frozen=True, slots=True)
class Span:
    """From the first line of all to the end of the run (see the module's beginning); in microseconds since 1970."""

    begin: int
    end: int


def session_spans(diaries: Diaries, nodes: DataFrame) -> DataFrame:
    """(node, session, start, left, stop, ended), in microseconds since 1970: a session lasts from its first line to its
    last.

    `session` counts a node's sessions from 1 (0: lines before the first); `left` is when it began to leave, or else
    `stop`; `ended` says whether it left in good order.
    """
    in_order = Window.partitionBy("owner").orderBy("block", "row")
    session = F.count_if(F.col("what") == "session").over(in_order).alias("session")
    spans = diaries.all().select("owner", "what", "time", session).groupBy("owner", "session")
    began_to_leave = F.min(F.when(F.col("what") == "leaving", F.col("time")))
    found = spans.agg(
        F.min("time").alias("start"),
        F.coalesce(began_to_leave, F.max("time")).alias("left"),
        F.max("time").alias("stop"),
        F.bool_or(F.col("what") == "end").alias("ended"),
    )
    return found.join(nodes.withColumnRenamed("name", "owner"), "owner").drop("owner")


def span_of(sessions: DataFrame) -> Span:
    """From when to when the run is measured: the beginning of the first session, and the end."""
    last = sessions.groupBy("node").agg(F.max("stop").alias("last"), F.max("left").alias("left"))
    begin, final = sessions.agg(F.min("start"), F.max("stop")).collect()[0]
    (end,) = last.where(F.col("last") >= final - CLOSING_US).agg(F.min("left")).collect()[0]
    return Span(begin, end)


def last_seen(sessions: DataFrame, span: Span) -> DataFrame:
    """(node, last, online): the time of a node's last line, and whether the node was there at the end."""
    last = F.max("stop")
    return sessions.groupBy("node").agg(last.alias("last"), (last >= F.lit(span.end)).alias("online"))


def link_reports(diaries: Diaries, sessions: DataFrame, nodes: DataFrame) -> DataFrame:
    """What nodes reported of their links every few seconds: node, session, time, neighbours (their number), links
    (pairs of name and kind)."""
    reports = diaries.of("links").join(nodes.withColumnRenamed("name", "owner"), "owner")
    during = F.col("time").between(F.col("start"), F.col("stop"))
    return reports.join(sessions, "node").where(during).select("node", "session", "time", "neighbours", "links")


def final_links(reports: DataFrame, seen: DataFrame, span: Span) -> DataFrame:
    """(node, neighbours, links) as online nodes last reported them before the end."""
    here = reports.where(F.col("time") <= span.end).join(seen.where("online"), "node")
    last = F.max_by(F.struct("neighbours", "links"), F.struct("session", "time")).alias("last")
    return here.groupBy("node").agg(last).select("node", "last.*")


def links_table(final: DataFrame, nodes: DataFrame) -> DataFrame:
    """The table `links`, each once; nodes that keep no diary are not in it."""
    link = F.explode("links").alias("link")
    chosen = final.select(F.col("node").alias("source"), link)
    named = chosen.select("source", F.get("link", F.lit(0)).alias("name"), F.get("link", F.lit(1)).alias("kind"))
    found = named.join(nodes.withColumnRenamed("node", "target"), "name").select("source", "target", "kind")
    return found.where(F.col("kind").isNotNull()).distinct().orderBy("source", "target", "kind")


def node_load_table(nodes: DataFrame, seen: DataFrame, final: DataFrame, copies: DataFrame) -> DataFrame:
    """The table `node_load`, of all nodes and over the whole run; no event counts more than another."""
    everyone = nodes.join(seen, "node").join(final, "node", "left").join(load_by(copies, "node"), "node", "left")
    counted = everyone.na.fill(0, ["wanted", "duplicate", "unwanted", "neighbours"])
    received = F.col("wanted") + F.col("duplicate") + F.col("unwanted")
    overhead = F.when(received > 0, F.col("unwanted") / received).alias("overhead")
    return counted.select("*", F.col("neighbours").alias("degree"), overhead).orderBy("node")


def peers_table(
    diaries: Diaries,
    nodes: DataFrame,
    sessions: DataFrame,
    seen: DataFrame,
    final: DataFrame,
    copies: DataFrame,
    subscriptions: DataFrame,
) -> DataFrame:
    """The table `peers`, of all nodes and over the whole run. Events that were sent are those that arrived at somebody
    who keeps a diary; live systems do not say who is a friend."""
    traffic = diaries.of("traffic").groupBy(F.col("owner").alias("name"))
    messages = traffic.agg(*(F.sum(name).alias(name) for name in ("messages_in", "messages_out")))
    there = sessions.groupBy("node").agg((F.sum(F.col("stop") - F.col("start")) / 1e6).alias("online_s"))
    wants = subscriptions.groupBy("node").agg(F.count("*").alias("subscriptions"))
    got = copies.groupBy("node").agg(F.count("*").alias("events_in"))
    gave = copies.groupBy(F.col("sender").alias("node")).agg(F.count("*").alias("events_out"))
    distinct = F.size(F.array_distinct(F.transform("links", lambda link: F.get(link, F.lit(0)))))
    roles = (F.size("links") + F.greatest(F.col("neighbours") - distinct, F.lit(0))).alias("roles")
    found = nodes.join(messages, "name", "left").join(seen, "node").join(there, "node")
    for counts in (wants, got, gave, final.select("node", "neighbours", roles)):
        found = found.join(counts, "node", "left")
    return found.na.fill(0).orderBy("node")


def topic_overlay_table(graphs: DataFrame, topics: DataFrame) -> DataFrame:
    """The table `topic_overlay` from `topic_graphs`, also of topics that nobody wants at the end. Gateways are not
    known: 0."""
    none = graphs.join(topics.select("topic").distinct(), "topic", "right")
    counts = "subscribers", "clusters", "largest_cluster"
    return none.na.fill(0, list(counts)).select("*", F.lit(0).alias("gateways")).orderBy("topic")
