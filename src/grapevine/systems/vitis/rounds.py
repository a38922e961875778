"""Vitis over arrays: one exchange of views a round (Algorithms 2 and 3), and the election of gateways."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import exchange, small_world
from grapevine.blocks.candidates import new_candidates, start_over, store
from grapevine.blocks.exchange import Contacts
from grapevine.blocks.network import Network, Rows
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import GATEWAY_TIES, NOBODY, Views
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import ring_distance
from grapevine.kernels.rng import absorb, stream
from grapevine.kernels.topic_graph import Scratch, leave, new_scratch, open_topic
from grapevine.systems.contracts.rounds import Delivery, GossipSystem
from grapevine.systems.vitis.config import VitisConfig
from grapevine.systems.vitis.rules import Proposals, choose_gateway, select_neighbors

MOST_ELECTION_ROUNDS = 200  # far above what is seen (28 at d = 5): an election that does not settle is cut off


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
