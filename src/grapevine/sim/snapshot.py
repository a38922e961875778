"""The overlay of a run by rounds as it is now: all its links, and one topic to look at. Nothing here changes the
run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.views import NOBODY
from grapevine.kernels import csr
from grapevine.kernels.topic_graph import degree_sum, new_scratch, room_for
from grapevine.model.ids import distance
from grapevine.sim.dissemination import build_graph
from grapevine.sim.rounds import Rounds


def links_of(engine: Rounds) -> dict[str, NDArray[Any]]:
    """Columns of the `links` table: whom each online node chose and what for, by node and slot."""
    views = engine.network.views
    sizes = np.diff(views.starts)
    kinds = {int(size): np.array(engine.system.slot_kinds(int(size)), dtype=object) for size in np.unique(sizes)}
    rows = csr.row_numbers(views.starts)
    slot = np.arange(len(rows)) - np.repeat(views.starts[:-1], sizes)
    used = views.links != NOBODY
    names = sorted({name for row in kinds.values() for name in row})
    code = np.full((int(sizes.max(initial=0)) + 1, int(sizes.max(initial=0)) + 1), 0, np.int32)
    for size, row in kinds.items():
        code[size, : len(row)] = [names.index(name) for name in row]
    kind = np.array(names or ["none"], dtype=object)[code[sizes[rows[used]], slot[used]]]
    return {"source": rows[used], "target": views.links[used], "kind": kind}


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
    graph = build_graph(topic, publisher, medium, scratch, room[0], room[1])
    first, size = network.topic_nodes.starts[topic], len(members)
    carriers = [i for i in range(len(graph.nodes)) if i >= size or network.alive[graph.nodes[i]]]
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
            i = part[i]
        return i

    for i, j in edges:
        part[root(i)] = root(j)
    sizes = Counter(root(i) for i in members)
    ranks = {found: rank for rank, (found, _) in enumerate(sizes.most_common())}
    return {i: ranks[root(i)] for i in members}
