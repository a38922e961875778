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
COVERAGE = MeasuredTable(
    FRIENDS,
    (
        Measure(FULLY_COVERED, "avg(CAST(covered = subscriptions AS DOUBLE)) FILTER (WHERE subscriptions > 0)"),
        Measure(
            FULLY_COVERED_MULTI,
            "avg(CAST(covered = subscriptions AS DOUBLE)) FILTER (WHERE subscriptions > 1)",
        ),
    ),
)
