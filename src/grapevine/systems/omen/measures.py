"""What only OMen has to tell: how churn events were mended, and whom nodes know and keep as backups."""

from __future__ import annotations

import pyarrow as pa

from grapevine.metrics.catalogue import Metric
from grapevine.metrics.definitions import Where
from grapevine.metrics.measured import Measure, MeasuredTable, Quantity
from grapevine.model.tables import Column, Table

REPAIRS = Table(
    "repairs",
    "Churn events that were handled one by one (OMen), in the order in which they were closed.",
    (
        Column("round", pa.int32(), "round in which it happened"),
        Column("node", pa.int32(), "node that it happened to"),
        Column(
            "kind",
            pa.string(),
            "`join`, `leave` (or crash), `change` (of interests), `meet` (a topic's first company)",
        ),
        Column("coordinator", pa.int32(), "node that handled it; empty: nobody could, more came together than L", True),
        Column("finished", pa.int32(), "round in which the overlay was mended", True),
        Column("shadow", pa.int64(), "nodes in the shadow set"),
        Column("added", pa.int64(), "links added"),
    ),
)

BACKUP_SETS = Table(
    "backups",
    "Every node: whom it knows, its backup set, and those that it is in (OMen §4).",
    (
        Column("node", pa.int32(), "node"),
        Column("online", pa.bool_(), "whether it was there at the end"),
        Column("view", pa.int64(), "nodes in its local view"),
        Column("backups", pa.int64(), "nodes in its backup set, as its successor keeps it"),
        Column("backup_of", pa.int64(), "backup sets that it is in"),
    ),
)

_RARELY = 5  # OMen §6.3 counts nodes in fewer backup sets
_FEW_OF_ALL = 0.05  # OMen §6.4 counts nodes that know fewer than this share of all
_SMALL = 80  # OMen §6.4 counts nodes that know at most so many

REPAIR_MS_P95 = Metric(
    "repair_ms_p95", "repair, p95", "The time within which 95 % of the repairs are done.", "ms", better="low"
)
LOST_EVENTS = Metric(
    "lost_events", "changes that nobody handled", "Joins and leaves that had no coordinator.", better="low"
)
REPAIR_ROUNDS = Metric(
    "repair_rounds",
    "rounds of a repair",
    "From a change to the end of its repair, in the mean.",
    "rounds",
    better="low",
)
SHADOW = Metric("shadow", "shadow set, mean", "Nodes in the shadow set of a repair, in the mean.")
LINKS_PER_REPAIR = Metric(
    "links_per_repair", "links per repair", "Links that a repair adds, in the mean.", better="low"
)
VIEW = Metric("view", "local view, mean", "Nodes in the local view of an online node, in the mean.", better="low")
SMALL_VIEWS = Metric(
    "small_views",
    "nodes with a small view",
    f"The share of online nodes whose local view holds less than {_FEW_OF_ALL:.0%} of all that are online.",
    share=True,
    better="high",
)
VIEWS_UP_TO_80 = Metric(
    "views_up_to_80",
    f"nodes with a view of at most {_SMALL}",
    f"The share of online nodes whose local view holds at most {_SMALL} others.",
    share=True,
    better="high",
)
BACKUPS = Metric("backups", "backup set, mean", "Nodes in the backup set of an online node, in the mean.")
BACKUPS_SHARE = Metric(
    "backups_share",
    "backup set over all nodes",
    "Nodes in the backup set of an online node over all that are online, in the mean.",
    share=True,
)
BACKUP_OF_MIN = Metric("backup_of_min", "in backup sets, min", "The fewest backup sets that an online node is in.")
BACKUP_OF_MAX = Metric("backup_of_max", "in backup sets, max", "The most backup sets that an online node is in.")
BACKUP_OF_RARELY = Metric(
    "backup_of_rarely",
    "nodes in few backup sets",
    f"The share of online nodes that are in fewer than {_RARELY} backup sets.",
    share=True,
)

MENDING = MeasuredTable(
    REPAIRS,
    (
        Measure(REPAIR_ROUNDS, "avg(finished - round)"),
        Measure(SHADOW, "avg(shadow)"),
        Measure(LINKS_PER_REPAIR, "avg(added)"),
    ),
    where=Where("finished", "known"),
)
BACKUP_VIEWS = MeasuredTable(
    BACKUP_SETS,
    (
        Measure(VIEW, "avg(view) FILTER (WHERE online)"),
        Measure(
            SMALL_VIEWS,
            f"avg(CAST(view < {_FEW_OF_ALL}D * online_nodes AS DOUBLE)) FILTER (WHERE online)",
        ),
        Measure(VIEWS_UP_TO_80, f"avg(CAST(view <= {_SMALL} AS DOUBLE)) FILTER (WHERE online)"),
        Measure(BACKUPS, "avg(backups) FILTER (WHERE online)"),
        Measure(BACKUPS_SHARE, "avg(backups / online_nodes) FILTER (WHERE online)"),
        Measure(BACKUP_OF_MIN, "min(backup_of) FILTER (WHERE online)"),
        Measure(BACKUP_OF_MAX, "max(backup_of) FILTER (WHERE online)"),
        Measure(BACKUP_OF_RARELY, f"avg(CAST(backup_of < {_RARELY} AS DOUBLE)) FILTER (WHERE online)"),
    ),
    quantities=(Quantity("view", "local view"), Quantity("backup_of", "backup sets that a node is in")),
    derived=(("online_nodes", "sum(CAST(online AS BIGINT)) OVER (PARTITION BY run_id)"),),
)
