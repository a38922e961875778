"""The overlay of a run by rounds as it is now: all its links, and one topic to look at. Nothing here changes the
run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.topic_graph import degree_sum, new_scratch, room_for
from grapevine.model.ids import distance
from grapevine.sim.event_graph import build_graph
from grapevine.sim.rounds import Rounds


def links_of(engine: Rounds) -> dict[str, Any]:
    """Columns of the `links` table: whom each online node chose and what for, by node and slot.

    Kinds are numbers with a dictionary of their names: a million nodes have 15 million links.
    """
    views = engine.network.views
    sizes = np.unique(np.diff(views.starts)).tolist()
    kinds = {size: engine.system.slot_kinds(size) for size in sizes}
    names = sorted({name for row in kinds.values() for name in row})
    numbers = np.array([names.index(name) for size in sizes for name in kinds[size]], np.int32)
    first = np.zeros(max(sizes, default=0) + 1, np.int64)  # by table size: where the kinds of its slots begin
    first[sizes] = np.cumsum([0, *(len(kinds[size]) for size in sizes)])[:-1]
    source, target, kind = _chosen_links(views.starts, views.links, first, numbers)
    return {
        "source": source,
        "target": target,
        "kind": pa.DictionaryArray.from_arrays(kind, pa.array(names, pa.string())),
    }


@njit
def _chosen_links(starts: Starts, links: Columns, first: Starts, kinds: Columns) -> tuple[Columns, Columns, Columns]:
    """Source, target and kind of every link. The slots of tables of size n have the kinds from first[n] on."""
    count = 0
    for q in links:
        count += q != NOBODY
    source, target, kind = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
    count = 0
    for p in range(len(starts) - 1):
        size = starts[p + 1] - starts[p]
        for slot in range(size):
            if links[starts[p] + slot] != NOBODY:
                source[count], target[count], kind[count] = p, links[starts[p] + slot], kinds[first[size] + slot]
                count += 1
    return source, target, kind


def draw_topic(engine: Rounds, topic: int) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Columns of `drawn_nodes` and `drawn_links` for one topic, as if its first online subscriber published now.

    Both are empty when no subscriber is online.
    """
    network, medium = engine.network, engine.medium()
    members = network.topic_nodes.row(topic)
    scratch = new_scratch(network.size)
    scratch = room_for(scratch, degree_sum(members, medium.link_starts))
    room = np.empty((2, network.size), np.int32)
    publisher = int(members[network.alive[members]][0]) if network.alive[members].any() else None
    nodes: dict[str, list[Any]] = {"topic": [], "node": [], "role": [], "cluster": [], "position": []}
    links: dict[str, list[Any]] = {"topic": [], "source": [], "target": [], "kind": []}
    if publisher is None:
        return nodes, links
    asked = np.array([topic, publisher], np.int32)  # as `disseminate` asks, so that nothing is compiled twice
    graph = build_graph(asked[0], asked[1], medium, scratch, room[0], room[1])
    first, size = network.topic_nodes.starts[topic], len(members)
    linked = np.diff(graph.starts) > 0  # relays that a tree has pruned have no edges
    carriers = [
        i
        for i in range(len(graph.nodes))
        if (network.alive[graph.nodes[i]] if i < size else linked[i] or not medium.spanning)
    ]
    edges = {(i, int(j)) for i in carriers for j in graph.edges[graph.starts[i] : graph.starts[i + 1]] if i < j}
    flooded = {(i, j) for i, j in edges if medium.floods and j < size}
    cluster = _number_clusters([i for i in carriers if i < size], flooded)
    relays = [int(graph.nodes[i]) for i in carriers if i >= size]
    key = int(network.topic_ids[topic])
    nearest = min(relays, key=lambda node: distance(int(network.ids[node]), key), default=None)
    rendezvous = int(medium.homes[topic]) if len(medium.homes) else nearest
    for i in carriers:
        node = int(graph.nodes[i])
        role = "subscriber" if i < size else "rendezvous" if node == rendezvous else "relay"
        nodes["role"].append("gateway" if i < size and medium.gateways[first + i] else role)
        nodes["topic"].append(topic)
        nodes["node"].append(node)
        nodes["cluster"].append(cluster.get(i))
        nodes["position"].append(float(network.ids[node]) / 2.0**64)
    for i, j in sorted(edges):
        links["topic"].append(topic)
        links["source"].append(int(graph.nodes[i]))
        links["target"].append(int(graph.nodes[j]))
        links["kind"].append("cluster" if (i, j) in flooded else "path")
    return nodes, links


def _number_clusters(members: list[int], edges: set[tuple[int, int]]) -> dict[int, int]:
    """The cluster of each member, a connected part of these edges; 0 is the largest."""
    part = {i: i for i in members}

    def root(i: int) -> int:
        while part[i] != i:
            part[i] = part[part[i]]  # half the way for whoever asks next: chains of thousands would take seconds
            i = part[i]
        return i

    for i, j in edges:
        part[root(i)] = root(j)
    sizes = Counter(root(i) for i in members)
    ranks = {found: rank for rank, (found, _) in enumerate(sizes.most_common())}
    return {i: ranks[root(i)] for i in members}
