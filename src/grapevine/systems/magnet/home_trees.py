"""Trees of greedy routes from each topic's home, over Oscar on a ring: what Magnet and its strawman have in common.

Joins are exact and atomic here: a newcomer is in the circle, and its neighbours know of it, in the round in which it
comes; homes are those of the control ring of the moment; the circle knows at once who left. What that would cost in
messages is counted (`messages`), but no message is late or lost.

Control messages, each with the interests (descriptors) that it carries:

- `join`: a lookup of the own place on the control ring by the newcomer's first contact, and a word to both neighbours
  there. Magnet: also a question to the home of each topic, its answer, and a word to the two nodes that it comes
  between.
- `sample`: up and down each edge of a topic's tree over the control ring, in every sampling.
- `walk`: a step of a random walk, or its result on the way back.
- `tree_join`: a request on its way to the place in a tree (`trees`). Trees are looked at whenever fingers have been
  chosen anew; in between they are taken to be the same.
- `heartbeat`, `tree_heartbeat`: a question and an answer in every round, on every link and on every edge of a tree.

The gossip by which rings are kept is not counted: the paper has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import exchange, ring_rows, small_world
from grapevine.blocks.exchange import Exchange, NewRows, Rules, Select
from grapevine.blocks.network import Network
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.small_world import PREDECESSOR, RING_SLOTS, SUCCESSOR, Ids
from grapevine.blocks.views import JOIN_ORDER, NOBODY, Views
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import priorities
from grapevine.systems.contracts.rounds import Delivery, GossipSystem, Sent
from grapevine.systems.magnet import circle as ring
from grapevine.systems.magnet import membership, oscar, trees
from grapevine.systems.magnet.circle import Circle
from grapevine.systems.magnet.config import OscarConfig
from grapevine.systems.magnet.measures import CONTROL

KINDS = "join", "sample", "walk", "tree_join", "heartbeat", "tree_heartbeat"
JOIN, SAMPLE, WALK, TREE_JOIN, HEARTBEAT, TREE_HEARTBEAT = range(6)


@njit
def keep_ring(this: Exchange, rows: tuple[int, int], ids: Ids, out: NewRows) -> None:
    """One exchange of the rows first … last-1: ring links from gossip; fingers stay while they are heard of.

    A finger that has become a ring link gives its slot up, until the next choice of fingers (`oscar.rewire`).
    """
    views, heard_of = this.views, exchange.new_entries(rows, this)
    near = small_world.new_nearest(views.backups.shape[1])
    for p in range(rows[0], rows[1]):
        exchange.stay_away(p, this, out)
        if not views.alive[views.nodes[p]]:
            continue
        ring_rows.fill_ring(p, this, ids, heard_of, near, out)
        a = views.starts[p]
        out.heard[a : a + RING_SLOTS] = this.now  # ring links answer
        for at in range(a + RING_SLOTS, views.starts[p + 1]):
            q = views.links[at]
            if q == NOBODY or q == out.links[a + SUCCESSOR] or q == out.links[a + PREDECESSOR]:
                continue
            if views.heard[at] >= this.oldest:
                out.links[at], out.heard[at] = q, this.now if views.alive[q] else views.heard[at]


@njit
def link_newcomers(nodes: Columns, now: int, circle: Circle, views: Views) -> None:
    """The first links of newcomers that are in the circle already.

    They and the nodes that they came between know each other, the next few in both directions are their backups, and
    their samples are their first fingers, as old as they are.
    """
    half = views.backups.shape[1] // 2
    for p in nodes:
        join_neighbours(p, now, circle, views)
        views.backups[p] = NOBODY
        after, before = p, p
        for i in range(half):
            after, before = circle.after[after], circle.before[before]
            if after != p:
                views.backups[p, i] = after
            if before != p:
                views.backups[p, half + i] = before
            if after == p:  # a small ring: once round is enough
                break
        at, last = views.starts[p] + RING_SLOTS, views.starts[p + 1]
        views.links[at:last] = NOBODY
        for i in range(views.cache.shape[1]):
            q = views.cache[p, i]
            if at < last and q != NOBODY and q != p and q != circle.after[p] and q != circle.before[p]:
                views.links[at], views.heard[at] = q, views.cache_heard[p, i]
                at += 1


@njit
def join_neighbours(p: int, now: int, circle: Circle, views: Views) -> None:
    """Make a node and those next to it in the circle each other's ring links, heard now; a node alone gets none."""
    after, before = circle.after[p], circle.before[p]
    if after != p:
        _set_link(p, SUCCESSOR, after, now, views)
        _set_link(p, PREDECESSOR, before, now, views)
        _set_link(before, SUCCESSOR, p, now, views)
        _set_link(after, PREDECESSOR, p, now, views)


@njit
def _set_link(node: int, slot: int, other: int, now: int, views: Views) -> None:
    views.links[views.starts[node] + slot] = other
    views.heard[views.starts[node] + slot] = now


def prepare(_: Any, __: Profiles, reads: Mapping[str, Any], ___: Mapping[str, Any]) -> Select:
    """The kernel of an exchange: it reads the ids that nodes have acquired."""
    return lambda rows, this, out: keep_ring(this, rows, reads["ids"], out)


class OscarSystem(GossipSystem):
    """Trees of greedy routes from homes, over Oscar on a ring. Ids are hashed, unless a subclass has `acquire` choose
    them.

    There are two rings. On the control ring a node's id is the hash of its name, and every topic has its home there. On
    the other one, `network.ids`, a node has the id that `acquire` gave it, and events are routed.
    """

    config: OscarConfig
    ring_slots = RING_SLOTS
    routes_to_nodes = True
    own_findings = (CONTROL,)

    def __init__(self, config: OscarConfig, network: Network) -> None:
        self._control_ids = network.ids  # hashed: by these homes are found, and nodes that chose no id of their own
        network.ids = network.ids.copy()
        nobody = np.full(network.size, NOBODY, np.int32)
        self._circle = Circle(network.ids, nobody, nobody.copy())
        self._begun, self._told_ids = False, network.ids.copy()
        self._sent = np.zeros((len(KINDS), 2), np.int64)  # messages and descriptors
        self._node_rounds = 0  # online nodes, summed over rounds
        self._edges = np.zeros(2, np.int64)  # links, and edges of trees, when fingers were last chosen
        self._parents = np.empty(0, np.int32)  # by (topic, subscriber), in the order of `network.topic_nodes`
        super().__init__(config, network)

    @property
    def walks(self) -> oscar.Walks:
        """How nodes sample others now: the links, both ways, are those of this moment."""
        links = self.network.neighbours()
        config, ids = self.config, self.network.ids
        return oscar.Walks(config.walks, config.walk_length, self.choices, ids, links.starts, links.columns)

    @property
    def choices(self) -> int:
        """From how many nodes a finger takes the one with the closest interests; 1: interests do not matter."""
        return 1

    def row_sizes(self) -> NDArray[np.int64]:
        return np.full(self.network.size, self.config.table_size, np.int64)

    def slot_kinds(self, size: int) -> list[str]:
        return ["successor", "predecessor"] + ["finger"] * (size - RING_SLOTS)

    def round(self) -> None:
        if not self._begun:
            self._begin()
        super().round()
        if (self.network.now - 1) % self.config.rewire_rounds == 0:
            self._rewire()
            self._join_trees()
        self._node_rounds += int(self.network.alive.sum())
        self._sent[[HEARTBEAT, TREE_HEARTBEAT], 0] += 2 * self._edges

    def rules(self) -> Rules:
        if not np.array_equal(self._told_ids, self.network.ids):  # nobody writes into what was told
            self._told_ids = self.network.ids.copy()
        return Rules(prepare, self.config, {"ids": self._told_ids})

    def _begin(self) -> None:
        """Nodes that are there from the start have joined one after the other; their first fingers are samples."""
        network, self._begun = self.network, True
        online = np.flatnonzero(network.alive).astype(np.int32)
        order = online[np.argsort(priorities(network.seed, JOIN_ORDER, len(online)), kind="stable")]
        self._form_circle(order)
        self._link(order)

    def _form_circle(self, order: Columns) -> None:
        """Bring the first nodes into the circle; their ids are hashed, so the order does not matter."""
        ring.close(order[np.argsort(self._circle.ids[order], kind="stable")], self._circle)

    def acquire(self, nodes: Columns) -> None:
        """Bring newcomers into the circle, one after the other, each with the id that it takes: here its hashed one."""
        start = np.flatnonzero(self._circle.after != NOBODY)
        first = int(start[0]) if len(start) else NOBODY
        for node in nodes.tolist():
            ring.insert_at(self._control_ids[node], node, first, self._circle)
            first = node if first == NOBODY else first

    def _link(self, nodes: Columns) -> None:
        """The first links of these newcomers."""
        views = self.network.views
        self._count(JOIN, *self.join_messages(nodes))
        before = views.links.copy()
        for a, b in zip(views.starts[nodes], views.starts[nodes + 1], strict=True):
            before[a:b] = NOBODY  # of who was here before nothing is left
        link_newcomers(nodes, self.network.now, self._circle, views)
        self._links_chosen(before)

    def _links_chosen(self, before: Columns) -> None:
        """Where connections are bounded, let those answer who are linked to now; `before` are the links until now."""
        self.network.accept(before, self.network.rows, RING_SLOTS)
        self.network.links_changed()

    def join_messages(self, nodes: Columns) -> tuple[int, int]:
        """Messages by which these nodes, who are in the circle, have come, and the interests that they carried."""
        cache = self.network.views.cache
        contacts = cache[nodes, 0] if cache.shape[1] else np.full(len(nodes), NOBODY, np.int32)
        met = contacts != NOBODY
        hops = membership.count_lookups(contacts[met], nodes[met], self.control_ring())
        return hops + 2 * len(nodes), hops + 2 * len(nodes)

    def _rewire(self) -> None:
        """New fingers for everybody, from walks over the links as they are."""
        network, views, walks = self.network, self.network.views, self.walks
        before, out = views.links.copy(), (views.links.copy(), views.heard.copy())
        (made,) = self._summed(
            lambda a, b: (oscar.rewire(network.seed, network.now, (a, b), walks, views, network.profiles, out),)
        )
        views.links[:], views.heard[:] = out
        self._links_chosen(before)
        self._count(WALK, made * (walks.length + 1), made * (walks.length + 1))
        self._edges[0] = np.count_nonzero(views.links != NOBODY)

    def _join_trees(self) -> None:
        """Whoever has another parent in a tree than when fingers were last chosen has joined it again."""
        network, topics = self.network, self.network.topic_nodes
        if len(self._parents) != len(topics.columns):
            self._parents = np.full(len(topics.columns), NOBODY, np.int32)
        if not network.alive.any():
            self._edges[1] = 0
            return
        control, known = self.control_ring(), self.known_subscribers()
        where = network.now, network.ids, network.views
        overlay = trees.Overlay(self._homes(), topics.starts, topics.columns, *known, control, *where)
        edges, messages = self._summed(
            lambda a, b: trees.join_trees((a, b), overlay, self._parents), len(topics.starts) - 1, topics.sizes()
        )
        self._edges[1] = edges
        self._count(TREE_JOIN, messages, messages)

    def known_subscribers(self) -> tuple[NDArray[np.int32], Columns]:
        """Subscribers of every topic that newcomers are told of, and how many: none here."""
        topics = len(self.network.topic_ids)
        return np.empty((topics, 0), np.int32), np.zeros(topics, np.int32)

    def _summed(
        self,
        work: Callable[[int, int], tuple[int, ...]],
        count: int | None = None,
        sizes: NDArray[np.int64] | None = None,
    ) -> list[int]:
        """Call work(first, last) as `Network.in_chunks` does; returns the sums of what it returned."""
        parts, adding = list[tuple[int, ...]](), Lock()

        def one(first: int, last: int) -> None:
            found = work(first, last)
            with adding:
                parts.append(found)

        self.network.in_chunks(one, count, sizes)
        return [sum(column) for column in zip(*parts, strict=True)]

    def _count(self, kind: int, messages: int, descriptors: int) -> None:
        self._sent[kind] += messages, descriptors

    def messages(self) -> dict[str, Sent]:
        return {kind: Sent(*sent) for kind, sent in zip(KINDS, self._sent.tolist(), strict=True)}

    def findings(self) -> dict[str, float]:
        if self._node_rounds == 0:
            return {}
        return {CONTROL.of(kind=kind).name: sent.messages / self._node_rounds for kind, sent in self.messages().items()}

    def route_hops(self, routes: int) -> float | None:
        """Of greedy routes between random nodes: events travel so, and topics are looked up on the control ring."""
        network = self.network
        online = np.flatnonzero(network.alive).astype(np.int32)
        found = float(oscar.mean_route(network.seed, routes, network.now, online, network.ids, network.views))
        return None if math.isnan(found) else found

    def interests_changed(self, nodes: Columns) -> None:
        """Places in trees are by (topic, subscriber), so all are taken anew when fingers are chosen next."""
        super().interests_changed(nodes)
        self._parents = np.empty(0, np.int32)

    def forget(self, nodes: Columns) -> None:
        """Who left is taken out of the circle; who came gets an id and its first links."""
        if not self._begun:
            return
        for node in nodes.tolist():
            ring.remove(node, self._circle)
        newcomers = nodes[self.network.alive[nodes]]
        self.acquire(newcomers)
        self._link(newcomers)

    def saved(self) -> dict[str, NDArray[Any]]:
        circle = self._circle._asdict() if self._begun else {}  # which has the ids that were acquired
        counted = {"sent": self._sent, "node_rounds": np.array([self._node_rounds]), "edges": self._edges}
        return {f"circle_{name}": array for name, array in circle.items()} | counted | {"parents": self._parents}

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        self._begun = "circle_ids" in saved
        if self._begun:
            for name, array in self._circle._asdict().items():  # into the same arrays: the network has these ids
                array[:] = saved[f"circle_{name}"]
        self._sent, self._edges, self._parents = saved["sent"], saved["edges"], saved["parents"]
        self._node_rounds = int(saved["node_rounds"][0])

    def delivery(self) -> Delivery:
        nobody = np.zeros(len(self.network.topic_nodes.columns), np.bool_)
        return Delivery(floods=False, gateways=nobody, homes=self._homes())

    def _homes(self) -> Columns:
        """The home of every topic: the first node of the control ring at or after its id; NOBODY: nobody is online."""
        nodes = self._on_control_ring()
        if len(nodes) == 0:
            return np.full(len(self.network.topic_ids), NOBODY, np.int32)
        return nodes[self.control_ring().homes]

    def control_ring(self) -> membership.ControlRing:
        """The control ring of the moment; homes mean nothing when nobody is on it."""
        network, nodes = self.network, self._on_control_ring()
        position = np.full(network.size, NOBODY, np.int32)
        position[nodes] = np.arange(len(nodes))
        ids = self._control_ids[nodes]
        return membership.ControlRing(ids, position, membership.home_positions(ids, network.topic_ids))

    def _on_control_ring(self) -> Columns:
        """Online nodes that have joined, in the order of their hashed ids."""
        online = np.flatnonzero(self.network.alive & (self._circle.after != NOBODY))
        return online[np.argsort(self._control_ids[online], kind="stable")].astype(np.int32)
