"""What single systems have of their own: tables and columns that only they fill, and findings that only they make.

One section per system, which names nothing of the others, so that it can stand in the system's own package.
"""

from __future__ import annotations

from grapevine.metrics.catalogue import Metric
from grapevine.metrics.definitions import Where
from grapevine.metrics.findings import finding
from grapevine.metrics.measured import Measure, MeasuredTable, Quantity, declare
from grapevine.model.tables import NODE_LOAD, PEERS, PLACES, REPAIRS

# OMen, and the designed overlays that are mended: repairs, local views and backup sets

_RARELY = 5  # OMen §6.3 counts nodes in fewer backup sets
_FEW_OF_ALL = 0.05  # OMen §6.4 counts nodes that know fewer than this share of all

REPAIR_MS = finding(
    Metric("repair_ms", "repair, mean", "Processor time that the repair after a change takes.", "ms", better="low")
)
REPAIR_MS_P95 = finding(
    Metric("repair_ms_p95", "repair, p95", "The time within which 95 % of the repairs are done.", "ms", better="low")
)
LOST_EVENTS = finding(
    Metric("lost_events", "changes that nobody handled", "Joins and leaves that had no coordinator.", better="low")
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

MENDING = declare(
    MeasuredTable(
        REPAIRS,
        (
            Measure(REPAIR_ROUNDS, "avg(finished - round)"),
            Measure(SHADOW, "avg(shadow)"),
            Measure(LINKS_PER_REPAIR, "avg(added)"),
        ),
        where=Where("finished", "known"),
    )
)
BACKUP_SETS = declare(
    MeasuredTable(
        NODE_LOAD,
        (
            Measure(VIEW, "avg(view) FILTER (WHERE online)"),
            Measure(
                SMALL_VIEWS,
                f"avg(CAST(view < {_FEW_OF_ALL}D * online_nodes AS DOUBLE)) FILTER (WHERE online)",
            ),
            Measure(BACKUPS, "avg(backups) FILTER (WHERE online)"),
            Measure(BACKUPS_SHARE, "avg(backups / online_nodes) FILTER (WHERE online)"),
            Measure(BACKUP_OF_MIN, "min(backup_of) FILTER (WHERE online)"),
            Measure(BACKUP_OF_MAX, "max(backup_of) FILTER (WHERE online)"),
            Measure(BACKUP_OF_RARELY, f"avg(CAST(backup_of < {_RARELY} AS DOUBLE)) FILTER (WHERE online)"),
        ),
        quantities=(Quantity("view", "local view"), Quantity("backup_of", "backup sets that a node is in")),
        derived=(("online_nodes", "sum(CAST(online AS BIGINT)) OVER (PARTITION BY run_id)"),),
    )
)

# Rappel: coverage by friends, and places in trees

BEST_FRIENDS_COVER = finding(
    Metric(
        "best_friends_cover",
        "users covered by their best friends",
        "The share of subscribers to five topics or more whose best friends, chosen greedily with full knowledge, "
        "cover all of them (Rappel Fig. 1).",
        share=True,
        better="high",
    )
)
FALSE_POSITIVES = finding(
    Metric(
        "false_positives_{number}",
        "false positives of filters with {number} feeds",
        "The share of feeds that a Bloom filter of {number} others claims to hold (Rappel §2.2).",
        share=True,
        better="low",
    )
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
HEIGHT = Metric("height", "height, mean", "Steps from a place in a tree to its root, in the mean.", better="low")
HEIGHT_MAX = Metric("height_max", "height, max", "Steps to the root from the farthest place in a tree.", better="low")
CHILDREN_MAX = Metric("children_max", "children, max", "The most children of a place in a tree.", better="low")
REJOINS_AT_HEIGHT = Metric(
    "rejoins_at_height_{number}",
    "rejoins at height {number}",
    "Periodic rejoins that began at a place of height {number} since the measurement began, in the mean "
    "(Rappel Fig. 11a).",
    better="low",
)

_SUBSCRIBES = "online AND subscriptions > 0 AND covered IS NOT NULL"

COVERAGE = declare(
    MeasuredTable(
        PEERS,
        (
            Measure(FULLY_COVERED, f"avg(CAST(covered = subscriptions AS DOUBLE)) FILTER (WHERE {_SUBSCRIBES})"),
            Measure(
                FULLY_COVERED_MULTI,
                f"avg(CAST(covered = subscriptions AS DOUBLE)) FILTER (WHERE {_SUBSCRIBES} AND subscriptions > 1)",
            ),
        ),
    )
)
TREES = declare(
    MeasuredTable(
        PLACES,
        (
            Measure(HEIGHT, "avg(height)"),
            Measure(HEIGHT_MAX, "max(height)"),
            Measure(CHILDREN_MAX, "max(children)"),
            Measure(REJOINS_AT_HEIGHT, "avg(rejoins)", by="height"),
        ),
    )
)

# SpiderCast

RANDOM_COVERAGE = finding(
    Metric(
        "random_coverage",
        "random coverage, mean",
        "K_r of an online node, in the mean: how often its topics are to be covered by random links.",
    )
)
