"""Magnet (Girdzijauskas, Chockler, Vigfusson, Tock & Melamed, DEBS 2010): similar nodes are neighbours on a ring.

A node that joins learns from a membership service a few subscribers of each of its topics, with their interests, and
takes its place on the ring next to the most similar of them (Algorithm 1). So ids are skewed, and long links are
Oscar's (`blocks/oscar`), which do not mind. Every topic has a home, found by hashing its name on a second ring, the
control ring. Its events go from there to all subscribers on the greedy routes of the first ring. Routes to similar
nodes share most of their way, so few nodes relay what they do not want. The strawman is the same on hashed ids.

Differs from the paper (docs/papers.md#magnet): a topic's tree is not stored but is what the tree join (Algorithm 2)
makes of the current links, since both are the greedy routes from the home; a link that is silent is not used, so trees
mend with the heartbeats of links. The control ring is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import circle as ring
from grapevine.blocks import exchange, membership, oscar, small_world
from grapevine.blocks.candidates import new_candidates, start_over, store
from grapevine.blocks.circle import Circle
from grapevine.blocks.exchange import Contacts
from grapevine.blocks.network import Network, Rows
from grapevine.blocks.profiles import Profiles, clear, lay_out, preference, utility
from grapevine.blocks.small_world import PREDECESSOR, RING_SLOTS, SUCCESSOR, Ids
from grapevine.blocks.views import JOIN_ORDER, NOBODY, Views
from grapevine.kernels.csr import Columns
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import absorb, priorities, stream
from grapevine.model.config import parameter
from grapevine.systems.base import Delivery, GossipSystem, RingConfig, register

GROWTH = 1.25  # the membership service samples anew when the network has grown by so much, while it is built


@dataclass(frozen=True, slots=True, kw_only=True)
class OscarConfig(RingConfig):
    """Trees of greedy routes over Oscar."""

    table_size: int = parameter(
        19, "links of a node: two on the ring, the others fingers", source="Magnet §4.2: 19", low=4, high=1_000
    )
    settle_rounds: int = parameter(
        0, "rounds before a newcomer is a ring link of others", source="Magnet §3.2: a join is complete", low=0
    )
    walks: int = parameter(5, "random walks to estimate a median", source="Magnet Fig. 1: 5", low=1, high=1_000)
    walk_length: int = parameter(20, "steps of a random walk", source="ours: Magnet names none", low=1, high=1_000)
    rewire_rounds: int = parameter(
        5, "rounds between two choices of fingers", source="ours: Magnet §2.2 says periodically", low=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MagnetConfig(OscarConfig):
    """Magnet: places by interest."""

    samples: int = parameter(
        10, "interests that are sampled per topic (k)", source="Magnet §4.2: 10", low=1, high=1_000
    )
    choices: int = parameter(
        2,
        "nodes of which a finger takes the one with the closest interests",
        source="Magnet §2.2: two",
        low=1,
        high=100,
    )


@njit
def keep_ring(
    now: int,
    nodes: tuple[int, int],
    max_age: int,
    ids: Ids,
    views: Views,
    contacts: Contacts,
    out: Rows,
) -> None:
    """One exchange of the nodes first … last-1: ring links from gossip; fingers stay while they are heard of."""
    first, last = nodes
    links, heard, backups = out
    pool = new_candidates(exchange.most_candidates(first, last, views, contacts))
    for p in range(first, last):
        a, b = views.starts[p], views.starts[p + 1]
        picks = np.full(RING_SLOTS, NOBODY, np.int32)
        links[a:b] = NOBODY
        backups[p] = NOBODY
        if not views.alive[p]:
            continue
        start_over(pool, exchange.bound(p, views, contacts))
        exchange.gather(p, now, now - max_age, views, contacts, pool)
        small_world.fill_ring(p, now, ids, views, contacts, pool, picks, backups[p])
        store(picks, pool, links[a : a + RING_SLOTS], heard[a : a + RING_SLOTS])
        for at in range(a + RING_SLOTS, b):
            q = views.links[at]
            if views.heard[at] >= now - max_age and q != links[a + SUCCESSOR] and q != links[a + PREDECESSOR]:
                links[at], heard[at] = q, views.heard[at]


@njit
def take_places(
    seed: int,
    nodes: Columns,
    hashed: Ids,
    profiles: Profiles,
    samples: NDArray[np.int32],
    known: Columns,
    circle: Circle,
) -> None:
    """Algorithm 1 for one node after the other: next to the most similar known node, or at its hashed id.

    `known` tells how many of each topic's samples there are. A home that has fewer than it may keep also takes those
    who come, so that whoever wants a topic is told of somebody, unless it is the first (§3).
    """
    dense = np.zeros(len(profiles.weights), profiles.weights.dtype)
    start = NOBODY
    for q in range(len(circle.after)):
        if circle.after[q] != NOBODY:
            start = q
            break
    for p in nodes:
        lay_out(p, profiles, dense)
        ties = absorb(stream(seed, JOIN_ORDER, p), 1)
        best, most = NOBODY, np.int64(-1)
        mine = profiles.topics[profiles.starts[p] : profiles.starts[p + 1]]
        for topic in mine:
            for q in samples[topic, : known[topic]]:
                if circle.after[q] != NOBODY:
                    value = preference(utility(p, q, profiles, dense), absorb(ties, q))
                    if value > most:
                        best, most = int(q), value
        clear(p, profiles, dense)
        if best != NOBODY:
            ring.insert_after(best, p, circle)
        else:
            ring.insert_at(hashed[p], p, start, circle)
        start = int(p) if start == NOBODY else start
        for topic in mine:
            if known[topic] < samples.shape[1]:
                samples[topic, known[topic]] = p
                known[topic] += 1


@njit
def link_newcomers(nodes: Columns, now: int, circle: Circle, views: Views) -> None:
    """Newcomers and the nodes that they came between know each other, the next few in both directions are their
    backups, and their samples are their first fingers, as old as they are."""
    half = views.backups.shape[1] // 2
    for p in nodes:
        _join_neighbours(p, now, circle, views)
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
def _join_neighbours(p: int, now: int, circle: Circle, views: Views) -> None:
    """The ring links of a node and of those next to it."""
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


class OscarSystem(GossipSystem):
    """Trees of greedy routes from homes, over Oscar on a ring."""

    config: OscarConfig
    ring_slots = RING_SLOTS

    def __init__(self, config: OscarConfig, network: Network) -> None:
        self._control = network.ids  # the ids by which topics' homes are found, and nodes without a place of their own
        network.ids = network.ids.copy()
        nobody = np.full(network.size, NOBODY, np.int32)
        self._circle = Circle(network.ids, nobody, nobody.copy())
        self._begun = False
        super().__init__(config, network)

    @property
    def walks(self) -> oscar.Walks:
        return oscar.Walks(self.config.walks, self.config.walk_length, self.choices)

    @property
    def choices(self) -> int:
        """Of how many nodes a finger takes the most similar."""
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

    def exchange(self) -> None:
        network, views = self.network, self.network.views

        def select(nodes: tuple[int, int], contacts: Contacts, out: Rows) -> None:
            keep_ring(network.now, nodes, self.config.max_age, network.ids, views, contacts, out)

        network.exchange(select, ring_slots=self.ring_slots)

    def _begin(self) -> None:
        """Nodes that are there from the start have joined one after the other; their first fingers are samples."""
        network, self._begun = self.network, True
        online = np.flatnonzero(network.alive).astype(np.int32)
        order = online[np.argsort(priorities(network.seed, JOIN_ORDER, len(online)), kind="stable")]
        self._join_in_turn(order)
        self._link(order)

    def _join_in_turn(self, order: Columns) -> None:
        """At the ids that they have, which are hashed, in whatever order."""
        ring.close(order[np.argsort(self._circle.ids[order], kind="stable")], self._circle)

    def acquire(self, nodes: Columns) -> None:
        """Places on the ring for newcomers, one after the other: their hashed ids."""
        start = np.flatnonzero(self._circle.after != NOBODY)
        first = int(start[0]) if len(start) else NOBODY
        for node in nodes.tolist():
            ring.insert_at(self._control[node], node, first, self._circle)
            first = node if first == NOBODY else first

    def _link(self, nodes: Columns) -> None:
        link_newcomers(nodes, self.network.now, self._circle, self.network.views)
        self.network.links_changed()

    def _rewire(self) -> None:
        """New fingers for everybody, from walks over the links as they are."""
        network, views, rows = self.network, self.network.views, self.network.neighbours()
        out = views.links.copy(), views.heard.copy()
        network.in_chunks(
            lambda a, b: oscar.rewire(
                network.seed,
                network.now,
                (a, b),
                self.walks,
                network.ids,
                views,
                (rows.starts, rows.columns),
                network.profiles,
                out,
            )
        )
        views.links[:], views.heard[:] = out
        network.links_changed()

    def forget(self, nodes: Columns) -> None:
        """Who left is between nobody any more; who came gets a place."""
        if not self._begun:
            return
        for node in nodes.tolist():
            ring.remove(node, self._circle)
        come = nodes[self.network.alive[nodes]]
        self.acquire(come)
        self._link(come)

    def delivery(self) -> Delivery:
        nobody = np.zeros(len(self.network.topic_nodes.columns), np.bool_)
        return Delivery(floods=False, gateways=nobody, homes=self._homes())

    def _homes(self) -> Columns:
        """The first online node of the control ring at or after each topic's id."""
        nodes, ids = self._control_ring()
        if len(nodes) == 0:
            return np.full(len(self.network.topic_ids), NOBODY, np.int32)
        return nodes[membership.home_places(ids, self.network.topic_ids)]

    def _control_ring(self) -> tuple[Columns, Ids]:
        online = np.flatnonzero(self.network.alive & (self._circle.after != NOBODY))
        nodes = online[np.argsort(self._control[online], kind="stable")].astype(np.int32)
        return nodes, self._control[nodes]


class Magnet(OscarSystem):
    """Magnet on a network."""

    name = "magnet"
    paper = "Girdzijauskas, Chockler, Vigfusson, Tock & Melamed, DEBS 2010"
    summary = "nodes of similar interests are neighbours on a ring; trees of greedy routes from each topic's home"
    config_type = MagnetConfig
    config: MagnetConfig

    def __init__(self, config: MagnetConfig, network: Network) -> None:
        topics = len(network.topic_ids)
        self._samples = np.full((topics, config.samples), NOBODY, np.int32)
        self._known = np.zeros(topics, np.int32)
        super().__init__(config, network)

    @property
    def choices(self) -> int:
        return self.config.choices

    def _join_in_turn(self, order: Columns) -> None:
        """The membership service samples anew whenever the network has grown by a quarter."""
        joined = 0
        while joined < len(order):
            more = max(1, int(joined * (GROWTH - 1)))
            self.acquire(order[joined : joined + more])
            joined += more
            self._sample_interests()

    def acquire(self, nodes: Columns) -> None:
        take_places(
            self.network.seed,
            nodes,
            self._control,
            self.network.profiles,
            self._samples,
            self._known,
            self._circle,
        )

    def _sample_interests(self) -> None:
        """One round of the membership service (§3.4) for every topic."""
        network, (nodes, ids) = self.network, self._control_ring()
        if len(nodes) == 0:
            self._known[:] = 0
            return
        place = np.full(network.size, NOBODY, np.int32)
        place[nodes] = np.arange(len(nodes))
        homes, rows = membership.home_places(ids, network.topic_ids), network.topic_nodes
        network.in_chunks(
            lambda a, b: membership.sample_topics(
                network.seed,
                network.now,
                (a, b),
                ids,
                place,
                homes,
                (rows.starts, rows.columns),
                self._samples,
                self._known,
            ),
            len(network.topic_ids),
        )

    def forget(self, nodes: Columns) -> None:
        """Newcomers are told what the last round of sampling found, in the round before."""
        if self._begun and self.network.alive[nodes].any():
            self._sample_interests()
        super().forget(nodes)

    def interests_changed(self, nodes: Columns) -> None:
        """Whoever has other interests now leaves its place and joins again (§3.2)."""
        super().interests_changed(nodes)
        if not self._begun:
            return
        moving = nodes[self.network.alive[nodes]]
        for node in moving.tolist():
            before = int(self._circle.before[node])
            ring.remove(node, self._circle)
            if before != node:
                _join_neighbours(before, self.network.now, self._circle, self.network.views)
        self._sample_interests()
        self.acquire(moving)
        self._link(moving)


class Strawman(OscarSystem):
    """The strawman on a network."""

    name = "strawman"
    paper = "the baseline of Magnet, DEBS 2010, §4 (as Scribe, Castro et al. 2002)"
    summary = "Magnet's trees on hashed ids: nobody looks at interests"
    config_type = OscarConfig


register(Magnet)
register(Strawman)
