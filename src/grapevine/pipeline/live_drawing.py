"""One topic of a live run to look at: its subscribers and relays at the end, and the links that its events took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from grapevine.metrics.overlay import topic_to_draw
from grapevine.model import tables
from grapevine.model.ids import RING_SIZE
from grapevine.model.location import Location
from grapevine.model.store import read_table

_LAST_EVENTS = 10  # whose ways are drawn


def drawn_topic(folder: Location) -> int | None:
    """The topic to draw, chosen as in simulations, by the stored `topic_overlay`; None when there is no topic."""
    found = read_table(folder, tables.TOPIC_OVERLAY)
    if not len(found):
        return None
    chosen = topic_to_draw(*(found[name].to_numpy() for name in ("subscribers", "clusters", "largest_cluster")))
    return int(found["topic"][chosen].as_py())


def draw(
    topic: int, names: dict[int, str], wanting: set[int], links: pa.Table, ways: DataFrame, events: DataFrame
) -> tuple[pa.Table, pa.Table]:
    """The tables `drawn_nodes` and `drawn_links` of one topic.

    `names` are the online nodes with their names, `wanting` those of them that subscribe, `links` is the stored table,
    `ways` has (event, node, sender) of first copies. Nodes that carried one of the topic's last events are shown as
    relays, unless they subscribe or publish.
    """
    mine = events.where(F.col("topic") == topic)
    publishers = {row.publisher for row in mine.select("publisher").distinct().collect()} & set(names)
    last = mine.orderBy(F.col("event").desc()).limit(_LAST_EVENTS).select("event")
    taken = ways.join(last, "event").where(F.col("sender").isNotNull()).select("node", "sender").distinct()
    among = _pairs((row.node, row.sender) for row in taken.collect())
    chosen = _pairs(zip(links["source"].to_pylist(), links["target"].to_pylist(), strict=True))
    cluster = sorted(pair for pair in chosen if set(pair) <= wanting)
    path = sorted(pair for pair in among if set(pair) <= set(names) and not set(pair) <= wanting)
    shown = sorted(wanting | publishers | {node for pair in path for node in pair})
    parts = _clusters(sorted(wanting), cluster)
    nodes = [
        {
            "topic": topic,
            "node": node,
            "role": "publisher" if node in publishers else "subscriber" if node in wanting else "relay",
            "cluster": parts.get(node),
            "position": int(names[node], 16) / RING_SIZE,
        }
        for node in shown
    ]
    kinds = [(pair, "cluster") for pair in cluster] + [(pair, "path") for pair in path]
    edges = [{"topic": topic, "source": a, "target": b, "kind": kind} for (a, b), kind in kinds]
    return (
        pa.Table.from_pylist(nodes, schema=tables.DRAWN_NODES.schema),
        pa.Table.from_pylist(edges, schema=tables.DRAWN_LINKS.schema),
    )


def _pairs(links: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Each link once, whoever chose it."""
    return {(min(link), max(link)) for link in links}


def _clusters(members: list[int], links: list[tuple[int, int]]) -> dict[int, int]:
    """The cluster of each member, a connected part of these links; 0 is the largest."""
    position = {node: i for i, node in enumerate(members)}
    ends = np.array([(position[a], position[b]) for a, b in links], np.int64).reshape(-1, 2).T
    shape = (len(members), len(members))
    labels = connected_components(coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=shape), False)[1]
    rank = {label: i for i, (label, _) in enumerate(Counter(labels.tolist()).most_common())}
    return {node: rank[label] for node, label in zip(members, labels.tolist(), strict=True)}
