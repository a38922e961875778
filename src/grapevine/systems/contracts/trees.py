"""Systems of peers with a tree for every topic: the table of places in these trees, and what is measured of it.

A peer system with trees names `TREES` among its `own_tables`, says in `places` where a peer is, and hands
`place_rows` to the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from grapevine.metrics.catalogue import Metric
from grapevine.metrics.measured import Measure, MeasuredTable
from grapevine.model.tables import Column, Table
from grapevine.systems.contracts.peer import Address, Peer, PeerSystem

PLACES = Table(
    "places",
    "Timed runs: every place in a topic's tree at the end.",
    (
        Column("topic", pa.int32(), "topic"),
        Column("node", pa.int32(), "node"),
        Column(
            "parent", pa.int32(), "from whom events come; empty: the root, or somebody who looks for a parent", True
        ),
        Column("height", pa.int32(), "steps to the root, as far as the node knows", True),
        Column("children", pa.int64(), "to whom they go"),
        Column("rejoins", pa.int64(), "periodic rejoins that began at it since the measurement began"),
    ),
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

MESSAGES_AT_HEIGHT = Metric(
    "messages_per_s_at_height_{number}",
    "messages a second at height {number}",
    "Messages that a node sends and receives in a second of being there, in the mean over the nodes that ended the run "
    "at height {number} of their tree, in several trees the least (Rappel Fig. 11b).",
    better="low",
)

TREES = MeasuredTable(
    PLACES,
    (
        Measure(HEIGHT, "avg(height)"),
        Measure(HEIGHT_MAX, "max(height)"),
        Measure(CHILDREN_MAX, "max(children)"),
        Measure(REJOINS_AT_HEIGHT, "avg(rejoins)", by="height"),
    ),
)


def messages_by_height(places: pa.Table, peers: pa.Table) -> dict[str, float]:
    """`MESSAGES_AT_HEIGHT` of every height, by the names of its metrics, from the tables `places` and `peers`."""
    height: dict[int, int] = {}
    for node, known in zip(places["node"].to_pylist(), places["height"].to_pylist(), strict=True):
        if known is not None:
            height[node] = min(known, height.get(node, known))
    rates: dict[int, list[float]] = {}
    for row in peers.to_pylist():
        if row["node"] in height and row["online_s"] > 0:
            rate = (row["messages_in"] + row["messages_out"]) / row["online_s"]
            rates.setdefault(height[row["node"]], []).append(rate)
    return {MESSAGES_AT_HEIGHT.of(number=at).name: sum(some) / len(some) for at, some in sorted(rates.items())}


def place_rows(system: PeerSystem[Any], peers: Mapping[Address, Peer]) -> list[dict[str, Any]]:
    """Rows of the table `places`: every place of these peers, in the order of nodes."""
    return [{"node": node} | place._asdict() for node, peer in peers.items() for place in system.places(peer)]
