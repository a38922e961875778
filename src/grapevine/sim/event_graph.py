"""The graph that the events of a topic travel on.

Theory. The graph of a topic is made of the links between its subscribers (when the system floods), of the lookup trees
of its gateways, of ways that the system names, or of the routes from its home to all subscribers (when it has a home).
Where events travel along a tree, it is one of this graph, and lazy links are kept apart (`blocks/eager_links`).
Invariants:
1. Nodes of a graph have local numbers. Members (all subscribers, also those offline, who have no edges) come first, by
   their position in the subscriber list; relays, the home and a publisher that does not subscribe follow.
2. Nobody has two ways up: a node's step towards the rendezvous, or from the home, depends on the node and the key
   alone. So these edges form a forest, and a walk may end where another one has been.
3. Between two topics `Scratch.local` is NOBODY everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks.eager_links import grow_tree, prune_relays, split_links
from grapevine.blocks.small_world import Ids, hop_below, next_hop
from grapevine.blocks.views import NOBODY, Views
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import ring_distance
from grapevine.kernels.topic_graph import Scratch, append_members, degree_sum, enter
from grapevine.systems.contracts.rounds import Ways

_0, _1 = np.uint64(0), np.uint64(1)


class Medium(NamedTuple):
    """What events travel through: who subscribes, who links to whom, and how the system delivers."""

    topic_starts: Starts  # topic → its subscribers in `topic_nodes`
    topic_nodes: Columns
    gateways: NDArray[np.bool_]  # by (topic, subscriber), in the order of `topic_nodes`: who looks the topic up
    floods: bool  # the links between subscribers carry events
    spanning: bool  # of all these edges, those of a tree carry events
    link_starts: Starts  # links both ways
    links: Columns
    views: Views  # tables, for lookups
    fresh: int  # links last heard before this round are not used for lookups
    ids: Ids
    topic_ids: Ids
    homes: Columns  # by topic: the node from which events are routed to every subscriber; empty: not how it is done
    ways: Ways  # further edges


class TopicGraph(NamedTuple):
    """The nodes that carry a topic, members first (by position), and their edges as rows of local numbers."""

    size: int  # members: local numbers below it are subscribers
    nodes: Columns
    starts: Starts
    edges: Columns
    lazy_starts: Starts  # the links on which a node tells ids alone, as rows of those who tell; empty: no tree
    lazy: Columns


class Forest(NamedTuple):
    """The graph's nodes so far, and the way up that each of them has. There is room for all nodes of the network."""

    local: NDArray[np.int32]  # node → local number; NOBODY: not in the graph
    nodes: Columns  # local number → node
    up: Columns  # local number → that of the next node towards the rendezvous, or back to the home; NOBODY: none


@njit
def build_graph(
    topic: int, publisher: int, medium: Medium, scratch: Scratch, nodes: Columns, up: Columns
) -> TopicGraph:
    """The graph of one topic. A publisher that is no subscriber joins it by its own lookup.

    `scratch` has room for the links between members (`room_for`), `nodes` and `up` for every node. `scratch.local`
    numbers the graph's nodes; the caller sets it to NOBODY for `graph.nodes` when it is done. `graph.nodes` is part of
    `nodes`.
    """
    a, b = medium.topic_starts[topic], medium.topic_starts[topic + 1]
    members, key = medium.topic_nodes[a:b], medium.topic_ids[topic]
    size = len(members)
    nodes[:size] = members
    up[:size] = NOBODY
    enter(members, medium.views.alive, scratch)
    forest = Forest(scratch.local, nodes, up)
    count, looked_up = size, np.zeros(size, np.bool_)
    for i in range(size):
        if medium.gateways[a + i] and not looked_up[i] and medium.views.alive[members[i]]:
            count = _climb(i, count, key, medium, forest, looked_up)
    if len(medium.homes) > 0:
        count = _descend_to_all(size, int(medium.homes[topic]), publisher, medium, forest)
    elif scratch.local[publisher] < 0:
        nodes[count], up[count] = publisher, NOBODY
        scratch.local[publisher] = count
        count = _climb(count, count + 1, key, medium, forest, looked_up)
    count, pairs = _number_ways(topic, count, medium.ways, forest)
    starts, edges = _join_edges(members, count, medium, scratch, up, pairs)
    if not medium.spanning:
        return TopicGraph(size, nodes[:count], starts, edges, np.empty(0, np.int64), edges[:0])
    parent, hops = np.empty(count, np.int32), np.empty(count, np.int32)
    grow_tree(_by_distance(key, members, medium.ids), (starts, edges), parent, hops)
    prune_relays(size, int(scratch.local[publisher]), parent, hops)
    (starts, edges), (lazy_starts, lazy) = split_links(topic, (starts, edges), parent, hops)
    return TopicGraph(size, nodes[:count], starts, edges, lazy_starts, lazy)


@njit
def _by_distance(key: np.uint64, members: Columns, ids: Ids) -> Columns:
    """The members by local number, from the nearest to the topic's id: the roots of its trees (SpiderCast §5)."""
    away = np.empty(len(members), np.uint64)
    for i in range(len(members)):
        away[i] = ring_distance(ids[members[i]], key)
    return np.argsort(away).astype(np.int32)


@njit
def _number_ways(topic: int, count: int, ways: Ways, forest: Forest) -> tuple[int, Columns]:
    """Give the ends of the topic's ways local numbers; returns the new number of nodes, and the pairs of these ends."""
    if len(ways.starts) == 0:
        return count, np.empty(0, np.int32)
    first, last = ways.starts[topic], ways.starts[topic + 1]
    pairs = np.empty(2 * (last - first), np.int32)
    for at in range(first, last):
        count = _number(ways.sources[at], count, forest)
        count = _number(ways.targets[at], count, forest)
        pairs[2 * (at - first)] = forest.local[ways.sources[at]]
        pairs[2 * (at - first) + 1] = forest.local[ways.targets[at]]
    return count, pairs


@njit
def _climb(start: int, count: int, key: np.uint64, medium: Medium, forest: Forest, looked_up: NDArray[np.bool_]) -> int:
    """Walk from a local node towards the key, adding relays, until the path meets one walked before, the rendezvous
    or a dead node that swallows the request; returns the new number of nodes.

    `looked_up` says of every member whether a walk has passed it.
    """
    local, nodes, up, size = forest.local, forest.nodes, forest.up, len(looked_up)
    at = start
    while True:
        if at < size:
            if looked_up[at]:
                return count
            looked_up[at] = True
        elif up[at] != NOBODY:
            return count
        q = next_hop(nodes[at], key, medium.fresh, medium.ids, medium.views)
        if q == NOBODY or not medium.views.alive[q]:
            return count
        known = local[q] >= 0
        if not known:
            local[q] = count
            nodes[count], up[count] = q, NOBODY
            count += 1
        up[at] = local[q]
        at = int(local[q])
        if known and at >= size:
            return count


@njit
def _descend_to_all(size: int, home: int, publisher: int, medium: Medium, forest: Forest) -> int:
    """The tree of the routes from the home to every member and to the publisher; returns the number of its nodes.

    Routes go clockwise and never pass their target, so two of them that part never meet again: whoever is on several
    has one parent (Magnet §3.3). A dead node swallows what is sent to it.
    """
    if home == NOBODY:  # the system has not begun
        return _number(publisher, size, forest)
    count = _number(home, size, forest)
    for i in range(size):
        if medium.views.alive[forest.nodes[i]]:
            count = _descend(home, forest.nodes[i], count, medium, forest)
    if forest.local[publisher] < 0:
        count = _descend(home, publisher, count, medium, forest)
    return _number(publisher, count, forest)  # also if no route leads to it


@njit
def _number(node: int, count: int, forest: Forest) -> int:
    """Give the node the next local number, and no way up, if it has none; returns the new number of nodes."""
    if forest.local[node] >= 0:
        return count
    forest.local[node] = count
    forest.nodes[count], forest.up[count] = node, NOBODY
    return count + 1


@njit
def _descend(home: int, target: int, count: int, medium: Medium, forest: Forest) -> int:
    """Add the route from the home to one node, as far as it goes; returns the new number of nodes.

    What a route adds that ends before its target carries nothing, so it is taken back.
    """
    local, nodes, up = forest.local, forest.nodes, forest.up
    at, before = home, count
    while at != target:
        q = hop_below(at, target, medium.fresh, medium.ids, medium.views)
        if q == NOBODY or not medium.views.alive[q]:
            for i in range(before, count):
                local[nodes[i]] = NOBODY
            return before
        count = _number(q, count, forest)
        up[local[q]] = local[at]
        at = q
    return count


@njit
def _join_edges(
    members: Columns, count: int, medium: Medium, scratch: Scratch, up: Columns, pairs: Columns
) -> tuple[Starts, Columns]:
    """Member links, tree edges and further pairs in one set of rows, of each row the member links first. Where links
    between members carry events, a tree edge between two of them is there already."""
    size = len(members)
    tree_starts, tree = _tree_rows(size if medium.floods else 0, count, up[:count], pairs)
    most = degree_sum(members, medium.link_starts) if medium.floods else 0
    starts, edges, filled = np.empty(count + 1, np.int64), np.empty(most + len(tree) + 1, np.int32), _0
    for i in range(count):
        starts[i] = filled
        if i < size and medium.floods and scratch.local[members[i]] >= 0:
            neighbours = medium.links[medium.link_starts[members[i]] : medium.link_starts[members[i] + 1]]
            filled = append_members(neighbours, np.uint32(size), scratch.local, edges, filled)
        for at in range(tree_starts[i], tree_starts[i + 1]):
            edges[filled] = tree[at]
            filled += _1
    starts[count] = filled
    return starts, edges[:filled]


@njit
def _tree_rows(known: int, count: int, up: Columns, pairs: Columns) -> tuple[Starts, Columns]:
    """The edges to the nodes' ways up, but for those between two of the first `known`, and further pairs, as rows of
    both their ends."""
    starts = np.zeros(count + 1, np.int64)
    for i in range(count):
        if up[i] != NOBODY and (i >= known or up[i] >= known):
            starts[i + 1] += 1
            starts[up[i] + 1] += 1
    for i in pairs:
        starts[i + 1] += 1
    for i in range(count):
        starts[i + 1] += starts[i]
    edges, cursor = np.empty(starts[count], np.int32), starts[:count].copy()
    for i in range(count):
        j = up[i]
        if j != NOBODY and (i >= known or j >= known):
            edges[cursor[i]], edges[cursor[j]] = j, i
            cursor[i] += 1
            cursor[j] += 1
    for at in range(0, len(pairs), 2):
        i, j = pairs[at], pairs[at + 1]
        edges[cursor[i]], edges[cursor[j]] = j, i
        cursor[i] += 1
        cursor[j] += 1
    return starts, edges
