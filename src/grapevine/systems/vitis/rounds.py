"""Vitis over arrays: one exchange of views a round (`exchange`), and the election of gateways (Algorithm 5).

Members of a topic are known by their position in its subscriber list (`Network.topic_nodes`); proposals are kept flat,
one entry per (topic, subscriber) in that order. Without churn elections run once, before events are published, to the
fixpoint (`settle`); under churn one round of them follows every round of exchanges (`gossip`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import small_world
from grapevine.blocks.exchange import Exchange, NewRows
from grapevine.blocks.network import Network
from grapevine.blocks.small_world import Ids
from grapevine.blocks.views import GATEWAY_TIES, NOBODY
from grapevine.kernels.csr import Columns, Starts
from grapevine.kernels.jit import njit
from grapevine.kernels.ring import ring_distance
from grapevine.kernels.rng import absorb, stream
from grapevine.kernels.topic_graph import Scratch, leave, new_scratch, open_topic
from grapevine.systems.contracts.rounds import Delivery, GossipSystem
from grapevine.systems.vitis.config import VitisConfig
from grapevine.systems.vitis.exchange import UNKNOWN, Friendships, exchange_round
from grapevine.systems.vitis.rules import Proposals, choose_gateway
from grapevine.systems.vitis.signatures import make_signatures

MOST_ELECTION_ROUNDS = 200  # far above what is seen (28 at d = 5): an election that does not settle is cut off


class Electorate(NamedTuple):
    """What elections read: ring ids, the subscribers of every topic, links both ways, and who is online."""

    node_ids: Ids
    topic_ids: Ids
    topic_starts: Starts
    topic_nodes: Columns
    link_starts: Starts
    links: Columns
    alive: NDArray[np.bool_]


@njit
def elect(seed: int, topics: tuple[int, int], d: int, most_rounds: int, among: Electorate, proposals: Proposals) -> int:
    """Algorithm 5 for the topics first … last-1, round by round until nothing changes or `most_rounds` are done;
    returns the most rounds that a topic needed.

    Goes on from `proposals`, which it changes; members that were not there before begin by proposing themselves.
    """
    first, last = topics
    node_ids, topic_ids, alive = among.node_ids, among.topic_ids, among.alive
    starts, nodes, links = among.topic_starts, among.topic_nodes, (among.link_starts, among.links)
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
    """The election of one topic: everybody proposes from what its neighbours proposed in the round before."""
    size = len(distance)
    seen = np.full(size, NOBODY, np.int32)
    for rounds in range(most_rounds):
        before = Proposals(mine.gateway.copy(), mine.parent.copy(), mine.hops.copy())
        changed = False
        for i in range(size):
            if before.gateway[i] != NOBODY:
                ties = absorb(stream(seed, topic, i), GATEWAY_TIES)
                gateway, parent, hops = choose_gateway(i, d, distance, before, graph, seen, ties)
                if gateway != before.gateway[i] or parent != before.parent[i] or hops != before.hops[i]:
                    changed = True
                    mine.gateway[i], mine.parent[i], mine.hops[i] = gateway, parent, hops
        if not changed:
            return rounds
    return most_rounds


class Vitis(GossipSystem):
    """Vitis on a network. `proposals` is what every member proposes as its topic's gateway, by (topic, subscriber)."""

    config_type = VitisConfig
    config: VitisConfig
    ring_slots = small_world.RING_SLOTS

    def __init__(self, config: VitisConfig, network: Network) -> None:
        super().__init__(config, network)
        self._propose_afresh()
        self._forget_keys()

    def row_sizes(self) -> NDArray[np.int64]:
        return np.full(self.network.size, self.config.table_size, np.int64)

    def slot_kinds(self, size: int) -> list[str]:
        long_links = self.config.ring_and_long_links - small_world.RING_SLOTS
        friends = size - self.config.ring_and_long_links
        return ["successor", "predecessor"] + ["long"] * long_links + ["friend"] * friends

    def exchange(self) -> None:
        structured = self.config.ring_and_long_links
        friends = Friendships(self.network.profiles, self._signatures, self._keys)

        def select(nodes: tuple[int, int], this: Exchange, out: NewRows) -> None:
            exchange_round(this, nodes, structured, friends, out)

        self.network.exchange(select, ring_slots=self.ring_slots, max_age=self.config.max_age)

    def gossip(self) -> None:
        self._elect((0, len(self.network.topic_ids)), most_rounds=1)

    def settle(self, topics: tuple[int, int]) -> int:
        starts = self.network.topic_nodes.starts
        self.proposals.gateway[starts[topics[0]] : starts[topics[1]]] = NOBODY
        return self._elect(topics, most_rounds=MOST_ELECTION_ROUNDS)

    def _elect(self, topics: tuple[int, int], *, most_rounds: int) -> int:
        """Elections of the topics first … last-1; returns the most rounds that one of them took."""
        network, links, offset = self.network, self.network.neighbours(), topics[0]
        among = Electorate(
            network.ids,
            network.topic_ids,
            network.topic_nodes.starts,
            network.topic_nodes.columns,
            links.starts,
            links.columns,
            network.alive,
        )
        reach, rounds = self.config.gateway_reach, [0]

        def work(first: int, last: int) -> None:
            some = offset + first, offset + last
            rounds.append(elect(network.seed, some, reach, most_rounds, among, self.proposals))

        network.in_chunks(work, topics[1] - topics[0])
        return max(rounds)

    def forget(self, nodes: Columns) -> None:
        gone = np.zeros(self.network.size, np.bool_)
        gone[nodes] = True
        self.proposals.gateway[gone[self.network.topic_nodes.columns]] = NOBODY

    def interests_changed(self, nodes: Columns) -> None:
        super().interests_changed(nodes)
        self._propose_afresh()
        self._forget_keys()

    def _forget_keys(self) -> None:
        """Profiles are new: so are their signatures, and every friend has to be scored again."""
        self._signatures = make_signatures(self.network.profiles)
        self._keys = np.full(len(self.network.views.links), UNKNOWN, np.int64)

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
