"""From a run in virtual time to the common tables: what the overlay looked like at its end, and headline numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Container, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from grapevine.metrics.findings import LOOKUP_HOPS, MESSAGES, RING, UTILITY
from grapevine.metrics.headlines import headlines
from grapevine.metrics.overlay import FIRST_TOPICS, topic_to_draw
from grapevine.metrics.structure import CONNECTED_TOPICS, DEGREE, DEGREE_MAX, DIAMETER, GATEWAYS_PER_TOPIC
from grapevine.metrics.timed import DELAY_MS_AT, STRETCH_AT, over_distance, quantile
from grapevine.metrics.traffic import delivery_hops, node_overhead, outcome
from grapevine.model import tables
from grapevine.sim.result import own_tables
from grapevine.systems.contracts.peer import ADMIRERS, FROM_BEHIND, Address
from grapevine.systems.contracts.trees import PLACES, messages_by_height

if TYPE_CHECKING:
    from grapevine.sim.peers import PeerRun

_ON_THE_WAY = {"p50": 0.5, "p95": 0.95}  # quantiles that the table `rounds` has
Graph = dict[Address, Collection[Address]]  # of a topic: with whom each node that is in it exchanges events


def round_row(run: PeerRun, before: list[dict[str, Any]]) -> dict[str, Any]:
    """A row of the `rounds` table: how things are now. What became of events is filled in at the end."""
    degrees = [len(run.system.neighbours(run.engine.peers[node])) for node in _online(run)]
    return {
        "round": int(run.engine.now),
        "online": len(degrees),
        "joined": run.joined - sum(row["joined"] for row in before),
        "left": run.left - sum(row["left"] for row in before),
        DEGREE.name: float(np.mean(degrees)) if degrees else None,
        DEGREE_MAX.name: max(degrees, default=0),
    }


def final_tables(run: PeerRun, rows: list[dict[str, Any]]) -> dict[str, pa.Table]:
    """All tables but the messages."""
    events, deliveries = run.recorder.event_columns(), run.recorder.deliveries()
    online = {node: run.engine.peers[node] for node in _online(run)}
    graphs = _graphs(run)
    return {
        tables.EVENTS.name: _table(tables.EVENTS, events),
        tables.DELIVERIES.name: _table(tables.DELIVERIES, deliveries),
        tables.DELIVERY_HOPS.name: delivery_hops(events["round"], deliveries["event"], deliveries["hops"]),
        tables.NODE_LOAD.name: _node_load(run),
        tables.PEERS.name: pa.Table.from_pylist(list(_peers(run)), schema=tables.PEERS.schema),
        **own_tables(run.name, "peers", run.system.own_rows(online)),
        tables.TOPIC_OVERLAY.name: pa.Table.from_pylist(
            [_topic_row(run, topic, graph, online) for topic, graph in enumerate(graphs)],
            schema=tables.TOPIC_OVERLAY.schema,
        ),
        tables.LINKS.name: pa.Table.from_pylist(list(_links(run)), schema=tables.LINKS.schema),
        tables.ROUNDS.name: pa.Table.from_pylist(
            [row | _on_the_way(events, deliveries, rows, i) for i, row in enumerate(rows)],
            schema=tables.ROUNDS.schema,
        ),
        **_drawn(run, graphs),
    }


def summarise(run: PeerRun, found: dict[str, pa.Table]) -> dict[str, float | None]:
    """Headline numbers of a run in virtual time; there is no ring, and nobody is a gateway."""
    return headlines(found) | {
        MESSAGES.name: float(sum(run.engine.counts.values())),
        **run.system.findings(),
        **(messages_by_height(found[PLACES.name], found[tables.PEERS.name]) if PLACES.name in found else {}),
        **{metric.name: None for metric in (GATEWAYS_PER_TOPIC, RING, LOOKUP_HOPS, UTILITY)},
    }


def _online(run: PeerRun) -> list[Address]:
    return sorted(node for node in run.engine.peers if node < run.workload.node_count)


def _table(table: tables.Table, columns: dict[str, NDArray[Any]]) -> pa.Table:
    arrays = [pa.array(columns[column.name], from_pandas=column.nullable) for column in table.columns]
    return pa.table(arrays, names=table.column_names).cast(table.schema)


def _on_the_way(
    events: dict[str, NDArray[Any]], deliveries: dict[str, NDArray[Any]], rows: list[dict[str, Any]], i: int
) -> dict[str, Any]:
    """What became of the events that were published between two rows."""
    first = rows[i - 1]["round"] if i else 0
    among = (events["round"] >= first) & (events["round"] < rows[i]["round"])
    empty: dict[str, Any] = {metric.name: None for metric in (RING, UTILITY, CONNECTED_TOPICS, DIAMETER)}
    if not among.any():
        return empty
    chosen = among[deliveries["event"]]
    delay = deliveries["delay_ms"][chosen]
    stretch = over_distance(deliveries["path_ms"][chosen], deliveries["coordinate_ms"][chosen])
    return {
        **empty,
        **outcome({name: values[among] for name, values in events.items()}),
        **{DELAY_MS_AT.of(quantile=name).name: quantile(delay, share) for name, share in _ON_THE_WAY.items()},
        **{STRETCH_AT.of(quantile=name).name: quantile(stretch, share) for name, share in _ON_THE_WAY.items()},
    }


def _node_load(run: PeerRun) -> pa.Table:
    count = run.workload.node_count
    load = {
        name: np.array([counts[node] for node in range(count)], np.float64)
        for name, counts in run.recorder.load.items()
    }
    online = set(_online(run))
    degrees = [len(run.system.neighbours(run.engine.peers[node])) if node in online else 0 for node in range(count)]
    return _table(
        tables.NODE_LOAD,
        {
            "node": np.arange(count, dtype=np.int32),
            "online": np.array([node in online for node in range(count)]),
            "degree": np.array(degrees),
            **load,
            "overhead": node_overhead(load["wanted"], load["duplicate"], load["unwanted"]),
        },
    )


def _peers(run: PeerRun) -> Iterable[dict[str, Any]]:
    engine, workload, system = run.engine, run.workload, run.system
    online, got, sent, events_sent = set(_online(run)), engine.got, engine.sent, engine.events_sent
    for node in sorted(online | set(run.online_s)):
        roles = system.neighbours(engine.peers[node]) if node in online else {}
        neighbours = [[kind for kind in kinds if kind not in ADMIRERS] for kinds in roles.values()]
        received = sum(counts[node] for counts in run.recorder.load.values())
        here = engine.now - max(run.since[node], run.counted_from) if node in run.since else 0.0
        yield {
            "node": node,
            "online": node in online,
            "online_s": run.online_s[node] + here,
            "subscriptions": len(workload.topics_of(node)),
            "neighbours": sum(bool(kinds) for kinds in neighbours),
            "roles": sum(len(kinds) for kinds in neighbours),
            "messages_in": got[node],
            "messages_out": sent[node],
            "events_in": received,
            "events_out": events_sent[node],
        }


def _links(run: PeerRun) -> Iterable[dict[str, Any]]:
    for node in _online(run):
        for other, kinds in sorted(run.system.neighbours(run.engine.peers[node]).items()):
            for kind in sorted(set(kinds) - set(FROM_BEHIND)):
                yield {"source": node, "target": other, "kind": kind}


def _graphs(run: PeerRun) -> list[Graph]:
    """By topic: who wants or carries it, and with whom."""
    graphs: list[Graph] = [{} for _ in range(run.workload.topic_count)]
    for node in _online(run):
        for topic, others in run.system.carriers(run.engine.peers[node], run.engine.now).items():
            graphs[topic][node] = others
    return graphs


def _edges(graph: Graph) -> list[tuple[Address, Address]]:
    return [(node, other) for node, others in graph.items() for other in others if other in graph]


def _parts(graph: Graph) -> dict[Address, int]:
    """The connected part that each node is in, the publisher and relays included."""
    number = {node: i for i, node in enumerate(graph)}
    ends = np.array([(number[a], number[b]) for a, b in _edges(graph)], np.int64).reshape(-1, 2).T
    shape = (len(graph), len(graph))
    label = connected_components(coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=shape), False)[1]
    return dict(zip(number, label.tolist(), strict=True))


def _topic_row(run: PeerRun, topic: int, graph: Graph, online: Container[Address]) -> dict[str, Any]:
    """The parts of a topic's graph; who looks for a place in it is a part of its own."""
    parts = _parts(graph)
    sizes = Counter(parts[node] for node in graph if node in run.interested[topic])
    waiting = sum(node in online and node not in graph for node in run.interested[topic])
    return {
        "topic": topic,
        "subscribers": sizes.total() + waiting,
        "clusters": len(sizes) + waiting,
        "largest_cluster": max([*sizes.values(), min(waiting, 1)]),
        "gateways": 0,
        "diameter": None,
    }


def _drawn(run: PeerRun, graphs: list[Graph]) -> dict[str, pa.Table]:
    """The graph of one topic, and who of its subscribers is connected without the help of relays."""
    clusters = [_clusters(run, topic, graph) for topic, graph in enumerate(graphs[:FIRST_TOPICS])]
    sizes = [Counter(found.values()) for found in clusters]
    counts = [
        (len(found), len(each), max(each.values(), default=0)) for found, each in zip(clusters, sizes, strict=True)
    ]
    topic = topic_to_draw(*np.array(counts, np.int64).T)
    graph, wanting = graphs[topic], run.interested[topic]
    rank = {cluster: number for number, (cluster, _) in enumerate(sizes[topic].most_common())}
    nodes = [
        {
            "topic": topic,
            "node": node,
            "role": _role(run, node, topic),
            "cluster": rank[clusters[topic][node]] if node in wanting else None,
            "position": _angle(run, node, topic),
        }
        for node in sorted(graph)
    ]
    once = {(max(edge), min(edge)): edge for edge in sorted(_edges(graph))}  # both ends may name it
    links = [
        {"topic": topic, "source": other, "target": node, "kind": "cluster" if {node, other} <= wanting else "path"}
        for node, other in once.values()
    ]
    return {
        tables.DRAWN_NODES.name: pa.Table.from_pylist(nodes, schema=tables.DRAWN_NODES.schema),
        tables.DRAWN_LINKS.name: pa.Table.from_pylist(links, schema=tables.DRAWN_LINKS.schema),
    }


def _clusters(run: PeerRun, topic: int, graph: Graph) -> dict[Address, int]:
    """The cluster that each subscriber in a topic's graph is in: those that links between subscribers, or to the
    publisher, connect."""
    wanting = run.interested[topic]
    inside = wanting | {run.publishers[topic]}
    parts = _parts({node: others for node, others in graph.items() if node in inside})
    return {node: part for node, part in parts.items() if node in wanting}


def _role(run: PeerRun, node: Address, topic: int) -> str:
    if node == run.publishers[topic]:
        return "publisher"
    return "subscriber" if node in run.interested[topic] else "relay"


def _angle(run: PeerRun, node: Address, topic: int) -> float:
    """The direction in which the publisher sees the node, in the first two coordinates; without them its ring id."""
    here, there = run.position_of(run.publishers[topic]), run.position_of(node)
    if not here or not there:
        return float(run.workload.node_ids[node]) / 2.0**64
    return math.atan2(there[0] - here[0], there[1] - here[1]) / math.tau % 1.0
