"""OPT over arrays, round by round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import exchange
from grapevine.blocks.candidates import new_candidates, start_over, store
from grapevine.blocks.coverage import choose_greedily
from grapevine.blocks.exchange import Contacts
from grapevine.blocks.network import Network, Rows
from grapevine.blocks.profiles import Profiles
from grapevine.blocks.views import FRIEND_TIES, NOBODY, Views
from grapevine.kernels.jit import njit
from grapevine.kernels.rng import stream
from grapevine.model.config import parameter
from grapevine.systems.contracts.rounds import Delivery, GossipConfig, GossipSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class OptConfig(GossipConfig):
    """OPT: an overlay per topic by coverage, with bounded or unbounded degree."""

    table_size: int | None = parameter(
        15,
        "connections that a node may have; none: as many as coverage wants",
        source="Vitis §IV-E",
        low=4,
        high=100_000,
    )
    coverage: int = parameter(
        3, "neighbours that shall share each topic (K)", source="SpiderCast §3.3: (3, 0); Vitis gives none", low=1
    )


@njit
def exchange_round(
    seed: int,
    now: int,
    nodes: tuple[int, int],
    gossip: tuple[int, int],
    profiles: Profiles,
    views: Views,
    contacts: Contacts,
    out: Rows,
) -> None:
    """One exchange of the nodes first … last-1: gather, cover, store."""
    first, last = nodes
    max_age, k = gossip
    links, heard, _ = out
    pool = new_candidates(exchange.most_candidates(first, last, views, contacts))
    scratch = np.zeros(len(profiles.weights), np.int64), np.empty(len(pool.nodes), np.int64)
    for p in range(first, last):
        a, b = views.starts[p], views.starts[p + 1]
        picks = np.full(b - a, NOBODY, np.int32)
        if views.alive[p]:
            start_over(pool, exchange.bound(p, views, contacts))
            exchange.gather(p, now, now - max_age, views, contacts, pool)
            choose_greedily(p, k, stream(seed, FRIEND_TIES, p), pool, profiles, scratch, picks)
        store(picks, pool, links[a:b], heard[a:b])


class Opt(GossipSystem):
    """OPT on a network."""

    config_type = OptConfig
    config: OptConfig

    def __init__(self, config: OptConfig, network: Network) -> None:
        super().__init__(config, network)
        network.degree_bound = config.table_size

    def row_sizes(self) -> NDArray[np.int64]:
        wanted = np.diff(self.network.profiles.starts) * self.config.coverage  # each pick serves one at least
        bound = self.network.size - 1 if self.config.table_size is None else self.config.table_size
        return np.asarray(np.minimum(wanted, bound), np.int64)

    def slot_kinds(self, size: int) -> list[str]:
        return ["coverage"] * size

    def exchange(self) -> None:
        network, views = self.network, self.network.views
        gossip = self.config.max_age, self.config.coverage

        def select(nodes: tuple[int, int], contacts: Contacts, out: Rows) -> None:
            exchange_round(network.seed, network.now, nodes, gossip, network.profiles, views, contacts, out)

        network.exchange(select, ring_slots=self.ring_slots)

    def delivery(self) -> Delivery:
        return self.flooding()
