"""Vitis (Rahimian et al., IPDPS 2011): gossip clusters joined by relay paths.

Nodes with similar subscriptions become friends, so the subscribers of a topic form a few clusters. Two links of every
table keep an identifier ring and some more are long links, which makes the whole a navigable small world. Inside a
cluster the members agree, by gossip, on gateways: the members nearest to the topic's id within a few hops. Each gateway
looks the topic's id up; the nodes on the way become relays, and since all lookups end at the same rendezvous node, all
clusters are joined. An event floods its cluster, and the relay paths carry it to the others.

Differs from the paper: a round answers from its start (docs/papers.md#rounds); links carry events both ways; every
other round the exchange goes to a ring link; a node never takes its own proposal back from a neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import exchange, small_world
from grapevine.blocks.candidates import Candidates, new_candidates, start_over, store
from grapevine.blocks.exchange import Contacts
from grapevine.blocks.network import Network, Rows
from grapevine.blocks.profiles import Profiles, clear, fetch, lay_out, preference, utility
from grapevine.blocks.views import FRIEND_TIES, GATEWAY_TIES, NOBODY, Views
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import ring_distance
from grapevine.kernels.rng import absorb, stream
from grapevine.kernels.topic_graph import Scratch, leave, new_scratch, open_topic
from grapevine.kernels.topk import largest
from grapevine.model.config import parameter
from grapevine.systems.base import Delivery, GossipSystem, RingConfig, register

MOST_ELECTION_ROUNDS = 200  # far above what is seen (28 at d = 5): an election that does not settle is cut off


@dataclass(frozen=True, slots=True, kw_only=True)
class VitisConfig(RingConfig):
    """Vitis: gossip clusters joined by relay paths."""

    ring_and_long_links: int = parameter(
        3, "of these, successor, predecessor and long links (k); the others are friends", source="Vitis §IV-A", low=2
    )
    gateway_reach: int = parameter(
        5, "a member is fewer than so many hops from its gateway (d)", source="Vitis §IV-A", low=1, high=100
    )

    def mistakes(self) -> list[str]:
        if self.ring_and_long_links > self.table_size:
            return [f"ring_and_long_links={self.ring_and_long_links}: the table has {self.table_size} links"]
        return []


class Proposals(NamedTuple):
    """Who each member proposes as gateway, by (topic, subscriber): positions in the topic's subscriber list.

    NOBODY: the member was not there in the last round and starts by proposing itself.
    """

    gateway: NDArray[np.int32]
    parent: NDArray[np.int32]
    hops: NDArray[np.int32]


@njit
def select_neighbors(
    seed: int,
    p: int,
    pool: Candidates,
    profiles: Profiles,
    structured: int,
    scratch: tuple[NDArray[Any], NDArray[np.int64]],
    picks: Columns,
) -> None:
    """Algorithm 4 after the ring links: long links, and for the rest the most similar (ties by hash).

    Picks are positions in the pool, NOBODY where there are too few candidates.
    """
    small_world.choose_long(seed, p, profiles.ids, pool, (small_world.RING_SLOTS, structured), picks)
    dense, keys = scratch
    count = pool.size[0]
    fetch(pool.nodes[:count], profiles, keys)
    lay_out(p, profiles, dense)
    ties = stream(seed, FRIEND_TIES, p)
    for at in range(count):
        other = pool.nodes[at]
        keys[at] = preference(utility(p, other, profiles, dense), absorb(ties, other))
    clear(p, profiles, dense)
    for slot in range(structured):
        if NOBODY < picks[slot] < count:
            keys[picks[slot]] = -1
    found = largest(keys[:count], len(picks) - structured, picks[structured:])
    picks[structured + found :] = NOBODY


@njit
def choose_gateway(
    i: int, d: int, distance: NDArray[np.uint64], told: Proposals, graph: Scratch, seen: Columns, ties: np.uint64
) -> tuple[int, int, int]:
    """Algorithm 5 for one member and topic: (gateway, parent, hops), from what its neighbours proposed last round.

    The nearest gateway to the topic's id wins, then the fewest hops, then the hash of the neighbour. A proposal counts
    when the neighbour made it itself, or heard it from somebody who is not a neighbour of i (line 7); what came from i
    does not count.
    """
    gateway, parent, hops, tie = i, i, 0, np.uint64(0)
    for at in range(graph.starts[i], graph.starts[i + 1]):
        seen[graph.edges[at]] = i
    for at in range(graph.starts[i], graph.starts[i + 1]):
        j = graph.edges[at]
        source = told.parent[j]
        if source == i or told.hops[j] + 1 >= d or (source != j and seen[source] == i):
            continue
        new, away = told.gateway[j], told.hops[j] + 1
        better = distance[new] < distance[gateway]
        if new == gateway and parent != i:
            better = away < hops or (away == hops and absorb(ties, j) < tie)
        if better:
            gateway, parent, hops, tie = int(new), int(j), int(away), absorb(ties, j)
    return gateway, parent, hops


@njit
def exchange_round(
    seed: int,
    now: int,
    nodes: tuple[int, int],
    max_age: int,
    sizes: tuple[int, int],
    profiles: Profiles,
    views: Views,
    contacts: Contacts,
    out: Rows,
) -> None:
    """Algorithms 2 and 3 for the nodes first … last-1: gather, select, store."""
    first, last = nodes
    links, heard, backups = out
    pool = new_candidates(exchange.most_candidates(first, last, views, contacts))
    picks = np.empty(sizes[0], np.int32)
    scratch = np.zeros_like(profiles.weights), np.empty(len(pool.nodes), np.int64)
    for p in range(first, last):
        a, b = views.starts[p], views.starts[p + 1]
        if not views.alive[p]:
            links[a:b] = NOBODY
            backups[p] = NOBODY
            continue
        start_over(pool, exchange.bound(p, views, contacts))
        exchange.gather(p, now, now - max_age, views, contacts, pool)
        small_world.fill_ring(p, now, profiles.ids, views, contacts, pool, picks, backups[p])
        select_neighbors(seed, p, pool, profiles, sizes[1], scratch, picks)
        store(picks, pool, links[a:b], heard[a:b])


@njit
def elect(
    seed: int,
    topics: tuple[int, int],
    d: int,
    most_rounds: int,
    ids: tuple[NDArray[np.uint64], NDArray[np.uint64]],
    subscribers: tuple[Starts, Columns],
    links: tuple[Starts, Columns],
    alive: NDArray[np.bool_],
    proposals: Proposals,
) -> int:
    """Algorithm 5 for the topics first … last-1, round by round until nothing changes; returns the rounds needed."""
    first, last = topics
    node_ids, topic_ids = ids
    starts, nodes = subscribers
    graph, most = new_scratch(len(alive)), 0
    for topic in range(first, last):
        a, b = starts[topic], starts[topic + 1]
        members, mine = nodes[a:b], Proposals(proposals.gateway[a:b], proposals.parent[a:b], proposals.hops[a:b])
        graph = open_topic(members, links, alive, graph)
        distance = np.empty(b - a, np.uint64)
        for i in range(b - a):
            distance[i] = ring_distance(node_ids[members[i]], topic_ids[topic])
            if not alive[members[i]]:
                mine.gateway[i] = NOBODY
            elif mine.gateway[i] == NOBODY:
                mine.gateway[i], mine.parent[i], mine.hops[i] = i, i, 0
        rounds = _elect_one(seed, topic, d, most_rounds, distance, mine, graph)
        most = max(most, rounds)
        leave(members, graph)
    return most


@njit
def _elect_one(
    seed: int, topic: int, d: int, most_rounds: int, distance: NDArray[np.uint64], mine: Proposals, graph: Scratch
) -> int:
    size = len(distance)
    seen = np.full(size, NOBODY, np.int32)
    for rounds in range(most_rounds):
        told = Proposals(mine.gateway.copy(), mine.parent.copy(), mine.hops.copy())
        changed = False
        for i in range(size):
            if told.gateway[i] != NOBODY:
                ties = absorb(stream(seed, topic, i), GATEWAY_TIES)
                gateway, parent, hops = choose_gateway(i, d, distance, told, graph, seen, ties)
                if gateway != told.gateway[i] or parent != told.parent[i] or hops != told.hops[i]:
                    changed = True
                    mine.gateway[i], mine.parent[i], mine.hops[i] = gateway, parent, hops
        if not changed:
            return rounds
    return most_rounds


class Vitis(GossipSystem):
    """Vitis on a network."""

    name = "vitis"
    paper = "Rahimian, Girdzijauskas, Payberah & Haridi, IPDPS 2011"
    summary = "gossip clusters of similar nodes, joined by relay paths over a small-world ring"
    config_type = VitisConfig
    config: VitisConfig
    ring_slots = small_world.RING_SLOTS

    def __init__(self, config: VitisConfig, network: Network) -> None:
        super().__init__(config, network)
        self._propose_afresh()

    def row_sizes(self) -> NDArray[np.int64]:
        return np.full(self.network.size, self.config.table_size, np.int64)

    def slot_kinds(self, size: int) -> list[str]:
        long_links = self.config.ring_and_long_links - small_world.RING_SLOTS
        friends = size - self.config.ring_and_long_links
        return ["successor", "predecessor"] + ["long"] * long_links + ["friend"] * friends

    def exchange(self) -> None:
        network, config = self.network, self.config
        views, sizes = network.views, (config.table_size, config.ring_and_long_links)

        def select(nodes: tuple[int, int], contacts: Contacts, out: Rows) -> None:
            age, profiles = config.max_age, network.profiles
            exchange_round(network.seed, network.now, nodes, age, sizes, profiles, views, contacts, out)

        network.exchange(select, ring_slots=self.ring_slots)

    def gossip(self) -> None:
        self._elect((0, len(self.network.topic_ids)), most_rounds=1)

    def settle(self, topics: tuple[int, int]) -> int:
        starts = self.network.topic_nodes.starts
        self.proposals.gateway[starts[topics[0]] : starts[topics[1]]] = NOBODY
        return self._elect(topics, most_rounds=MOST_ELECTION_ROUNDS)

    def _elect(self, topics: tuple[int, int], *, most_rounds: int) -> int:
        network, links, offset = self.network, self.network.neighbours(), topics[0]
        ids = network.ids, network.topic_ids
        subscribers = network.topic_nodes.starts, network.topic_nodes.columns
        both_ways, reach = (links.starts, links.columns), self.config.gateway_reach
        rounds = [0]

        def work(first: int, last: int) -> None:
            some = offset + first, offset + last
            rounds.append(
                elect(
                    network.seed, some, reach, most_rounds, ids, subscribers, both_ways, network.alive, self.proposals
                )
            )

        network.in_chunks(work, topics[1] - topics[0])
        return max(rounds)

    def forget(self, nodes: Columns) -> None:
        gone = np.zeros(self.network.size, np.bool_)
        gone[nodes] = True
        self.proposals.gateway[gone[self.network.topic_nodes.columns]] = NOBODY

    def interests_changed(self, nodes: Columns) -> None:
        super().interests_changed(nodes)
        self._propose_afresh()

    def _propose_afresh(self) -> None:
        """Everyone proposes itself; after a change of subscriptions too, which costs the few rounds of an election."""
        pairs = len(self.network.topic_nodes.columns)
        self.proposals = Proposals(
            np.full(pairs, NOBODY, np.int32), np.zeros(pairs, np.int32), np.zeros(pairs, np.int32)
        )

    def delivery(self) -> Delivery:
        gateway, starts = self.proposals.gateway, self.network.topic_nodes.starts
        position = np.arange(len(gateway)) - np.repeat(starts[:-1], np.diff(starts))
        return Delivery(floods=True, gateways=gateway == position)


register(Vitis)
