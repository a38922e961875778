"""Vitis over arrays: one exchange of views a round (`exchange`), and the election of gateways (Algorithm 5).

Without churn elections run once, before events are published, to the fixpoint (`settle`); under churn one round of them
follows every round of exchanges (`gossip`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import small_world
from grapevine.blocks.exchange import Rules, Select
from grapevine.blocks.network import Network
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import NOBODY
from grapevine.kernels.csr import Columns
from grapevine.model.workload import Csr
from grapevine.systems.contracts.rounds import Delivery, GossipSystem
from grapevine.systems.vitis.config import VitisConfig
from grapevine.systems.vitis.elections import (
    Electorate,
    Flags,
    carry_over,
    elect,
    find_due,
    start_afresh,
    who_is_gateway,
)
from grapevine.systems.vitis.exchange import UNKNOWN, Friendships, exchange_round
from grapevine.systems.vitis.ideal import rank_friends, take_friends
from grapevine.systems.vitis.rules import Proposals
from grapevine.systems.vitis.signatures import Signatures, make_signatures

MOST_ELECTION_ROUNDS = 200  # far above what is seen (28 at d = 5): an election that does not settle is cut off


def prepare(
    config: VitisConfig, profiles: Profiles, reads: Mapping[str, Any], memory: Mapping[str, NDArray[np.int64]]
) -> Select:
    """The kernel of an exchange: it reads profiles and their signatures, and renews the keys of links."""
    structured = config.ring_and_long_links
    friends = Friendships(profiles, Signatures(**reads), memory["keys"], config.ties == "common")
    return lambda rows, this, out: exchange_round(this, rows, structured, friends, out)


class Vitis(GossipSystem):
    """Vitis on a network. `proposals` is what every member proposes as its topic's gateway, by (topic, subscriber)."""

    config_type = VitisConfig
    config: VitisConfig
    ring_slots = small_world.RING_SLOTS
    slot_memory = MappingProxyType({"keys": (np.int64, UNKNOWN)})
    _due: Flags  # who is to be asked in the next round of gossip, by (topic, subscriber)
    _members: Csr  # of all topics, as the proposals speak of them
    _links_before: Csr | None  # as they were in the last one; None: all are to be asked
    _afresh: Flags  # who has come or gone since then
    _ideal: NDArray[np.int32] | None = None  # whom everybody prefers to all others, where friends are ideal

    def __init__(self, config: VitisConfig, network: Network) -> None:
        super().__init__(config, network)
        self._propose_afresh()
        self._signatures = make_signatures(network.profiles)._asdict()

    def row_sizes(self) -> NDArray[np.int64]:
        return np.full(self.network.size, self.config.table_size, np.int64)

    def slot_kinds(self, size: int) -> list[str]:
        long_links = self.config.ring_and_long_links - small_world.RING_SLOTS
        friends = size - self.config.ring_and_long_links
        return ["successor", "predecessor"] + ["long"] * long_links + ["friend"] * friends

    def rules(self) -> Rules:
        return Rules(prepare, self.config, self._signatures, steady=True)

    def round(self) -> None:
        super().round()
        if self.config.friends == "ideal":
            self._take_ideal_friends()

    def _take_ideal_friends(self) -> None:
        network, structured, rows = self.network, self.config.ring_and_long_links, self.network.rows
        if self._ideal is None:
            members = network.topic_nodes.starts, network.topic_nodes.columns
            ranked = np.empty((network.size, self.config.table_size), np.int32)
            ties, read = self.config.ties == "common", (network.alive, network.profiles, members)
            network.in_chunks(lambda a, b: rank_friends(network.seed, (a, b), ties, *read, ranked))
            self._ideal = ranked
        take_friends(structured, self._ideal, network.now, rows.starts, rows.links, rows.heard)
        rows.memory["keys"][:] = UNKNOWN
        network.links_changed()

    def gossip(self) -> None:
        network, before, links = self.network, self._links_before, self._neighbours()
        among = self._electorate(links, all_due=before is None)
        if before is not None:
            rows, afresh, profiles = (before.starts, before.columns), self._afresh, network.profiles
            network.in_chunks(lambda a, b: find_due((a, b), rows, afresh, among, profiles, self._due))
        self._elect((0, len(network.topic_ids)), among, most_rounds=1)
        self._links_before = links
        self._afresh[:] = False

    def settle(self, topics: tuple[int, int]) -> int:
        starts = self.network.topic_nodes.starts
        self.proposals.gateway[starts[topics[0]] : starts[topics[1]]] = NOBODY
        self._links_before = None
        among = self._electorate(self._neighbours(), all_due=True)
        return self._elect(topics, among, most_rounds=MOST_ELECTION_ROUNDS)

    def _neighbours(self) -> Csr:
        """Whose proposals a node has: those of its neighbours, and by silence also of those that are gone."""
        return self.network.neighbours() if self.config.notices == "at once" else self.network.supposed_neighbours()

    def _electorate(self, links: Csr, *, all_due: bool) -> Electorate:
        network, due = self.network, np.full(self.network.size, all_due, np.bool_)
        by_topic = network.topic_nodes.starts, network.topic_nodes.columns
        there = network.alive | (links.sizes() > 0)
        by_node = network.alive, there, due
        return Electorate(network.ids, network.topic_ids, *by_topic, links.starts, links.columns, *by_node)

    def _elect(self, topics: tuple[int, int], among: Electorate, *, most_rounds: int) -> int:
        """Elections of the topics first … last-1; returns the most rounds that one of them took."""
        seed, reach, rounds, first = self.network.seed, self.config.gateway_reach, [0], topics[0]

        def work(a: int, b: int) -> None:
            some = first + a, first + b
            rounds.append(elect(seed, some, reach, most_rounds, among, self.proposals, self._due))

        self.network.in_chunks(work, topics[1] - first, self.network.topic_nodes.sizes()[first : topics[1]])
        return max(rounds)

    def forget(self, nodes: Columns) -> None:
        subscribers = self.network.topic_nodes.starts, self.network.topic_nodes.columns
        begin = nodes if self.config.notices == "at once" else nodes[self.network.alive[nodes]]
        start_afresh(begin, self.network.profiles, subscribers, self.proposals.gateway)
        self._afresh[nodes] = True
        self._ideal = None

    def interests_changed(self, nodes: Columns) -> None:
        super().interests_changed(nodes)  # with new room for links, remembered keys are forgotten
        old, told = self._members, self.proposals
        self._propose_afresh()
        new = self._members
        self._ideal = None
        carry_over((old.starts, old.columns), told, (new.starts, new.columns), self.proposals)
        self._signatures = make_signatures(self.network.profiles)._asdict()

    def _propose_afresh(self) -> None:
        """Nobody has proposed anything; in the next round all are asked."""
        self._members = self.network.topic_nodes
        pairs = len(self._members.columns)
        self.proposals = Proposals(
            np.full(pairs, NOBODY, np.int32), np.zeros(pairs, np.int32), np.zeros(pairs, np.int32)
        )
        self._due, self._afresh = np.zeros(pairs, np.bool_), np.zeros(self.network.size, np.bool_)
        self._links_before = None

    def saved(self) -> dict[str, NDArray[Any]]:
        return self.proposals._asdict()

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """Proposals as they were; in the next round all are asked, which changes nothing but who is asked in vain."""
        self.proposals = Proposals(**saved)

    def delivery(self) -> Delivery:
        members = self.network.topic_nodes
        gateways = who_is_gateway(members.starts, self.proposals.gateway) & self.network.alive[members.columns]
        return Delivery(floods=True, gateways=gateways, spanning=self.spans())
