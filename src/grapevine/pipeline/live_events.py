"""What became of the events of a live run, from diaries: as `sim/recorder.py` defines it, and tests compare the two.

They differ in one thing. Who counts for an event are the nodes that had subscribed to its topic when it was published,
and were there then or later, the publisher excluded: a live node that was away fetches what it missed.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from grapevine.pipeline.diaries import Diaries
from grapevine.pipeline.stage import Stage

EVENT_KEY = ["topic_id", "publisher_id", "sequence"]
_FILE_ORDER = "block", "row"  # of a node's records; clocks may be set back
_GROUPS = 64  # in which ways are followed: an event is too little for a call of its own
_HOPS = StructType([StructField(name, IntegerType()) for name in ("event", "node", "hops")])
_RANKS = {"hops_p50": 0.5, "hops_p95": 0.95, "hops_p99": 0.99}


def subscription_spans(diaries: Diaries, nodes: DataFrame, topics: DataFrame) -> DataFrame:
    """(node, topic, since, until) of every subscription, in microseconds since 1970.

    It ends with the node's next record about the topic; `until` is empty where there is none.
    """
    changes = _named(diaries.of("subscribed", "unsubscribed"), nodes, "owner", "node").withColumnRenamed("topic", "id")
    known = changes.join(topics.select("topic", F.col("id")), "id")
    until = F.lead("time").over(Window.partitionBy("node", "topic").orderBy(*_FILE_ORDER))
    spans = known.select("node", "topic", "what", F.col("time").alias("since"), until.alias("until"))
    return spans.where("what = 'subscribed'").drop("what")


def number_events(diaries: Diaries, nodes: DataFrame, topics: DataFrame) -> DataFrame:
    """Events, numbered from 0 in the order of their publication: event, time, topic, publisher and their key in
    diaries.

    Events of equal times are in the order of topic, publisher and sequence. Several records of
    one publication are one event, of the earliest time.
    """
    published = _with_key(diaries.of("published")).groupBy(*EVENT_KEY).agg(F.min("time").alias("time"))
    known = _named(published, nodes, "publisher_id", "publisher", keep=True).join(
        topics.select("topic", F.col("id").alias("topic_id")), "topic_id"
    )
    order = F.row_number().over(Window.orderBy("time", "topic", "publisher", "sequence"))  # few, against their copies
    return known.select((order - 1).cast("int").alias("event"), "time", "topic", "publisher", *EVENT_KEY)


def counted_subscribers(events: DataFrame, spans: DataFrame, last_seen: DataFrame) -> DataFrame:
    """(event, node) of the subscribers that an event should reach: see the module's beginning for who counts."""
    at = F.col("time")
    wanted = (F.col("since") <= at) & (F.col("until").isNull() | (at < F.col("until")))
    others = F.col("node") != F.col("publisher")
    there = F.col("last") >= at
    return (
        events.join(spans, "topic").where(wanted & others).join(last_seen, "node").where(there).select("event", "node")
    )


def received_copies(diaries: Diaries, events: DataFrame, nodes: DataFrame) -> DataFrame:
    """Every copy of a known event that arrived: event, node, sender (empty: it keeps no diary), time, wanted, again.

    `wanted` says whether the node subscribes, `again` whether it had the event already.
    """
    copies = _with_key(diaries.of("received")).withColumnRenamed("time", "at").join(_keys(events), EVENT_KEY)
    known = _named(copies, nodes, "owner", "node")
    senders = nodes.select(F.col("node").alias("sender_node"), F.col("name").alias("sender"))
    return known.join(senders, "sender", "left").select(
        "event", "node", F.col("sender_node").alias("sender"), F.col("at").alias("time"), "wanted", "again"
    )


def handed_over(diaries: Diaries, events: DataFrame, nodes: DataFrame) -> DataFrame:
    """What applications got: event, node, sender, time, pulled; of several deliveries to one node, the first."""
    delivered = _with_key(diaries.of("delivered")).withColumnRenamed("time", "at").join(_keys(events), EVENT_KEY)
    senders = nodes.select(F.col("node").alias("sender_node"), F.col("name").alias("sender"))
    known = _named(delivered, nodes, "owner", "node").join(senders, "sender", "left")
    first = F.min(F.struct("at", "pulled", "sender_node")).alias("first")
    found = known.groupBy("event", "node").agg(first)
    return found.select("event", "node", "first.pulled", F.col("first.sender_node").alias("sender"), "first.at").select(
        "event", "node", "sender", F.col("at").alias("time"), "pulled"
    )


def first_senders(copies: DataFrame, handed: DataFrame) -> DataFrame:
    """(event, node, sender): from whom a node had its first copy. Where that record is missing, a delivery names it."""
    first_copies = copies.where("NOT again").select("event", "node", "sender", "time", F.lit(0).alias("rank"))
    deliveries = handed.select("event", "node", "sender", "time", F.lit(1).alias("rank"))
    first = F.min(F.struct("rank", "time", "sender")).alias("first")
    return first_copies.union(deliveries).groupBy("event", "node").agg(first).select("event", "node", "first.sender")


def hops_of(stage: Stage, senders: DataFrame, events: DataFrame) -> DataFrame:
    """(event, node, hops): first copies followed back to the publisher, by `follow` in groups of events."""
    ways = senders.join(events.select("event", "publisher"), "event")
    return stage.apply(ways, F.pmod("event", F.lit(_GROUPS)), follow, _HOPS, "following events")


def follow(rows: pa.Table) -> pa.Table:
    """Hops of some events' ways, from rows of event, node, sender and publisher: event, node, hops.

    Where a way is lost, because somebody keeps no diary, or leads in a circle, the known part of it counts.
    """
    event, node, sender, publisher = (rows[name].to_pylist() for name in ("event", "node", "sender", "publisher"))
    came_from = {(e, n): s for e, n, s in zip(event, node, sender, strict=True)}
    hops = dict.fromkeys(zip(event, publisher, strict=True), 0)
    for e, at in zip(event, node, strict=True):
        way: dict[int, None] = {}
        while (e, at) not in hops and (e, at) in came_from and at not in way:
            way[at] = None
            at = came_from[e, at]
        far = hops.get((e, at), 0)
        for step in reversed(way):
            far += 1
            hops[e, step] = far
    found = [hops[e, n] for e, n in zip(event, node, strict=True)]
    columns = {"event": rows["event"], "node": rows["node"], "hops": pa.array(found, pa.int32())}
    return pa.table(columns)


def deliveries_table(handed: DataFrame, counted: DataFrame, hops: DataFrame, events: DataFrame) -> DataFrame:
    """The table `deliveries`: what counted subscribers got. Delays are differences of two nodes' clocks."""
    published = events.select("event", F.col("time").alias("published"))
    found = handed.join(counted, ["event", "node"]).join(hops, ["event", "node"]).join(published, "event")
    nothing = [F.lit(None).alias(name) for name in ("direct_ms", "coordinate_ms", "path_ms")]
    delay = ((F.col("time") - F.col("published")) / 1_000).alias("delay_ms")
    return found.select("event", "node", delay, "hops", "pulled", *nothing, F.lit(False).alias("observer"))


def events_table(
    events: DataFrame, counted: DataFrame, copies: DataFrame, deliveries: DataFrame, round_of: Column
) -> DataFrame:
    """The table `events`, in the order of their numbers; `round_of` makes the round from an event's `time`."""
    expected = counted.groupBy("event").agg(F.count("*").alias("subscribers"))
    hops = deliveries.groupBy("event").agg(F.array_sort(F.collect_list("hops")).alias("ways"))
    reached_count = F.size("ways")
    ranks = [
        F.element_at("ways", F.ceil(F.lit(share) * reached_count).cast("int")).alias(name)
        for name, share in _RANKS.items()
    ]
    total = F.aggregate("ways", F.lit(0), lambda so_far, hops: so_far + hops).alias("hops_sum")
    reached = hops.select("event", reached_count.alias("reached"), total, *ranks, F.array_max("ways").alias("hops_max"))
    joined = events.join(expected, "event", "left").join(load_by(copies, "event"), "event", "left")
    return (
        joined.join(reached, "event", "left")
        .na.fill(0)
        .select("*", round_of.alias("round"), F.lit(1.0).alias("rate"), *_as_pulled())
        .orderBy("event")
    )


def _as_pulled() -> tuple[Column, Column]:
    """`ids` and `payloads` as if every copy was an id, and whoever heard of the event pulled it."""
    copies = F.col("wanted") + F.col("duplicate") + F.col("unwanted")
    return copies.alias("ids"), (F.col("wanted") + F.col("relays")).alias("payloads")


def load_by(copies: DataFrame, key: str) -> DataFrame:
    """Counts of copies by `key`, event or node: wanted, duplicate, unwanted, and `relays` (unwanted first copies)."""
    wanted, again = F.col("wanted"), F.col("again")
    return copies.groupBy(key).agg(
        F.count_if(wanted & ~again).alias("wanted"),
        F.count_if(wanted & again).alias("duplicate"),
        F.count_if(~wanted).alias("unwanted"),
        F.count_if(~wanted & ~again).alias("relays"),
    )


def _with_key(records: DataFrame) -> DataFrame:
    """Records of events with the names of `EVENT_KEY`."""
    return records.withColumnsRenamed({"topic": "topic_id", "publisher": "publisher_id"})


def _keys(events: DataFrame) -> DataFrame:
    return events.select("event", *EVENT_KEY)


def _named(rows: DataFrame, nodes: DataFrame, by: str, column: str, *, keep: bool = False) -> DataFrame:
    """The rows whose column `by` names a node that keeps a diary, with the node's number as `column`."""
    found = rows.join(nodes.select(F.col("node").alias(column), F.col("name").alias(by)), by)
    return found if keep else found.drop(by)
