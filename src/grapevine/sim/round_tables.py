"""From a run by rounds to the common tables: what nodes, topics and links were like at its end."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grapevine.metrics.overlay import topic_to_draw
from grapevine.metrics.traffic import node_overhead
from grapevine.model import tables
from grapevine.sim.rounds import Rounds, Traffic
from grapevine.sim.snapshot import draw_topic, links_of


def final_tables(engine: Rounds, traffic: Traffic, *, diameter_topics: int) -> dict[str, pa.Table]:
    """The tables of events, nodes, topics and links. Diameters are those of so many topics, evenly chosen."""
    topics = _topic_overlay(engine, diameter_topics)
    return {
        tables.EVENTS.name: _table(tables.EVENTS, traffic.events),
        tables.DELIVERY_HOPS.name: _table(tables.DELIVERY_HOPS, traffic.hops),
        tables.NODE_LOAD.name: _node_load(engine, traffic.load),
        tables.TOPIC_OVERLAY.name: topics,
        tables.LINKS.name: _table(tables.LINKS, links_of(engine)),
        **_drawn(engine, topics),
    }


def _table(table: tables.Table, columns: dict[str, Any]) -> pa.Table:
    return pa.table({name: columns[name] for name in table.column_names}).cast(table.schema)


def _node_load(engine: Rounds, load: dict[str, NDArray[np.float64]]) -> pa.Table:
    overhead = node_overhead(load["wanted"], load["duplicate"], load["unwanted"])
    columns = {
        "node": np.arange(engine.network.size, dtype=np.int32),
        "online": engine.network.alive,
        "degree": engine.network.neighbours().sizes(),
        **load,
        "overhead": pa.array(overhead, from_pandas=True),
    }
    return _table(tables.NODE_LOAD, columns)


def with_diameters(topic_count: int, asked: int) -> NDArray[np.int32]:
    """The topics whose diameters are measured: as many as were asked for, evenly chosen."""
    return np.unique(np.linspace(0, topic_count - 1, min(asked, topic_count)).astype(np.int32))


def _topic_overlay(engine: Rounds, diameter_topics: int) -> pa.Table:
    clusters = engine.topic_clusters()
    flags, bounds = engine.system.delivery().gateways, engine.network.topic_nodes.starts.tolist()
    count = len(clusters)
    chosen = with_diameters(count, diameter_topics)
    diameter = np.full(count, np.nan)
    diameter[chosen] = engine.topic_diameters(chosen)
    columns = {
        "topic": np.arange(count, dtype=np.int32),
        "subscribers": clusters[:, 0],
        "clusters": clusters[:, 1],
        "largest_cluster": clusters[:, 2],
        "gateways": np.array([np.count_nonzero(flags[a:b]) for a, b in pairwise(bounds)], np.int64),
        "diameter": pa.array(diameter, from_pandas=True),
    }
    return _table(tables.TOPIC_OVERLAY, columns)


def _drawn(engine: Rounds, topics: pa.Table) -> dict[str, pa.Table]:
    """The graph of one topic, chosen by the table `topic_overlay`.

    Where the links between subscribers carry no events, they make no clusters that a picture could show: each
    subscriber is one of its own.
    """
    subscribers, clusters, largest = (
        topics[name].to_numpy() for name in ("subscribers", "clusters", "largest_cluster")
    )
    if not engine.system.delivery().floods:
        clusters, largest = subscribers, np.minimum(subscribers, 1)
    nodes, links = draw_topic(engine, topic_to_draw(subscribers, clusters, largest))
    return {
        tables.DRAWN_NODES.name: pa.table(nodes, schema=tables.DRAWN_NODES.schema),
        tables.DRAWN_LINKS.name: pa.table(links, schema=tables.DRAWN_LINKS.schema),
    }
