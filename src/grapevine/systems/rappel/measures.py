"""What only Rappel has to tell: how friends cover a node's feeds, and how good its filters are."""

from __future__ import annotations

import pyarrow as pa

from grapevine.metrics.catalogue import Metric
from grapevine.metrics.measured import Measure, MeasuredTable
from grapevine.model.tables import Column, Table

FRIENDS = Table(
    "friends",
    "Every node that was online at the end: its friends, and what they cover (Rappel §2).",
    (
        Column("node", pa.int32(), "node"),
        Column("subscriptions", pa.int64(), "topics that it subscribes to"),
        Column("covered", pa.int64(), "of these, topics that a friend subscribes to"),
        Column("friends", pa.int64(), "friends"),
        Column("fans", pa.int64(), "nodes that have it as a friend"),
    ),
)

BEST_FRIENDS_COVER = Metric(
    "best_friends_cover",
    "users covered by their best friends",
    "The share of subscribers to five topics or more whose best friends, chosen greedily with full knowledge, "
    "cover all of them (Rappel Fig. 1).",
    share=True,
    better="high",
)
BEST_FRIENDS_SHARE = Metric(
    "best_friends_share_{number}",
    "topics covered by best friends, of {number} and more",
    "The mean share of their topics that best friends, chosen greedily with full knowledge, cover for subscribers to "
    "{number} topics or more, and fewer than twice as many (Rappel Fig. 1b).",
    share=True,
    better="high",
)
MESSAGE_BYTES = Metric(
    "message_bytes",
    "bytes of a message",
    "The mean size of a message without event as live nodes encode it, of a sample of those of the whole run.",
    "bytes",
    better="low",
)
FALSE_POSITIVES = Metric(
    "false_positives_{number}",
    "false positives of filters with {number} feeds",
    "The share of feeds that a Bloom filter of {number} others claims to hold (Rappel §2.2).",
    share=True,
    better="low",
)
FULLY_COVERED = Metric(
    "fully_covered",
    "nodes fully covered",
    "The share of online subscribers whose friends subscribe to all of their topics.",
    share=True,
    better="high",
)
FULLY_COVERED_MULTI = Metric(
    "fully_covered_multi",
    "nodes of several topics fully covered",
    "The same among subscribers to several topics.",
    share=True,
    better="high",
)
COVERED = Metric(
    "covered",
    "share of feeds covered",
    "The mean share of their topics that the friends of online subscribers to several topics subscribe to.",
    share=True,
    better="high",
)
MANY_FEEDS, MANY_COVERED = 9, 6  # Rappel §6.3: who subscribes to so many has so many covered
MANY_FEEDS_COVERED = Metric(
    "many_feeds_covered",
    f"nodes of {MANY_FEEDS} topics with {MANY_COVERED} covered",
    f"The share of online subscribers to {MANY_FEEDS} topics or more whose friends subscribe to at least "
    f"{MANY_COVERED} of them (Rappel Fig. 9a).",
    share=True,
    better="high",
)
LEAST_COVERED = Metric(
    "least_covered",
    f"fewest topics covered, of {MANY_FEEDS}",
    f"The fewest topics that the friends of a subscriber to {MANY_FEEDS} topics or more subscribe to.",
    better="high",
)
COVERAGE = MeasuredTable(
    FRIENDS,
    (
        Measure(COVERED, "avg(covered / CASE WHEN subscriptions > 1 THEN subscriptions END)"),
        Measure(
            MANY_FEEDS_COVERED,
            f"avg(CAST(covered >= {MANY_COVERED} AS DOUBLE)) FILTER (WHERE subscriptions >= {MANY_FEEDS})",
        ),
        Measure(LEAST_COVERED, f"min(covered) FILTER (WHERE subscriptions >= {MANY_FEEDS})"),
        Measure(FULLY_COVERED, "avg(CAST(covered = subscriptions AS DOUBLE)) FILTER (WHERE subscriptions > 0)"),
        Measure(
            FULLY_COVERED_MULTI,
            "avg(CAST(covered = subscriptions AS DOUBLE)) FILTER (WHERE subscriptions > 1)",
        ),
    ),
)
