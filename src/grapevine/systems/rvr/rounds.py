"""RVR over arrays, round by round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapevine.blocks import exchange, small_world
from grapevine.blocks.candidates import new_candidates, start_over, store
from grapevine.blocks.exchange import Contacts
from grapevine.blocks.network import Rows
from grapevine.blocks.views import NOBODY, Views
from grapevine.kernels.jit import njit
from grapevine.systems.contracts.rounds import Delivery, GossipSystem, RingConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RvrConfig(RingConfig):
    """RVR: rendezvous routing over a bounded small-world table."""


@njit
def exchange_round(
    seed: int,
    now: int,
    nodes: tuple[int, int],
    max_age: int,
    ids: NDArray[np.uint64],
    views: Views,
    contacts: Contacts,
    out: Rows,
) -> None:
    """One exchange of the nodes first … last-1: gather, fill ring and long slots, store."""
    first, last = nodes
    links, heard, backups = out
    pool = new_candidates(exchange.most_candidates(first, last, views, contacts))
    for p in range(first, last):
        a, b = views.starts[p], views.starts[p + 1]
        picks = np.full(b - a, NOBODY, np.int32)
        backups[p] = NOBODY
        if views.alive[p]:
            start_over(pool, exchange.bound(p, views, contacts))
            exchange.gather(p, now, now - max_age, views, contacts, pool)
            small_world.fill_ring(p, now, ids, views, contacts, pool, picks, backups[p])
            small_world.choose_long(seed, p, ids, pool, (small_world.RING_SLOTS, len(picks)), picks)
        store(picks, pool, links[a:b], heard[a:b])


class Rvr(GossipSystem):
    """RVR on a network."""

    config_type = RvrConfig
    config: RvrConfig
    ring_slots = small_world.RING_SLOTS

    def row_sizes(self) -> NDArray[np.int64]:
        return np.full(self.network.size, self.config.table_size, np.int64)

    def slot_kinds(self, size: int) -> list[str]:
        return ["successor", "predecessor"] + ["long"] * (size - small_world.RING_SLOTS)

    def exchange(self) -> None:
        network, views = self.network, self.network.views

        def select(nodes: tuple[int, int], contacts: Contacts, out: Rows) -> None:
            exchange_round(network.seed, network.now, nodes, self.config.max_age, network.ids, views, contacts, out)

        network.exchange(select, ring_slots=self.ring_slots)

    def delivery(self) -> Delivery:
        return Delivery(floods=False, gateways=np.ones(len(self.network.topic_nodes.columns), np.bool_))
